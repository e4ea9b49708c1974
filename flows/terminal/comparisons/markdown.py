"""Format a comparison as Markdown for a comment on a merge request; texts of the data cannot act as markup."""

import html
import re
from collections.abc import Iterator, Sequence

from yarus.flows.terminal.printing import get_tier_name
from yarus.tasks.cases.privacy.pseudonyms import should_mask
from yarus.tasks.comparison.changes import (
    compared_metrics,
    displayed_verdicts,
    format_statement,
    is_invalid,
    is_same_evaluation,
)
from yarus.tasks.comparison.comparison_schema import ChangedCase, EvaluationComparison
from yarus.tasks.config.redaction import escape_control_characters
from yarus.tasks.config.texts import texts
from yarus.tasks.config.tiers import shown_headlines
from yarus.tasks.evaluation.number_format import format_difference_interval, format_metric

VERDICT_KINDS = ("invalid", "regressed", "improved", "nothing")
DETAIL_KINDS = ("failures", "settings", "measured otherwise", "not judged", "alone", "reach")
MAX_CASES, MAX_METRICS = 20, 100
"""Maximum number of lines of a table."""
MAX_TEXT, MAX_LINE = 200, 2_000
MAX_COMMENT = 65_536
"""Maximum number of characters in a comment on GitHub."""


def format_comparison_markdown(document: EvaluationComparison, language: str) -> str:
    """Return the verdict, the changed settings, the metrics and the changed cases as Markdown.

    An invalid evaluation gets only its reason.

    Args:
        document: returned by `yarus.tasks.comparison.compare.compare`.
        language: ru or en.

    Returns:
        At most as many characters as a comment on GitHub may have.
    """
    words = texts("comparison", language)
    title = f"{get_tier_name(document['b']['tier'], language)} · {document['b']['source']}"
    parts = [f"## {escape_sentence(title)}"]
    for kinds, mark in ((VERDICT_KINDS, "**"), (DETAIL_KINDS, "")):
        chosen = [line for line in document["statements"] if line["kind"] in kinds]
        parts += (
            [
                "\n".join(
                    f"- {mark}{escape_sentence(format_statement(line, language), MAX_LINE)}{mark}" for line in chosen
                )
            ]
            if chosen
            else []
        )
    if is_same_evaluation(document):
        return "\n\n".join(
            (*parts, escape_sentence(words["same evaluation"].format(id=document["b"]["evaluation_id"])))
        )
    if not document["comparable"]:
        parts.insert(1, f"**{words['not comparable']}**")
    sides = [
        f"{words['before']}: {format_code(document['a']['evaluation_id'])}",
        f"{words['after']}: {format_code(document['b']['evaluation_id'])}",
    ]
    parts.append(" · ".join(sides))
    if not is_invalid(document):
        parts += _list_metric_tables(document, words, texts("statements", language)["alone"])
    if document["comparable"] and not is_invalid(document):
        parts += _list_case_tables(document["cases"]["regressed_cases"], "regressed_cases", words)
        parts += _list_case_tables(document["cases"]["improved_cases"], "improved_cases", words)
    if should_mask(document["b"]["source"]):
        parts.append(texts("pseudonyms", language)["note"])
    return _join_within_limit(parts)


def format_code(untrusted: str) -> str:
    """Return an untrusted text as code in a cell: nothing in it is markup, a link, a mention or the end of the cell."""
    escaped = _flatten(untrusted, MAX_TEXT).replace("`", "'").replace("|", "¦")
    return f"`{escaped}`" if escaped else "—"


def escape_sentence(untrusted: str, longest: int = MAX_TEXT) -> str:
    """Return a sentence with untrusted texts escaped: no markup, and nothing that would become a link."""
    unlinked = re.sub(r"((?<!\w)@|#|!|&|~|\$|%|\^|://|www\.)(?=\w)", "\\1\u200b", _flatten(untrusted, longest))
    return re.sub(r"([\\`*_\[\]|~$])", r"\\\1", html.escape(unlinked, quote=False))


def _flatten(untrusted: str, longest: int) -> str:
    flat = " ".join(escape_control_characters(untrusted).split())
    return flat if len(flat) <= longest else f"{flat[: longest - 1]}…"


def _list_metric_tables(document: EvaluationComparison, words: dict[str, str], alone: str) -> Iterator[str]:
    """Yield the table of the metrics shown first, and the folded table of the others, introduced by `alone`."""
    metrics, verdicts = compared_metrics(document), displayed_verdicts(document)
    headlines = [name for name in shown_headlines(document["b"]["tier"], metrics) if name in metrics]
    other_names = [name for name in metrics if name not in headlines]
    for names, is_folded in ((headlines, False), (other_names[:MAX_METRICS], bool(headlines))):
        heads = (words["metric"], words["before"], words["after"], words["difference"], words["interval"])
        rows = [
            (
                format_code(name),
                format_metric(name, metrics[name]["a"]),
                format_metric(name, metrics[name]["b"]),
                format_metric(name, metrics[name]["difference"], sign=True),
                format_difference_interval(name, metrics[name]),
                words[verdicts[name]],
            )
            for name in names
        ]
        if rows:
            table = _format_table((*heads, words["verdict"]), rows)
            title = words["other metrics"].format(n=len(rows))
            yield (f"<details><summary>{title}</summary>\n\n{alone}\n\n{table}\n\n</details>" if is_folded else table)


def _list_case_tables(entries: Sequence[ChangedCase], kind: str, words: dict[str, str]) -> Iterator[str]:
    """Yield a table with one line per question and every metric that moved."""
    if not entries:
        return
    rows = [
        (
            format_code(entry["question"] or entry["case_id"]) + (f" ×{entry['n']}" if entry["n"] > 1 else ""),
            "<br>".join(
                f"{format_code(change['metric'])} {format_metric(change['metric'], change['before'])} → "
                f"{format_metric(change['metric'], change['after'])}"
                for change in entry["metric_changes"][:5]
            ),
        )
        for entry in entries[:MAX_CASES]
    ]
    title = words[kind].format(n=sum(entry["n"] for entry in entries))
    table = _format_table((words["question"], words["moved"]), rows)
    yield f"<details{' open' if kind == 'regressed_cases' else ''}><summary>{title}</summary>\n\n{table}\n\n</details>"


def _format_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _join_within_limit(parts: list[str]) -> str:
    """Join the first parts that fit into a comment."""
    while len("\n\n".join(parts)) >= MAX_COMMENT - 1:
        parts.pop()
    return "\n\n".join(parts)

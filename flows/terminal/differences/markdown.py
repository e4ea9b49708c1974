"""A comparison as Markdown, for a comment on a merge request: no text of the data is more than text there."""

import html
import re
from collections.abc import Iterator, Sequence

from yarus.flows.terminal.printing import tier_name
from yarus.tasks.cases.privacy.pseudonyms import has_pseudonyms
from yarus.tasks.comparison.changes import is_invalid, line, measured
from yarus.tasks.comparison.comparison_schema import ChangedCase, EvaluationComparison
from yarus.tasks.config.redaction import harmless
from yarus.tasks.config.texts import texts
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.numbers import between, shown

VERDICTS = ("invalid", "regressed", "improved", "nothing")
LATER = ("failures", "settings", "measured otherwise", "alone", "reach")
CASES, METRICS = 20, 100
"""Most lines of a table."""
LONGEST, LONGEST_LINE = 200, 2_000
MOST = 65_536
"""Characters that a comment on GitHub may have."""


def comparison_markdown(document: EvaluationComparison, language: str) -> str:
    """The verdict, what was changed, the metrics with intervals, and what broke; of an invalid evaluation why it is.

    Args:
        document: as `yarus.tasks.comparison.compare.compare` gives it.
        language: ru or en.

    Returns:
        At most as much as a comment on GitHub may have.
    """
    words = texts("comparison", language)
    title = f"{tier_name(document['b']['tier'], language)} · {document['b']['source']}"
    parts = [f"## {text(title)}"]
    for kinds, mark in ((VERDICTS, "**"), (LATER, "")):
        said = [one for one in document["statements"] if one["kind"] in kinds]
        parts += ["\n".join(f"- {mark}{text(line(one, language), LONGEST_LINE)}{mark}" for one in said)] if said else []
    if not document["comparable"]:
        parts.insert(1, f"**{words['not comparable']}**")
    sides = [
        f"{words['before']}: {code(document['a']['evaluation_id'])}",
        f"{words['after']}: {code(document['b']['evaluation_id'])}",
    ]
    parts.append(" · ".join(sides))
    if not is_invalid(document):
        parts += _metrics(document, words, texts("statements", language)["alone"])
        parts += _cases(document["cases"]["broke"], "broke", words)
        parts += _cases(document["cases"]["fixed"], "fixed", words)
    if has_pseudonyms(document["b"]["source"]):
        parts.append(texts("pseudonyms", language)["note"])
    return _within(parts)


def code(given: str) -> str:
    """A text of anybody's as code in a cell: nothing in it is markup, a link, a mention or the end of the cell."""
    one = _one_line(given, LONGEST).replace("`", "'").replace("|", "¦")
    return f"`{one}`" if one else "—"


def text(given: str, longest: int = LONGEST) -> str:
    """A sentence with texts of anybody's in it: no markup, and no name, number or address that would become a link."""
    one = re.sub(r"((?<!\w)@|#|!|&|~|\$|%|\^|://|www\.)(?=\w)", "\\1\u200b", _one_line(given, longest))
    return re.sub(r"([\\`*_\[\]|~$])", r"\\\1", html.escape(one, quote=False))


def _one_line(given: str, longest: int) -> str:
    one = " ".join(harmless(given).split())
    return one if len(one) <= longest else f"{one[: longest - 1]}…"


def _metrics(document: EvaluationComparison, words: dict[str, str], alone: str) -> Iterator[str]:
    """The headline metrics, and the others folded, whose verdicts are `alone`."""
    found = measured(document)
    main = [name for name in TIERS[document["b"]["tier"]].headlines if name in found]
    others = [name for name in found if name not in main]
    for names, folded in ((main, False), (others[:METRICS], bool(main))):
        heads = (words["metric"], words["before"], words["after"], words["difference"], words["interval"])
        rows = [
            (
                code(name),
                shown(name, found[name]["a"]),
                shown(name, found[name]["b"]),
                shown(name, found[name]["difference"], sign=True),
                between(name, found[name]),
                words[found[name]["verdict"]],
            )
            for name in names
        ]
        if rows:
            table = _table((*heads, words["verdict"]), rows)
            title = words["other metrics"].format(n=len(rows))
            yield (f"<details><summary>{title}</summary>\n\n{alone}\n\n{table}\n\n</details>" if folded else table)


def _cases(entries: Sequence[ChangedCase], kind: str, words: dict[str, str]) -> Iterator[str]:
    """One line a question, with every metric that moved."""
    if not entries:
        return
    rows = [
        (
            code(one["question"] or one["case_id"]) + (f" ×{one['n']}" if one["n"] > 1 else ""),
            "<br>".join(
                f"{code(moved['metric'])} {shown(moved['metric'], moved['before'])} → "
                f"{shown(moved['metric'], moved['after'])}"
                for moved in one["moved"][:5]
            ),
        )
        for one in entries[:CASES]
    ]
    title = words[kind].format(n=sum(one["n"] for one in entries))
    table = _table((words["question"], words["moved"]), rows)
    yield f"<details{' open' if kind == 'broke' else ''}><summary>{title}</summary>\n\n{table}\n\n</details>"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _within(parts: list[str]) -> str:
    """The first parts that a comment has room for."""
    while len("\n\n".join(parts)) >= MOST - 1:
        parts.pop()
    return "\n\n".join(parts)

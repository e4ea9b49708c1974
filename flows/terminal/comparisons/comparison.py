"""Print a comparison for people: what changed, where, and a verdict in words."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, get_args

from rich.console import Console
from rich.table import Table
from sqlalchemy import Engine

from yarus.db import journal
from yarus.flows.terminal.printing import MAX_QUESTION, WIDTH, clean, get_tier_name, join_first, make_console
from yarus.tasks.comparison.baseline_comparison import compare_with_accepted
from yarus.tasks.comparison.changes import (
    build_statements,
    compared_metrics,
    displayed_verdicts,
    find_unjudged,
    format_statement,
    is_invalid,
    is_same_evaluation,
    proven_changes,
)
from yarus.tasks.comparison.comparison_schema import ChangedCases, EvaluationComparison, Side, Statement, StatementKind
from yarus.tasks.config.texts import texts
from yarus.tasks.config.texts.messages import told
from yarus.tasks.config.tiers import TIERS, shown_headlines
from yarus.tasks.dataset.labelling.relevance.label_suggestions import LabelSuggestions
from yarus.tasks.evaluation.findings.incomplete import has_one_label_per_question
from yarus.tasks.evaluation.findings_schema import JudgedShareDifference
from yarus.tasks.evaluation.number_format import format_difference_interval, format_metric, format_rounded

STYLES = {"invalid": "bold red", "regressed": "bold red", "improved": "bold green", "alone": "", "reach": "dim"}
KINDS_BELOW: tuple[StatementKind, ...] = ("alone", "not compared", "reach")
KINDS_ABOVE: tuple[StatementKind, ...] = tuple(kind for kind in get_args(StatementKind) if kind not in KINDS_BELOW)


def print_statements(
    console: Console, statements: Iterable[Statement], language: str, kinds: Collection[StatementKind]
) -> None:
    """Print the statements of a comparison, one per line."""
    for statement in statements:
        if statement["kind"] in kinds:
            console.print(
                clean(format_statement(statement, language)),
                style=STYLES.get(statement["kind"], "bold"),
                soft_wrap=True,
            )


def print_changes(engine: Engine, ids: Sequence[str], language: str, *, show_all: bool = False) -> None:
    """Print what changed since the accepted evaluations of one or more tiers."""
    words, console = texts("statements", language), make_console()
    candidates = (compare_with_accepted(engine, journal.find_evaluation(engine, name)) for name in ids)
    comparisons = [comparison for comparison in candidates if comparison is not None]
    if not comparisons:
        console.print(words["nothing before"], style="dim")
        return
    since = max(comparison["a"]["started_at"] for comparison in comparisons)[:16].replace("T", " ")
    console.print(f"\n[bold]{words['since'].format(since=since)}[/]")
    statements = build_statements(comparisons, named=len(ids) > 1)
    print_statements(console, statements, language, (*KINDS_ABOVE, *_get_kinds_below(show_all=show_all)))


COLOURS = {
    "improved": "green",
    "regressed": "red",
    "changed": "cyan",
    "no difference shown": "dim",
    "not judged": "dim",
}
MAX_CASES, MAX_SLICES = 5, 5
MAX_FIRST_CASES = 3
"""Maximum number of changed cases of a kind on the first screen."""
MAX_NAMES = 3
"""Maximum number of metrics in a line about a reason."""
PROVEN_VERDICTS = ("regressed", "improved")


def print_comparison(
    document: EvaluationComparison, language: str, *, slice_name: str | None = None, show_all: bool = False
) -> None:
    """Print the verdict, the headline metrics and changed cases; of an invalid evaluation only the reason.

    Args:
        document: returned by `yarus.tasks.comparison.compare.compare`.
        language: ru or en.
        slice_name: show all values of this slice with all metrics.
        show_all: print all metrics, and the largest slices with the tier's first metric.
    """
    words = texts("comparison", language)
    console = make_console(WIDTH + 10)
    console.print()
    if is_same_evaluation(document):
        console.print(clean(words["same evaluation"].format(id=document["b"]["evaluation_id"])), soft_wrap=True)
        return
    if not document["comparable"]:
        console.print(words["not comparable"], style="bold yellow")
    for line in list_verdict_lines(document, language):
        console.print(clean(line), style="bold", soft_wrap=True)
    tier = get_tier_name(document["b"]["tier"], language)
    console.print(f"{words['title']}: {tier} · {clean(document['b']['source'])}")
    for side, name in ((document["a"], "before"), (document["b"], "after")):
        console.print(f"{words[name]}: {clean(_describe_side(side, texts('states', language)))}", soft_wrap=True)
    print_statements(console, document["statements"], language, set(KINDS_ABOVE) - set(VERDICT_KINDS))
    if is_invalid(document):
        return
    console.print(words["common"].format(n=document["n_common"]) if document["paired"] else words["unpaired"])
    rows = _select_rows(document, show_all=show_all)
    console.print(_make_metric_table(document, rows, words))
    if n_more := len(compared_metrics(document)) - len(rows):
        console.print(words["more metrics"].format(n=n_more), style="dim")
    _print_warnings(console, document, words, rows)
    if show_all:
        _print_margins(console, document, words)
    _print_reasons(console, document, words, language)
    _print_noise(console, document, words)
    if document["comparable"]:
        _print_cases(console, document["cases"], language, MAX_CASES if show_all else MAX_FIRST_CASES)
    if show_all or slice_name:
        _print_slices(console, document, language, slice_name)
    print_statements(console, document["statements"], language, _get_kinds_below(show_all=show_all))


def _get_kinds_below(*, show_all: bool) -> tuple[StatementKind, ...]:
    """Return the kinds of statements below the table: details only with `show_all`."""
    return KINDS_BELOW if show_all else ("not compared",)


VERDICT_KINDS: tuple[StatementKind, ...] = ("invalid", "regressed", "improved", "nothing")


def list_verdict_lines(document: EvaluationComparison, language: str) -> Iterator[str]:
    """Yield whether B is better or worse or that this cannot be told, how sure it is, and what to do.

    Nothing is claimed about evaluations that are not comparable.
    """
    words = texts("comparison", language)
    statements = {statement["kind"]: statement for statement in document["statements"]}
    if is_invalid(document):
        yield format_statement(statements["invalid"], language)
        return
    if not document["comparable"]:
        return
    proven = {verdict: proven_changes(document, verdict) for verdict in PROVEN_VERDICTS}
    for verdict, rows in proven.items():
        if rows:
            moves = "; ".join(_describe_move(name, row, words) for name, row in rows.items())
            yield f"{words[f'verdict {verdict}']}: {moves}."
    if any(proven.values()):
        key = "next regressed" if proven["regressed"] else "next improved"
        yield words[key].format(a=document["a"]["evaluation_id"], b=document["b"]["evaluation_id"])
        return
    headlines = {name: row for name, row in compared_metrics(document).items() if row["p_holm"] is not None}
    unjudged = find_unjudged(document, headlines)
    is_main_measured = TIERS[document["b"]["tier"]].headlines[0] in headlines
    is_same = is_main_measured and all(row["verdict"] == "no difference shown" for row in headlines.values())
    parts = []
    if unjudged:
        parts.append(words["unjudged"].format(metrics=", ".join(name for name in headlines if name in unjudged)))
    if "nothing" in statements:
        parts.append(statements["nothing"]["text"][language])
    key = "verdict same" if is_same and not unjudged else "verdict unclear"
    yield f"{words[key]}: {'; '.join(parts) or words['nothing compared']}."
    if unjudged:
        yield texts("guidance", language)["set a judge"]
    elif headlines:
        yield words["next same" if is_same else "next unclear"]


def _describe_move(name: str, row: Mapping[str, Any], words: Mapping[str, str]) -> str:
    figures = {side: format_metric(name, row[side]) for side in ("a", "b")}
    difference = format_metric(name, row["difference"], sign=True)
    interval = format_difference_interval(name, row)
    return words["move"].format(metric=name, difference=difference, interval=interval, n=row["n"], **figures)


def _select_rows(document: EvaluationComparison, *, show_all: bool) -> dict[str, Mapping[str, Any]]:
    """Return the metrics of the table: those shown first, or all."""
    metrics = compared_metrics(document)
    first = shown_headlines(document["b"]["tier"], document["metrics"])
    chosen = {name: metrics[name] for name in first if name in metrics}
    return metrics if show_all or not chosen else chosen


def _print_warnings(
    console: Console, document: EvaluationComparison, words: dict[str, str], rows: Mapping[str, Mapping[str, Any]]
) -> None:
    """Print what makes the differences doubtful."""
    sides = ({name: row[side] for name, row in document["metrics"].items()} for side in ("a", "b"))
    if not all(has_one_label_per_question(document["b"]["tier"], values) for values in sides):
        _print_unjudged(console, document["judged_share_difference"], words)
    if document["b"]["system"].get("labels") == "filled":
        console.print(words["filled"], style="bold yellow", soft_wrap=True)
    if any(metric["p_holm"] is None for metric in rows.values()):
        console.print(words["alone"], style="dim", soft_wrap=True)


def _make_metric_table(
    document: EvaluationComparison, rows: Mapping[str, Mapping[str, Any]], words: dict[str, str]
) -> Table:
    """Return the table of metrics; names and intervals are never cut or wrapped."""
    headers = ("difference", "interval", "p", "detectable", "pairs", "verdict")
    table = Table(
        words["metric"], "A", "B", *(words[name] for name in headers), box=None, padding=(0, 1, 0, 0), pad_edge=False
    )
    for column in table.columns[1:8]:
        column.justify = "right"
    table.columns[0].no_wrap = table.columns[4].no_wrap = True
    headlines, verdicts = TIERS[document["b"]["tier"]].headlines, displayed_verdicts(document)
    for name, metric in rows.items():
        is_corrected = metric["p_holm"] is not None
        p = metric["p_holm"] if is_corrected else metric["p"]
        p_text = f"{p:.3f}" if p >= 0.001 else "<0.001"
        verdict = verdicts[name]
        table.add_row(
            f"[bold]{name}[/]" if name in headlines else name,
            format_metric(name, metric["a"]),
            format_metric(name, metric["b"]),
            format_metric(name, metric["difference"], sign=True),
            format_difference_interval(name, metric),
            p_text if is_corrected else f"({p_text})",
            "" if metric["min_detectable_effect"] is None else format_metric(name, metric["min_detectable_effect"]),
            str(metric["n"]),
            f"[{COLOURS.get(verdict, 'yellow')}]{words[verdict]}[/]" if document["comparable"] else "",
        )
    return table


def _print_margins(console: Console, document: EvaluationComparison, words: dict[str, str]) -> None:
    """Print the margins of the headline metrics, or of all metrics if few were requested."""
    margins = {name: metric["margin"] for name, metric in document["metrics"].items() if metric["margin"] is not None}
    headlines = TIERS[document["b"]["tier"]].headlines
    printed = {name: margin for name, margin in margins.items() if name in headlines or len(margins) <= len(headlines)}
    if printed:
        text = ", ".join(f"{name} ±{format_metric(name, margin)}" for name, margin in printed.items())
        console.print(words["margins"].format(margins=text), style="dim", soft_wrap=True)


def _print_reasons(console: Console, document: EvaluationComparison, words: dict[str, str], language: str) -> None:
    """Print why metrics were not compared, one line per reason."""
    by_reason: dict[str, list[str]] = {}
    for name, metric in document["metrics"].items():
        if metric["reason"] is not None:
            by_reason.setdefault(metric["reason"], []).append(name)
    for reason, names in by_reason.items():
        values = {"n": len(names), "reason": told(reason, language), "names": join_first(names, MAX_NAMES)}
        line = words["not compared by reason"].format(**values)
        console.print(clean(line), style="dim", soft_wrap=True)


def _print_unjudged(console: Console, unequal: JudgedShareDifference | None, words: dict[str, str]) -> None:
    """Print that the sides' results are not judged to the same extent, and which differences this allows."""
    if unequal is None:
        return
    bounds = ", ".join(
        f"{name} {format_metric(name, bound['low'], sign=True)} … {format_metric(name, bound['high'], sign=True)}"
        for name, bound in unequal["bounds"].items()
    )
    shares = {side: f"{unequal[side]:.1%}" for side in ("a", "b")}
    console.print(words["unequally judged"].format(**shares, bounds=bounds), style="yellow", soft_wrap=True)


def _print_noise(console: Console, document: EvaluationComparison, words: dict[str, str]) -> None:
    """Print how far the headline metrics move if nothing has changed, if an evaluation was repeated."""
    bands = {
        name: document["noise"][name] for name in TIERS[document["b"]["tier"]].headlines if name in document["noise"]
    }
    if bands:
        text = ", ".join(f"{name} ±{format_metric(name, band)}" for name, band in bands.items())
        console.print(words["noise"].format(bands=text), style="dim", soft_wrap=True)


def _print_cases(console: Console, cases: ChangedCases, language: str, n_shown: int) -> None:
    """Print one line per question, with every metric that moved, before and after."""
    words, statuses = texts("comparison", language), texts("statuses", language)
    for kind, entries, colour in (
        ("regressed_cases", cases["regressed_cases"], "red"),
        ("improved_cases", cases["improved_cases"], "green"),
    ):
        if entries:
            console.print(f"[{colour}]{words[kind].format(n=sum(entry['n'] for entry in entries))}[/]")
        for entry in entries[:n_shown]:
            figures = ", ".join(
                f"{move['metric']} {format_metric(move['metric'], move['before'])} → "
                f"{format_metric(move['metric'], move['after'])}"
                for move in entry["metric_changes"]
            )
            question = clean(_shorten(entry["question"])) + _format_count(entry)
            console.print(f"  {clean(entry['case_id'])}  {question}  [dim]{figures}[/]", soft_wrap=True)
    if cases["changed_status"]:
        console.print(words["changed status"].format(n=sum(case["n"] for case in cases["changed_status"])))
        for case in cases["changed_status"][:n_shown]:
            shift = f"{statuses[case['before']]} → {statuses[case['after']]}"
            console.print(
                f"  {clean(case['case_id'])}  {shift}  {clean(_shorten(case['question']))}{_format_count(case)}"
            )


def _print_slices(console: Console, document: EvaluationComparison, language: str, only: str | None) -> None:
    words, slices = texts("comparison", language), texts("slices", language)
    value_names = texts("slice_values", language) | texts("strata", language)
    chosen = {name: values for name, values in document["slices"].items() if only in (None, name)}
    if not chosen:
        return
    headers = (words[name] for name in ("cases", "metric", "difference", "interval"))
    table = Table(words["slice"], "", *headers, "p", words["pairs"], box=None)
    is_cut = False
    for name, values in chosen.items():
        is_cut = is_cut or (only is None and len(values) > MAX_SLICES)
        for value, entry in islice(values.items(), None if only else MAX_SLICES):
            metrics = [(metric, row) for metric, row in entry.items() if not isinstance(row, int)]
            for metric, row in metrics if only else metrics[:1]:
                interval = format_difference_interval(metric, row)
                cells = (
                    metric,
                    format_metric(metric, row["difference"], sign=True),
                    interval,
                    f"{row['p']:.4f}",
                    str(row["n"]),
                )
                table.add_row(slices[name], clean(value_names.get(value, _shorten_end(value))), str(entry["n"]), *cells)
    console.print("", table)
    small = [document["small_slices"][name] for name in chosen]
    if n := sum(part["values"] for part in small):
        console.print(words["small"].format(values=n, cases=sum(part["cases"] for part in small)), style="dim")
    if is_cut:
        console.print(words["larger"], style="dim")
    console.print(words["exploring"], style="dim")


def _describe_side(side: Side, states: dict[str, str]) -> str:
    started_at = side["started_at"][:16].replace("T", " ")
    parts = [side["evaluation_id"], side["name"], started_at, side["sut_label"], states[side["state"]]]
    return " · ".join(part for part in parts if part)


def _shorten(text: str | None) -> str:
    """Return the text as one short line, without control characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in (text or "—")[:200]).split())
    return line if len(line) <= 70 else f"{line[:69]}…"


def _format_count(entry: Mapping[str, Any]) -> str:
    return f"  ×{entry['n']}" if entry["n"] > 1 else ""


def _shorten_end(text: str) -> str:
    """Return the text as one short line; of an address its end, which distinguishes pages."""
    return f"…{text[-40:]}" if text.startswith("http") and len(text) > 41 else _shorten(text)


def print_label_suggestions(document: LabelSuggestions, language: str) -> None:
    """Print the results on which the ranking of two systems depends most."""
    words = texts("labels", language)
    console = make_console()
    values = {name: format_rounded(document[name], "share") for name in ("value_a", "value_b")}
    console.print(words["between"].format(**{**document, **values}), soft_wrap=True)
    if not document["results"]:
        return
    table = Table(*(words[name] for name in ("effect", "rank a", "rank b", "grade", "pair")), box=None)
    for result in document["results"]:
        ranks = ("—" if result[name] is None else str(result[name]) for name in ("rank_a", "rank_b", "grade"))
        text = f"{result['question'][:MAX_QUESTION]}\n{result['result']}: {(result['passage'] or '')[:MAX_QUESTION]}"
        table.add_row(f"{result['effect']:.4f}", *ranks, clean(text))
    console.print(table)
    console.print(words["between then"], soft_wrap=True)

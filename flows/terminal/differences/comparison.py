"""A comparison for people: what changed, where, and a verdict in words."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, get_args

from rich.console import Console
from rich.table import Table
from sqlalchemy import Engine

from yarus.db import journal
from yarus.flows.terminal.printing import LONGEST, WIDTH, new_console, plain, tier_name
from yarus.tasks.comparison.changes import is_invalid, line, measured, statements
from yarus.tasks.comparison.comparison_schema import ChangedCases, EvaluationComparison, Side, Statement, StatementKind
from yarus.tasks.comparison.since import since_accepted
from yarus.tasks.config.texts import texts
from yarus.tasks.config.texts.messages import told
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.dataset.labelling.relevance.between import LabelNext
from yarus.tasks.evaluation.findings_schema import UnequallyJudged
from yarus.tasks.evaluation.numbers import rounded, unit_of

STYLES = {"invalid": "bold red", "regressed": "bold red", "improved": "bold green", "alone": "", "reach": "dim"}
BELOW: tuple[StatementKind, ...] = ("alone", "not compared", "reach")
ABOVE: tuple[StatementKind, ...] = tuple(kind for kind in get_args(StatementKind) if kind not in BELOW)


def print_statements(
    console: Console, found: Iterable[Statement], language: str, kinds: Collection[StatementKind]
) -> None:
    """What a comparison says, a line each."""
    for said in found:
        if said["kind"] in kinds:
            console.print(plain(line(said, language)), style=STYLES.get(said["kind"], "bold"), soft_wrap=True)


def print_changes(engine: Engine, evaluation_ids: Sequence[str], language: str) -> None:
    """What changed since the accepted evaluations of one or more tiers."""
    words, console = texts("statements", language), new_console()
    compared = (since_accepted(engine, journal.find(engine, name)) for name in evaluation_ids)
    found = [one for one in compared if one is not None]
    if not found:
        console.print(words["nothing before"], style="dim")
        return
    since = max(one["a"]["started_at"] for one in found)[:16].replace("T", " ")
    console.print(f"\n[bold]{words['since'].format(since=since)}[/]")
    print_statements(console, statements(found, named=len(evaluation_ids) > 1), language, (*ABOVE, *BELOW))


COLOURS = {"improved": "green", "regressed": "red", "changed": "cyan", "no difference shown": "dim"}
SHOWN_CASES, SHOWN_SLICES = 5, 5


def print_comparison(document: EvaluationComparison, language: str, *, slice_name: str | None = None) -> None:
    """Metrics with intervals and verdicts, cases that broke, slices; of an invalid evaluation only that it is, and why.

    Args:
        document: as `yarus.tasks.comparison.compare.compare` gives it.
        language: ru or en.
        slice_name: show all of this slice, and by all metrics; else the largest, by the tier's first metric.
    """
    words = texts("comparison", language)
    console = new_console(WIDTH + 10)
    tier = tier_name(document["b"]["tier"], language)
    console.print(f"\n[bold]{words['title']}: {tier}[/] · {plain(document['b']['source'])}")
    for side, name in ((document["a"], "before"), (document["b"], "after")):
        console.print(f"{words[name]}: {plain(_side(side, texts('states', language)))}", soft_wrap=True)
    if not document["comparable"]:
        console.print(words["not comparable"], style="bold yellow")
    print_statements(console, document["statements"], language, ABOVE)
    if is_invalid(document):
        return
    console.print(words["common"].format(n=document["n_common"]) if document["paired"] else words["unpaired"])
    console.print(_metrics(document, words))
    _print_unjudged(console, document["unequally_judged"], words)
    if document["b"]["system"].get("labels") == "filled":
        console.print(words["filled"], style="bold yellow", soft_wrap=True)
    if any(one["p_holm"] is None for one in measured(document).values()):
        console.print(words["alone"], style="dim", soft_wrap=True)
    _print_margins(console, document, words)
    _print_reasons(console, document, words, language)
    _print_noise(console, document, words)
    _print_cases(console, document["cases"], language)
    _print_slices(console, document, language, slice_name)
    print_statements(console, document["statements"], language, BELOW)


def _metrics(document: EvaluationComparison, words: dict[str, str]) -> Table:
    headers = ("difference", "interval", "p", "detectable", "pairs", "verdict")
    table = Table(words["metric"], "A", "B", *(words[name] for name in headers), box=None)
    for column in table.columns[1:7]:
        column.justify = "right"
    main = TIERS[document["b"]["tier"]].headlines
    for name, one in measured(document).items():
        strict = one["p_holm"] is not None
        p = one["p_holm"] if strict else one["p"]
        said = f"{p:.4f}" if p >= 0.0001 else "<0.0001"
        colour = COLOURS.get(one["verdict"], "yellow")
        table.add_row(
            f"[bold]{name}[/]" if name in main else name,
            _number(name, one["a"]),
            _number(name, one["b"]),
            _signed(name, one["difference"]),
            f"{_signed(name, one['ci_low'])} … {_signed(name, one['ci_high'])}",
            said if strict else f"({said})",
            "" if one["smallest_detectable"] is None else _number(name, one["smallest_detectable"]),
            str(one["n"]),
            f"[{colour}]{words[one['verdict']]}[/]",
        )
    return table


def _print_margins(console: Console, document: EvaluationComparison, words: dict[str, str]) -> None:
    """What the verdict of the headline metrics rests on, or of all where few were asked for."""
    found = {name: one["margin"] for name, one in document["metrics"].items() if one["margin"] is not None}
    headlines = TIERS[document["b"]["tier"]].headlines
    named = {name: margin for name, margin in found.items() if name in headlines or len(found) <= len(headlines)}
    if named:
        said = ", ".join(f"{name} ±{_number(name, margin)}" for name, margin in named.items())
        console.print(words["margins"].format(margins=said), style="dim", soft_wrap=True)


def _print_reasons(console: Console, document: EvaluationComparison, words: dict[str, str], language: str) -> None:
    """Why metrics were not compared, one line a reason."""
    by_reason: dict[str, list[str]] = {}
    for name, one in document["metrics"].items():
        if one["reason"] is not None:
            by_reason.setdefault(one["reason"], []).append(name)
    for reason, names in by_reason.items():
        console.print(f"{words['not compared']}: {', '.join(names)} ({plain(told(reason, language))})", style="dim")


def _print_unjudged(console: Console, found: UnequallyJudged | None, words: dict[str, str]) -> None:
    """That the sides' results are not judged equally far, and what differences this leaves possible."""
    if found is None:
        return
    bounds = ", ".join(
        f"{name} {_signed(name, one['low'])} … {_signed(name, one['high'])}" for name, one in found["bounds"].items()
    )
    shares = {side: f"{found[side]:.1%}" for side in ("a", "b")}
    console.print(words["unequally judged"].format(**shares, bounds=bounds), style="yellow", soft_wrap=True)


def _print_noise(console: Console, document: EvaluationComparison, words: dict[str, str]) -> None:
    """How far the headline metrics move when nothing has changed, where an evaluation was repeated."""
    bands = {
        name: document["noise"][name] for name in TIERS[document["b"]["tier"]].headlines if name in document["noise"]
    }
    if bands:
        said = ", ".join(f"{name} ±{_number(name, band)}" for name, band in bands.items())
        console.print(words["noise"].format(bands=said), style="dim", soft_wrap=True)


def _print_cases(console: Console, cases: ChangedCases, language: str) -> None:
    """One line a question, with every metric that moved, before and after."""
    words, statuses = texts("comparison", language), texts("statuses", language)
    for kind, entries, colour in (("broke", cases["broke"], "red"), ("fixed", cases["fixed"], "green")):
        if entries:
            console.print(f"[{colour}]{words[kind].format(n=sum(entry['n'] for entry in entries))}[/]")
        for entry in entries[:SHOWN_CASES]:
            figures = ", ".join(
                f"{one['metric']} {_number(one['metric'], one['before'])} → {_number(one['metric'], one['after'])}"
                for one in entry["moved"]
            )
            question = plain(_short(entry["question"])) + _times(entry)
            console.print(f"  {plain(entry['case_id'])}  {question}  [dim]{figures}[/]", soft_wrap=True)
    if cases["changed_status"]:
        console.print(words["changed status"].format(n=sum(moved["n"] for moved in cases["changed_status"])))
        for moved in cases["changed_status"][:SHOWN_CASES]:
            figures = f"{statuses[moved['before']]} → {statuses[moved['after']]}"
            console.print(f"  {plain(moved['case_id'])}  {figures}  {plain(_short(moved['question']))}{_times(moved)}")


def _print_slices(console: Console, document: EvaluationComparison, language: str, only: str | None) -> None:
    words, slices = texts("comparison", language), texts("slices", language)
    named = texts("slice_values", language) | texts("strata", language)
    shown = {name: values for name, values in document["slices"].items() if only in (None, name)}
    if not shown:
        return
    headers = (words[name] for name in ("cases", "metric", "difference", "interval"))
    table = Table(words["slice"], "", *headers, "p", words["pairs"], box=None)
    cut = False
    for name, values in shown.items():
        cut = cut or (only is None and len(values) > SHOWN_SLICES)
        for value, own in islice(values.items(), None if only else SHOWN_SLICES):
            metrics = [(metric, one) for metric, one in own.items() if not isinstance(one, int)]
            for metric, one in metrics if only else metrics[:1]:
                interval = f"{_signed(metric, one['ci_low'])} … {_signed(metric, one['ci_high'])}"
                figures = (metric, _signed(metric, one["difference"]), interval, f"{one['p']:.4f}", str(one["n"]))
                table.add_row(slices[name], plain(named.get(value, _end(value))), str(own["n"]), *figures)
    console.print("", table)
    small = [document["small_slices"][name] for name in shown]
    if n := sum(part["values"] for part in small):
        console.print(words["small"].format(values=n, cases=sum(part["cases"] for part in small)), style="dim")
    if cut:
        console.print(words["larger"], style="dim")
    console.print(words["exploring"], style="dim")


def _side(side: Side, states: dict[str, str]) -> str:
    at = side["started_at"][:16].replace("T", " ")
    parts = [side["evaluation_id"], side["name"], at, side["sut_label"], states[side["state"]]]
    return " · ".join(part for part in parts if part)


def _number(name: str, value: float) -> str:
    unit = unit_of(name)
    digits = 0 if unit == "count" else 2 if unit in ("ms", "percent") else 3
    return f"{value:,.{digits}f}"


def _signed(name: str, value: float) -> str:
    text = _number(name, value)
    return text if float(text.replace(",", "")) <= 0 else f"+{text}"


def _short(text: str | None) -> str:
    """One line of it, without control characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in (text or "—")[:200]).split())
    return line if len(line) <= 70 else f"{line[:69]}…"


def _times(entry: Mapping[str, Any]) -> str:
    return f"  ×{entry['n']}" if entry["n"] > 1 else ""


def _end(text: str) -> str:
    """One line of it; of an address its end, which tells pages apart."""
    return f"…{text[-40:]}" if text.startswith("http") and len(text) > 41 else _short(text)


def print_between(document: LabelNext, language: str) -> None:
    """The results on which the ranking of two systems depends most."""
    words = texts("labels", language)
    console = new_console()
    values = {name: rounded(document[name], "share") for name in ("value_a", "value_b")}
    console.print(words["between"].format(**{**document, **values}), soft_wrap=True)
    if not document["results"]:
        return
    made = Table(*(words[name] for name in ("effect", "rank a", "rank b", "grade", "pair")), box=None)
    for one in document["results"]:
        places = ("—" if one[name] is None else str(one[name]) for name in ("rank_a", "rank_b", "grade"))
        shown = f"{one['question'][:LONGEST]}\n{one['result']}: {(one['passage'] or '')[:LONGEST]}"
        made.add_row(f"{one['effect']:.4f}", *places, plain(shown))
    console.print(made)
    console.print(words["between then"], soft_wrap=True)

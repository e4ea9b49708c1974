"""Print tables of evaluations, cases, plans, checks and loaded data."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table
from sqlalchemy.engine import RowMapping

from yarus.flows.terminal.printing import (
    MAX_QUESTION,
    add_colour,
    clean,
    format_metric,
    get_tier_name,
    join_first,
    make_console,
)
from yarus.metrics.metric import BAD_GRADES
from yarus.metrics.table import METRICS, grade
from yarus.tasks.cases.vocabulary import MEASURED_STATUSES
from yarus.tasks.config.texts import texts
from yarus.tasks.config.texts.messages import told
from yarus.tasks.evaluation.config import format_label

if TYPE_CHECKING:
    import pyarrow as pa

    from yarus.db.loading.load_rows import LoadReport
    from yarus.deployments.upkeep.doctor_sources import Check
    from yarus.deployments.upkeep.readiness import TierReadiness


def print_plans(document: Mapping[str, Any], language: str) -> None:
    """Print the estimated calls of each tier: the document of `yarus.flows.preflight.dry_run.CallEstimates`."""
    words = texts("plans", language)
    columns = ("tier", "cases", "role", "calls", "tokens in", "tokens out", "cost", "seconds")
    table = Table(*(words[name] for name in columns), box=None)
    for plan in document["plans"]:
        for role, estimate in plan["roles"].items():
            figures = (estimate[name] for name in ("calls", "tokens_in", "tokens_out", "cost_usd", "seconds"))
            table.add_row(plan["tier"], str(plan["cases"]), role, *("?" if n is None else f"{n:,.6g}" for n in figures))
        if not plan["roles"]:
            table.add_row(plan["tier"], "", words["no model"])
    make_console().print(table, words["unknown"])


def print_runs(rows: Iterable[RowMapping], language: str) -> None:
    """Print the list of evaluations."""
    words, states = texts("runs", language), texts("states", language)
    columns = ("id", "state", "source", "cases", "coverage", "started", "called")
    table = Table(*(words[name] for name in columns), box=None)
    for row in rows:
        coverage = "" if row["coverage"] is None else f"{row['coverage']:.1%}"
        started = f"{row['started_at']:%Y-%m-%d %H:%M}"
        state, n, names = (
            add_colour(states[row["state"]], row["state"]),
            str(row["n_cases"] or ""),
            clean(format_label(row)),
        )
        table.add_row(row["id"], state, clean(row["source"]), n, coverage, started, names)
    console = make_console()
    console.print(table if table.row_count else words["none"])


def print_cases(
    cases: "pa.Table",
    times: Sequence[int],
    statuses: Sequence[str],
    language: str,
    *,
    columns: Sequence[str] = (),
    show_all: bool = False,
) -> None:
    """Print how many cases were measured, then the first, one line each: question and repetitions, or embedded text.

    The line ends with the values of the metrics in question and where the answer fails, or else with the status.

    Args:
        cases: the cases to print, one per question.
        times: how often each question occurs.
        statuses: of all cases found.
        language: ru or en.
        columns: those of the conditions; of them the line has the numbers.
        show_all: also print the relevant and the retrieved passages of each.
    """
    console, words = make_console(), texts("cases", language)
    console.print(_describe_statuses(statuses, language), style="bold", soft_wrap=True)
    if (n_shown := sum(times)) < len(statuses):
        console.print(words["found"].format(n=n_shown, total=len(statuses)), style="dim", soft_wrap=True)
    for case, n in zip(cases.to_pylist(), times, strict=True):
        line = " ".join((case["question"] or case.get("text") or "").split())  # a chunk of tier 0 has no question
        count = f" ×{n}" if n > 1 else ""
        question = clean(line if len(line) <= MAX_QUESTION else line[:MAX_QUESTION] + "…")
        console.print(
            f"[bold]{clean(case['case_id'])}[/]  {question}{count}  {_describe_case(case, columns, language)}",
            soft_wrap=True,
        )
        for name in ("relevant", "retrieved") if show_all else ():
            if case.get(name) is not None:
                console.print(f"  [dim]{words[name]}[/] {clean(join_first(case[name]) or '—')}")


def _describe_case(case: Mapping[str, Any], columns: Sequence[str], language: str) -> str:
    """Return the values of number columns, bad ones marked, and where the answer fails, or else the status."""
    parts = []
    for name in columns:
        if isinstance(value := case[name], int | float) and not isinstance(value, bool):
            number = f"{clean(name)} {format_metric(name, value)}"
            parts.append(f"[yellow]✗ {number}[/]" if _is_bad(name, value) else f"[dim]{number}[/]")
    if case.get("failure") is not None:
        parts.append(f"[yellow]✗ {texts('failures', language)[case['failure']]}[/]")
    if not parts or case["status"] not in MEASURED_STATUSES:
        reason = "" if case["reason"] is None else f": {told(case['reason'], language)}"
        parts.append(f"[dim]{clean(case['status'] + reason)}[/]")
    return "  ".join(parts)


def _is_bad(column: str, value: float) -> bool:
    """Return whether a value of a case has a bad grade; of a share without grades, whether it is the worst."""
    metric = METRICS.get(column) or METRICS.get(f"avg_{column}")
    if metric is None:
        return False
    if metric.thresholds:
        return grade(metric.name, value) in BAD_GRADES
    return metric.unit == "share" and value == {"higher": metric.low, "lower": metric.high}.get(metric.better)


def _describe_statuses(statuses: Sequence[str], language: str) -> str:
    """Return how many cases there are and were measured, and why the others were not."""
    words, names = texts("cases", language), texts("statuses", language)
    if not statuses:
        return words["found none"]
    n_measured = sum(status in MEASURED_STATUSES for status in statuses)
    counts = Counter(status for status in statuses if status not in MEASURED_STATUSES).most_common()
    sentences = [words["counts"].format(total=len(statuses), measured=n_measured)]
    if counts:
        sentences.append(words["unmeasured"].format(why=", ".join(f"{names[status]} {n}" for status, n in counts)))
    return " ".join(sentences)


def print_load(report: "LoadReport", ready: "Sequence[TierReadiness]", language: str, command: str | None) -> None:
    """Print what was loaded, and what can be measured: by the command for such a file, or by the first that can."""
    console, words = make_console(), texts("load", language)
    columns = ("read", "added", "updated", "skipped")
    table = Table(clean(report.source), *(words[name] for name in columns), box=None)
    for name, counts in (("questions", report.questions), ("chunks", report.chunks)):
        table.add_row(words[name], *(f"{n}" for n in (counts.read, counts.added, counts.updated, counts.skipped)))
    console.print(table)
    for problem in report.problems:
        console.print(clean(told(problem, language)), style="yellow")
    first = next((tier for tier in ready if tier.command), None)
    if command and first:
        console.print(words["evaluate"].format(command=f"yarus run {command} --source {report.source}"))
    elif first:
        console.print(words["evaluate"].format(command=first.command))
    else:
        for line in list_ready_lines(ready, language):
            console.print(line, soft_wrap=True)


def list_ready_lines(ready: "Iterable[TierReadiness]", language: str) -> Iterator[str]:
    """Yield what can be measured, one line per tier, and what is missing for the others."""
    words = texts("readiness", language)
    causes: dict[str, list[str]] = {}
    for readiness in ready:
        name = get_tier_name(readiness.tier, language)
        if readiness.missing is None:
            unit = words["of passages" if readiness.tier == "tier0" else "of questions"].format(n=readiness.questions)
            yield f"[green]+[/] {name} ({unit}): {clean(readiness.command or '')}"
        else:
            causes.setdefault(words[readiness.missing].format(**readiness.values), []).append(name)
    for cause, tiers in causes.items():
        yield f"[yellow]-[/] {'; '.join(tiers)}: {cause}"


def print_checks(checks: "Sequence[Check]", language: str) -> None:
    """Print the results of the doctor's checks."""
    console, words = make_console(), texts("doctor", language)
    width = max(map(len, words.values())) + 1
    for check in checks:
        mark = "[green]{}[/]" if check.exit_code == 0 else "[yellow]{}[/]"
        mark = mark.format(f"{words['ok' if check.exit_code == 0 else 'problem']:<{width}}")
        subject, finding = (clean(told(text, language)) for text in (check.check_name, check.check_result))
        console.print(f"{mark} {subject}: {finding}", soft_wrap=True)
        if check.recommended_action:
            console.print(f"{'':<{width}} {clean(told(check.recommended_action, language))}", soft_wrap=True)

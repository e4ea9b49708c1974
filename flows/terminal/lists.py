"""Tables of what there is: evaluations, cases, plans, checks, and what was loaded."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table
from sqlalchemy.engine import RowMapping

from yarus.flows.terminal.printing import LONGEST, coloured, first_few, new_console, plain, tier_name
from yarus.tasks.config.texts import texts
from yarus.tasks.config.texts.messages import told
from yarus.tasks.evaluation.config import called

if TYPE_CHECKING:
    import pyarrow as pa

    from yarus.db.loading.fill import LoadReport
    from yarus.deployments.upkeep.doctor_sources import Check
    from yarus.deployments.upkeep.readiness import Ready


def print_plans(document: Mapping[str, Any], language: str) -> None:
    """What the calls of each tier would take: the document of `yarus.flows.before.dry_run.Plans`."""
    words = texts("plans", language)
    columns = ("tier", "cases", "role", "calls", "tokens in", "tokens out", "cost", "seconds")
    table = Table(*(words[name] for name in columns), box=None)
    for plan in document["plans"]:
        for role, taken in plan["roles"].items():
            figures = (taken[name] for name in ("calls", "tokens_in", "tokens_out", "cost_usd", "seconds"))
            table.add_row(plan["tier"], str(plan["cases"]), role, *("?" if n is None else f"{n:,.6g}" for n in figures))
        if not plan["roles"]:
            table.add_row(plan["tier"], "", words["no model"])
    new_console().print(table, words["unknown"])


def print_runs(rows: Iterable[RowMapping], language: str) -> None:
    """The list of evaluations."""
    words, states = texts("runs", language), texts("states", language)
    columns = ("id", "state", "source", "cases", "coverage", "started", "called")
    table = Table(*(words[name] for name in columns), box=None)
    for row in rows:
        coverage = "" if row["coverage"] is None else f"{row['coverage']:.1%}"
        started = f"{row['started_at']:%Y-%m-%d %H:%M}"
        state, n, names = coloured(states[row["state"]], row["state"]), str(row["n_cases"] or ""), plain(called(row))
        table.add_row(row["id"], state, plain(row["source"]), n, coverage, started, names)
    console = new_console()
    console.print(table if table.row_count else words["none"])


def print_cases(cases: "pa.Table", times: Sequence[int], total: int, language: str) -> None:
    """The first cases of so many, one paragraph each: the question, how often it was asked, or the embedded text."""
    console, words = new_console(), texts("cases", language)
    for case, n in zip(cases.to_pylist(), times, strict=True):
        status = case["status"] if case["reason"] is None else f"{case['status']}: {told(case['reason'], language)}"
        console.print(f"[bold]{plain(case['case_id'])}[/] [dim]{plain(status)}[/]")
        said = " ".join((case["question"] or case.get("text") or "").split())  # a chunk of tier 0 asks nothing
        often = f" ×{n}" if n > 1 else ""
        console.print(f"  {plain(said if len(said) <= LONGEST else said[:LONGEST] + '…')}{often}")
        for name in ("relevant", "retrieved"):
            if case.get(name) is not None:
                console.print(f"  [dim]{words[name]}[/] {plain(first_few(case[name]) or '—')}")
    console.print(words["shown"].format(n=sum(times), total=total), style="dim")


def print_load(report: "LoadReport", ready: "Sequence[Ready]", language: str, how: str | None) -> None:
    """What a load did, and what can be measured now: by the command for such a file, or by the first that can."""
    console, words = new_console(), texts("load", language)
    columns = ("read", "added", "updated", "skipped")
    table = Table(plain(report.source), *(words[name] for name in columns), box=None)
    for name, counts in (("questions", report.questions), ("chunks", report.chunks)):
        table.add_row(words[name], *(f"{n}" for n in (counts.read, counts.added, counts.updated, counts.skipped)))
    console.print(table)
    for problem in report.problems:
        console.print(plain(told(problem, language)), style="yellow")
    first = next((one for one in ready if one.command), None)
    if how and first:
        console.print(words["evaluate"].format(command=f"yarus run {how} --source {report.source}"))
    elif first:
        console.print(words["evaluate"].format(command=first.command))
    else:
        for line in ready_lines(ready, language):
            console.print(line, soft_wrap=True)


def ready_lines(ready: "Iterable[Ready]", language: str) -> Iterator[str]:
    """What can be measured, a tier a line, and what is missing for the others."""
    words = texts("readiness", language)
    causes: dict[str, list[str]] = {}
    for one in ready:
        tier = tier_name(one.tier, language)
        if one.missing is None:
            unit = words["of passages" if one.tier == "tier0" else "of questions"].format(n=one.questions)
            yield f"[green]+[/] {tier}: {unit}. {plain(one.command or '')}"
        else:
            causes.setdefault(words[one.missing].format(**one.values), []).append(tier)
    for cause, tiers in causes.items():
        yield f"[yellow]-[/] {'; '.join(tiers)}: {cause}"


def print_checks(checks: "Sequence[Check]", language: str) -> None:
    """What the doctor found."""
    console, words = new_console(), texts("doctor", language)
    width = max(map(len, words.values())) + 1
    for check in checks:
        mark = "[green]{}[/]" if check.code == 0 else "[yellow]{}[/]"
        mark = mark.format(f"{words['ok' if check.code == 0 else 'problem']:<{width}}")
        what, found = (plain(told(text, language)) for text in (check.what, check.found))
        console.print(f"{mark} {what}: {found}", soft_wrap=True)
        if check.way_out:
            console.print(f"{'':<{width}} {plain(told(check.way_out, language))}", soft_wrap=True)

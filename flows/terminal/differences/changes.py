"""What changed since the evaluations before, for people."""

from collections.abc import Collection, Iterable, Sequence
from typing import get_args

from rich.console import Console
from sqlalchemy import Engine

from yarus.db import journal
from yarus.flows.terminal.summary import new_console, plain
from yarus.tasks.comparison.changes.statements import line, statements
from yarus.tasks.comparison.documents import Statement, StatementKind
from yarus.tasks.comparison.since import since_accepted
from yarus.tasks.texts import texts

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

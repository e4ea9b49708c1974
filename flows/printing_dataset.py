"""What `yarus dataset` finds, for people, on stdout."""

from typing import Any

from rich.markup import escape
from rich.table import Table

from flows.printing import _console
from flows.words_dataset import WORDS

Document = dict[str, Any]
SHOWN = 10


def print_set(document: Document, language: str) -> None:
    """One frozen set, and how to evaluate it."""
    words = WORDS[language]
    console = _console()
    console.print(words["frozen"].format(**document))
    console.print(words["evaluate"].format(**document), soft_wrap=True)


def print_sets(documents: list[Document], language: str) -> None:
    """All frozen sets."""
    words = WORDS[language]
    table = Table(*(words[name] for name in ("set", "source", "n cases", "hash", "rule", "frozen at")), box=None)
    for one in documents:
        rule = ", ".join(f"{name} {value}" for name, value in one["rule"].items())
        cells = (one["name"], one["source"], str(one["n_cases"]), one["sha256"][:12], rule, one["frozen_at"][:16])
        table.add_row(*map(escape, cells))
    _console().print(table if documents else words["no sets"])


def print_difference(document: Document, language: str) -> None:
    """What changed from one set to another."""
    words = WORDS[language]
    console = _console()
    for kind in ("added", "removed", "reworded"):
        console.print(f"{words[kind]}: {len(document[kind])} {escape(_some(document[kind]))}")
    console.print(f"{words['relabelled']}: {len(document['relabelled'])}")
    for row in document["relabelled"][:SHOWN]:
        changes = "; ".join(f"{name}: {v['before']!r} -> {v['after']!r}" for name, v in row["labels"].items())
        console.print(f"  {escape(row['question_id'])}  {escape(changes)}", soft_wrap=True)


def print_split(document: Document, language: str) -> None:
    """Both halves, and what is in neither."""
    words = WORDS[language]
    for half in document["sets"]:
        print_set(half, language)
    if document["without_time"]:
        _console().print(words["without time"].format(n=document["without_time"]))


def print_audit(document: Document, language: str) -> None:
    """What looks wrong, with examples."""
    words = WORDS[language]
    console = _console()
    console.print(words["audited"].format(**document), style="bold")
    for kind in (name for name in document if isinstance(document[name], dict)):
        finding = document[kind]
        count = words["not looked for"] if finding["count"] is None else str(finding["count"])
        console.print(f"{words[kind]}: {count}", style="bold" if finding["count"] else "")
        if finding.get("reason"):
            console.print(f"  {words['no rankings']}", style="dim", soft_wrap=True)
        for place in finding["examples"]:
            rest = {name: value for name, value in place.items() if name not in ("question_id", "question")}
            more = ", ".join(f"{name} {value}" for name, value in rest.items())
            console.print(f"  {escape(place['question_id'])}  {escape(place['question'])}  [dim]{escape(more)}[/]")


def _some(ids: list[str]) -> str:
    return ", ".join(ids[:SHOWN]) + (" …" if len(ids) > SHOWN else "")

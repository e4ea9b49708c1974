"""What `yarus dataset` finds, for people, on stdout."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from yarus.flows.terminal.printing import first_few, new_console, plain
from yarus.tasks.cases.frozen_sets import FrozenSet, ListedSet, SetDifference, Split
from yarus.tasks.config.texts import texts
from yarus.tasks.config.texts.messages import told
from yarus.tasks.dataset.dataset_schema import (
    Audit,
    Drawn,
    Exported,
    Imported,
    LabelsImported,
    NuggetsMade,
    SourceAgreement,
    SynthesisResult,
)

SHOWN = 10


def print_set(document: FrozenSet, language: str) -> None:
    """One frozen set, and how to evaluate it."""
    words = texts("dataset", language)
    console = new_console()
    console.print(words["frozen"].format(**document))
    console.print(words["evaluate"].format(**document), soft_wrap=True)


def print_sets(documents: Sequence[ListedSet], language: str) -> None:
    """All frozen sets."""
    words = texts("dataset", language)
    table = Table(*(words[name] for name in ("set", "source", "n cases", "hash", "rule", "frozen at")), box=None)
    for one in documents:
        rule = ", ".join(f"{name} {value}" for name, value in one["rule"].items())
        cells = (one["name"], one["source"], str(one["n_cases"]), one["sha256"][:12], rule, one["frozen_at"][:16])
        table.add_row(*map(plain, cells))
    new_console().print(table if documents else words["no sets"])


def print_difference(document: SetDifference, language: str) -> None:
    """What changed from one set to another."""
    words = texts("dataset", language)
    console = new_console()
    changed = {"added": document["added"], "removed": document["removed"], "reworded": document["reworded"]}
    for kind, ids in changed.items():
        console.print(f"{words[kind]}: {len(ids)} {plain(first_few(ids))}")
    console.print(f"{words['relabelled']}: {len(document['relabelled'])}")
    for row in document["relabelled"][:SHOWN]:
        changes = "; ".join(f"{name}: {v['before']!r} -> {v['after']!r}" for name, v in row["labels"].items())
        console.print(f"  {plain(row['question_id'])}  {plain(changes)}", soft_wrap=True)


def print_split(document: Split, language: str) -> None:
    """Both halves, and what is in neither."""
    words = texts("dataset", language)
    for half in document["sets"]:
        print_set(half, language)
    if document["without_time"]:
        new_console().print(words["without time"].format(n=document["without_time"]))


def print_audit(document: Audit, language: str) -> None:
    """What looks wrong, with examples."""
    words = texts("dataset", language)
    console = new_console()
    console.print(words["audited"].format(**document), style="bold")
    found: Mapping[str, Any] = document
    twins = document["twins"]
    for kind, finding in ((name, part) for name, part in found.items() if isinstance(part, dict) and name != "twins"):
        count = words["not looked for"] if finding["count"] is None else str(finding["count"])
        console.print(f"{words[kind]}: {count}", style="bold" if finding["count"] else "")
        if finding.get("reason"):
            console.print(f"  {words['no rankings']}", style="dim", soft_wrap=True)
        for place in finding["examples"]:
            rest = {name: value for name, value in place.items() if name not in ("question_id", "question")}
            more = ", ".join(f"{words[f'place {name}']} {_told(value, words)}" for name, value in rest.items())
            console.print(f"  {plain(place['question_id'])}  {plain(place['question'])}  [dim]{plain(more)}[/]")
    console.print(words["twins"].format(n=twins["count"], pages=twins["pages"]), style="bold" if twins["count"] else "")
    for chunks in twins["examples"]:
        console.print(f"  {plain(first_few(chunks))}", soft_wrap=True)


def print_synthesis(document: SynthesisResult, language: str) -> None:
    """What was made, why the rest was not, and what to do with it."""
    words = texts("dataset", language)
    console = new_console()
    console.print(words["synthesized"].format(**document), style="bold")
    kinds = ", ".join(f"{words[f'kind {kind}']} {n}" for kind, n in document["kinds"].items())
    console.print(f"{words['kinds']}: {kinds}")
    if document["rejected"]:
        why = ", ".join(f"{words[f'rejected {name}']} {n}" for name, n in document["rejected"].items())
        console.print(f"{words['rejected']}: {why}", soft_wrap=True)
    console.print(words["made by"].format(**document), style="dim", soft_wrap=True)
    for pair in document["examples"]:
        console.print(f"  {plain(pair['question'])}  [dim]{plain(pair['answer'])}[/]")
    if document["into"]:
        console.print(words["evaluate made"].format(**document))


def print_nuggets(document: NuggetsMade, language: str) -> None:
    """What was made, for how many questions not, and what to do with it."""
    words = texts("dataset", language)
    console = new_console()
    console.print(words["nuggets made"].format(**document), style="bold")
    if document["without_reference"]:
        console.print(words["without reference"].format(n=document["without_reference"]))
    if document["failed"]:
        n = sum(document["failed"].values())
        console.print(
            plain(words["nuggets failed"].format(n=n, reason=told(document["reason"] or "", language))), soft_wrap=True
        )
    console.print(plain(words["nuggets by"].format(**document)), style="dim", soft_wrap=True)
    console.print(words["measure nuggets"].format(**document), soft_wrap=True)


def print_exported(document: Exported, language: str) -> None:
    """Where the file is and what to do with it."""
    words = texts("dataset", language)
    console = new_console()
    console.print(words["exported"].format(**document), soft_wrap=True)
    console.print(words["then import"].format(**document), soft_wrap=True)


def print_drawn(document: Drawn, language: str) -> None:
    """Where the file is, of what, and what to do with it."""
    words = texts("dataset", language)
    console = new_console()
    console.print(plain(words["drawn"].format(**document)), soft_wrap=True)
    console.print(words["then import"].format(**document), soft_wrap=True)


def print_labels(document: LabelsImported, language: str) -> None:
    """What the file brought."""
    new_console().print(plain(texts("dataset", language)["labels imported"].format(**document)), soft_wrap=True)


def print_imported(document: Imported, language: str) -> None:
    """What the file brought."""
    words = texts("dataset", language)
    new_console().print(words["imported"].format(**document), soft_wrap=True)
    new_console().print(words["verdicts"].format(**document), soft_wrap=True)
    said = unit_text(document["unit"], document["n_labelled"], document["n_chunks"], language)
    if document["unit"] != document["unit_before"]:
        said = f"{words['unit changed'].format(**document)} {said}"
    if said:
        new_console().print(said, style="yellow", soft_wrap=True)


def unit_text(unit: str, labelled: int, chunks: int, language: str) -> str:
    """What evaluations count by default where some questions have labels of chunks and others of pages only."""
    if not 0 < chunks < labelled:
        return ""
    return texts("dataset", language)[f"by {unit}"].format(chunks=chunks, labelled=labelled, pages=labelled - chunks)


def print_agreement(document: SourceAgreement, language: str) -> None:
    """Kappa of every two annotators, by field."""
    words = texts("dataset", language)
    console = new_console()
    console.print(", ".join(f"{plain(name)}: {n}" for name, n in document["annotators"].items()))
    if not document["pairs"]:
        console.print(words["one annotator"])
        return
    table = Table(*(words[name] for name in ("annotators", "field", "n", "same", "kappa", "interval")), box=None)
    for pair in document["pairs"]:
        numbers = ["—" if number is None else f"{number:.3f}" for number in (pair["agreement"], pair["kappa"])]
        interval = "" if pair["ci_low"] is None else f"{pair['ci_low']:.3f} – {pair['ci_high']:.3f}"
        who = f"{pair['a']} / {pair['b']}"
        table.add_row(plain(who), words[f"field {pair['field']}"], str(pair["n"]), *numbers, interval)
    console.print(table)
    for field, of in document["alpha"].items():
        if of["alpha"] is not None:
            figures = {name: f"{value:.3f}" for name, value in of.items() if isinstance(value, float)}
            console.print(words["alpha"].format(field=words[f"field {field}"], n=of["n"], **figures), soft_wrap=True)


def _told(value: Any, words: dict[str, str]) -> str:
    """A part of a place: a code in words, a list by its members, anything else as it is."""
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "—"
    return words.get(f"code {value}", str(value))

"""Print the results of `yarus dataset` for people, on stdout."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from yarus.flows.terminal.printing import clean, join_first, make_console
from yarus.tasks.cases.frozen_sets import CaseSetDiff, CaseSetSplit, FrozenSet, ListedSet
from yarus.tasks.config.texts import texts
from yarus.tasks.config.texts.messages import told
from yarus.tasks.dataset.dataset_schema import (
    AnnotationExport,
    AnnotationImport,
    AnnotatorAgreement,
    LabelAudit,
    LabelSample,
    LabelSampleImport,
    NuggetGeneration,
    SynthesisResult,
)

MAX_EXAMPLES = 10


def print_set(document: FrozenSet, language: str) -> None:
    """Print a frozen set, and how to evaluate it."""
    words = texts("dataset", language)
    console = make_console()
    console.print(words["frozen"].format(**document))
    console.print(words["evaluate"].format(**document), soft_wrap=True)


def print_sets(documents: Sequence[ListedSet], language: str) -> None:
    """Print all frozen sets."""
    words = texts("dataset", language)
    table = Table(*(words[name] for name in ("set", "source", "n cases", "hash", "rule", "frozen at")), box=None)
    for row in documents:
        rule = ", ".join(f"{name} {value}" for name, value in row["rule"].items())
        cells = (row["name"], row["source"], str(row["n_cases"]), row["sha256"][:12], rule, row["frozen_at"][:16])
        table.add_row(*map(clean, cells))
    make_console().print(table if documents else words["no sets"])


def print_difference(document: CaseSetDiff, language: str) -> None:
    """Print what changed from one set to another."""
    words = texts("dataset", language)
    console = make_console()
    changed = {"added": document["added"], "removed": document["removed"], "reworded": document["reworded"]}
    for kind, ids in changed.items():
        console.print(f"{words[kind]}: {len(ids)} {clean(join_first(ids))}")
    console.print(f"{words['relabelled']}: {len(document['relabelled'])}")
    for row in document["relabelled"][:MAX_EXAMPLES]:
        changes = "; ".join(f"{key}: {label['before']!r} -> {label['after']!r}" for key, label in row["labels"].items())
        console.print(f"  {clean(row['question_id'])}  {clean(changes)}", soft_wrap=True)


def print_split(document: CaseSetSplit, language: str) -> None:
    """Print both halves, and how many questions are in neither."""
    words = texts("dataset", language)
    for half in document["sets"]:
        print_set(half, language)
    if document["without_time"]:
        make_console().print(words["without time"].format(n=document["without_time"]))


def print_audit(document: LabelAudit, language: str) -> None:
    """Print what looks wrong, with examples."""
    words = texts("dataset", language)
    console = make_console()
    console.print(words["audited"].format(**document), style="bold")
    parts: Mapping[str, Any] = document
    twins = document["duplicate_chunks"]
    for kind, finding in (
        (name, part) for name, part in parts.items() if isinstance(part, dict) and name != "duplicate_chunks"
    ):
        count = words["not looked for"] if finding["count"] is None else str(finding["count"])
        console.print(f"{words[kind]}: {count}", style="bold" if finding["count"] else "")
        if finding.get("reason"):
            console.print(f"  {words['no rankings']}", style="dim", soft_wrap=True)
        for case in finding["examples"]:
            details = {name: value for name, value in case.items() if name not in ("question_id", "question")}
            extra = ", ".join(f"{words[f'place {name}']} {_format(value, words)}" for name, value in details.items())
            console.print(f"  {clean(case['question_id'])}  {clean(case['question'])}  [dim]{clean(extra)}[/]")
    console.print(words["twins"].format(n=twins["count"], pages=twins["pages"]), style="bold" if twins["count"] else "")
    for chunks in twins["examples"]:
        console.print(f"  {clean(join_first(chunks))}", soft_wrap=True)


def print_synthesis(document: SynthesisResult, language: str) -> None:
    """Print what was generated, why the rest was rejected, and what to do with it."""
    words = texts("dataset", language)
    console = make_console()
    console.print(words["synthesized"].format(**document), style="bold")
    kinds = ", ".join(f"{words[f'kind {kind}']} {n}" for kind, n in document["kinds"].items())
    console.print(f"{words['kinds']}: {kinds}")
    if document["rejected"]:
        why = ", ".join(f"{words[f'rejected {name}']} {n}" for name, n in document["rejected"].items())
        console.print(f"{words['rejected']}: {why}", soft_wrap=True)
    console.print(words["made by"].format(**document), style="dim", soft_wrap=True)
    for pair in document["examples"]:
        console.print(f"  {clean(pair['question'])}  [dim]{clean(pair['answer'])}[/]")
    if document["into"]:
        console.print(words["evaluate made"].format(**document))


def print_nuggets(document: NuggetGeneration, language: str) -> None:
    """Print how many nuggets were made, for how many questions that failed, and what to do next."""
    words = texts("dataset", language)
    console = make_console()
    console.print(words["nuggets made"].format(**document), style="bold")
    if document["without_reference"]:
        console.print(words["without reference"].format(n=document["without_reference"]))
    if document["failed"]:
        n = sum(document["failed"].values())
        console.print(
            clean(words["nuggets failed"].format(n=n, reason=told(document["reason"] or "", language))), soft_wrap=True
        )
    console.print(clean(words["nuggets by"].format(**document)), style="dim", soft_wrap=True)
    console.print(words["measure nuggets"].format(**document), soft_wrap=True)


def print_exported(document: AnnotationExport, language: str) -> None:
    """Print where the file is, and what to do with it."""
    words = texts("dataset", language)
    console = make_console()
    console.print(words["exported"].format(**document), soft_wrap=True)
    console.print(words["then import"].format(**document), soft_wrap=True)


def print_drawn(document: LabelSample, language: str) -> None:
    """Print where the file is, what was drawn, and what to do with it."""
    words = texts("dataset", language)
    console = make_console()
    console.print(clean(words["drawn"].format(**document)), soft_wrap=True)
    console.print(words["then import"].format(**document), soft_wrap=True)


def print_labels(document: LabelSampleImport, language: str) -> None:
    """Print how many labels the file added."""
    make_console().print(clean(texts("dataset", language)["labels imported"].format(**document)), soft_wrap=True)


def print_imported(document: AnnotationImport, language: str) -> None:
    """Print what the file added."""
    words = texts("dataset", language)
    make_console().print(words["imported"].format(**document), soft_wrap=True)
    make_console().print(words["verdicts"].format(**document), soft_wrap=True)
    message = describe_label_unit(document["unit"], document["n_labelled"], document["n_chunks"], language)
    if document["unit"] != document["unit_before"]:
        message = f"{words['unit changed'].format(**document)} {message}"
    if message:
        make_console().print(message, style="yellow", soft_wrap=True)


def describe_label_unit(unit: str, labelled: int, chunks: int, language: str) -> str:
    """Return what evaluations count by default, if some questions have labels of chunks and others of pages only."""
    if not 0 < chunks < labelled:
        return ""
    return texts("dataset", language)[f"by {unit}"].format(chunks=chunks, labelled=labelled, pages=labelled - chunks)


def print_agreement(document: AnnotatorAgreement, language: str) -> None:
    """Print kappa for every pair of annotators, by field."""
    words = texts("dataset", language)
    console = make_console()
    console.print(", ".join(f"{clean(name)}: {n}" for name, n in document["annotators"].items()))
    if not document["pairs"]:
        console.print(words["one annotator"])
        return
    table = Table(*(words[name] for name in ("annotators", "field", "n", "same", "kappa", "interval")), box=None)
    for pair in document["pairs"]:
        numbers = ["—" if number is None else f"{number:.3f}" for number in (pair["agreement"], pair["kappa"])]
        interval = "" if pair["ci_low"] is None else f"{pair['ci_low']:.3f} – {pair['ci_high']:.3f}"
        pair_name = f"{pair['a']} / {pair['b']}"
        table.add_row(clean(pair_name), words[f"field {pair['field']}"], str(pair["n"]), *numbers, interval)
    console.print(table)
    for field, alpha in document["alpha"].items():
        if alpha["alpha"] is not None:
            figures = {name: f"{value:.3f}" for name, value in alpha.items() if isinstance(value, float)}
            console.print(words["alpha"].format(field=words[f"field {field}"], n=alpha["n"], **figures), soft_wrap=True)


def _format(value: Any, words: dict[str, str]) -> str:
    """Format a detail of an example: a code in words, a list by its members, anything else unchanged."""
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "—"
    return words.get(f"code {value}", str(value))

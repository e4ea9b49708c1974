"""Print what `yarus init` found and did, on stdout."""

from collections.abc import Iterable, Mapping

from yarus.db.importers.recognise import explain_unused_columns
from yarus.deployments.upkeep.setup.files import FoundFile
from yarus.deployments.upkeep.setup.plan import SetupResult
from yarus.flows.terminal.lists import list_ready_lines
from yarus.flows.terminal.printing import clean, make_console
from yarus.tasks.config.texts import texts
from yarus.tasks.config.texts.messages import told

MAX_EXAMPLE = 60
"""Characters of an example."""
LONG_PASSAGE = 6_000
"""Median characters of a passage beyond which chunking is worth a comparison."""


def print_plan(setup: SetupResult, language: str) -> None:
    """Print the kind of each file, the meaning of each column, and what would be written."""
    words, console = texts("init", language), make_console()
    sizes = {"n": len(setup.files), "tables": len(setup.tables), "source": setup.source}
    answer = words["answer files"] if setup.files else words["answer tables"]
    console.print(answer.format(**sizes), style="bold", soft_wrap=True)
    if n_doubtful := sum(len(file.ambiguous_columns) for file in setup.files) + sum(
        len(table.ambiguous_columns) for table in setup.tables
    ):
        console.print(words["answer doubtful"].format(n=n_doubtful), style="bold yellow", soft_wrap=True)
    for file in setup.files:
        _print_file(file, setup.source, language)
    for table in setup.tables:
        console.print(f"[bold]{clean(table.table)}[/]: {words[table.kind].format(source=setup.source)}")
        _print_columns(table.mapping, table.ambiguous_columns, (), language)
        if table.view:
            console.print(words["view"].format(columns=", ".join(table.missing_columns)), soft_wrap=True)
            console.print(clean(table.view), soft_wrap=True)
    if setup.database and len(setup.tables) == 1:
        console.print(words["no passages"], soft_wrap=True)
    if setup.system:
        answer = clean(setup.system.answer[:MAX_EXAMPLE])
        console.print(f"[bold]{clean(setup.system.address)}[/]: {words['answers'].format(said=answer)}", soft_wrap=True)
        if not setup.system.urls:
            console.print(words["no urls"], style="yellow", soft_wrap=True)
    for line in setup.env.added:
        console.print(f"{setup.env.file}: + {clean(line)}", soft_wrap=True)
    for name in setup.env.kept:
        console.print(words["kept"].format(file=setup.env.file, name=name), style="yellow", soft_wrap=True)


def print_result(setup: SetupResult, language: str) -> None:
    """Print what was loaded, and what can be measured now."""
    words, console = texts("init", language), make_console()
    ready = [tier for tier in setup.readiness if tier.missing is None]
    if ready:
        command = next((tier.command for tier in ready if tier.command), "yarus doctor")
        numbers = {"n": len(ready), "total": len(setup.readiness), "command": clean(command)}
        console.print(f"\n[bold]{words['answer measurable'].format(**numbers)}[/]", soft_wrap=True)
    elif setup.readiness:
        console.print(f"\n[bold]{words['answer nothing']}[/]", soft_wrap=True)
    for file, report in zip(setup.files, setup.loaded, strict=True):
        kinds = (
            ("questions read", report.questions, ("questions", "set")),
            ("passages read", report.chunks, ("chunks",)),
        )
        for key, counts, file_kinds in kinds:
            if counts.read or file.kind in file_kinds:
                numbers = {"added": counts.added, "updated": counts.updated, "skipped": counts.skipped}
                console.print(words[key].format(file=clean(file.file), read=counts.read, **numbers), soft_wrap=True)
        for problem in (problem for problem in report.problems if problem not in file.notes):
            console.print(clean(told(problem, language)), style="yellow", soft_wrap=True)
    if setup.readiness:
        console.print(f"\n[bold]{words['measurable']}[/]")
    for line in list_ready_lines(setup.readiness, language):
        console.print(line, soft_wrap=True)
    if setup.tables and not setup.readiness:
        console.print(words["after the view"], soft_wrap=True)


def _print_file(file: FoundFile, source: str, language: str) -> None:
    words, console = texts("init", language), make_console()
    kind = words[file.kind].format(source=source)
    encoding = "" if file.encoding.startswith("utf-8") else f", {file.encoding}"
    shape = f" ({clean(file.shape)})" if file.shape else ""
    console.print(f"[bold]{clean(file.file)}[/]{encoding}{shape}: {kind}", soft_wrap=True)
    unused = [f"{name or words['no name']} ({value})" if value else name for name, value in file.unused.items()]
    _print_columns(file.mapping, file.ambiguous_columns, unused, language)
    for note in file.notes:
        console.print("  " + clean(told(note, language)), style="yellow", soft_wrap=True)
    if file.kind == "chunks" and file.characters > LONG_PASSAGE:
        console.print(words["long passages"].format(n=file.characters), soft_wrap=True)


def _print_columns(
    mapping: Mapping[str, str], doubtful: Mapping[str, list[str]], unused: Iterable[str], language: str
) -> None:
    words, console = texts("init", language), make_console()
    if mapping:
        console.print("  " + ", ".join(f"{ours} = {clean(column)}" for ours, column in mapping.items()), soft_wrap=True)
    for ours, theirs in doubtful.items():
        console.print(
            "  " + clean(told(explain_unused_columns(ours, theirs), language)), style="yellow", soft_wrap=True
        )
    if unused_columns := list(unused):
        console.print("  " + words["unused"].format(names=clean(", ".join(unused_columns))), soft_wrap=True)

"""What `yarus init` found and did, on stdout."""

from collections.abc import Iterable, Mapping

from yarus.db.importers.recognise import advise
from yarus.deployments.upkeep.setup.files import FoundFile
from yarus.deployments.upkeep.setup.plan import Begun
from yarus.flows.terminal.lists import ready_lines
from yarus.flows.terminal.printing import new_console, plain
from yarus.tasks.config.texts import texts
from yarus.tasks.config.texts.messages import told

SHOWN = 60
"""Characters of an example."""
LONG = 6_000
"""Characters of a passage in the middle, beyond which cutting is worth a comparison."""


def print_plan(found: Begun, language: str) -> None:
    """Which file is what, which column is which, and what would be written."""
    words, console = texts("init", language), new_console()
    for one in found.files:
        _print_file(one, found.source, language)
    for table in found.tables:
        console.print(f"[bold]{plain(table.table)}[/]: {words[table.kind].format(source=found.source)}")
        _print_columns(table.mapping, table.doubtful, (), language)
        if table.view:
            console.print(words["view"].format(columns=", ".join(table.lacking)), soft_wrap=True)
            console.print(plain(table.view), soft_wrap=True)
    if found.database and len(found.tables) == 1:
        console.print(words["no passages"], soft_wrap=True)
    if found.system:
        said = plain(found.system.answer[:SHOWN])
        console.print(f"[bold]{plain(found.system.address)}[/]: {words['answers'].format(said=said)}", soft_wrap=True)
        if not found.system.urls:
            console.print(words["no urls"], style="yellow", soft_wrap=True)
    for line in found.env.added:
        console.print(f"{found.env.file}: + {plain(line)}", soft_wrap=True)
    for name in found.env.kept:
        console.print(words["kept"].format(file=found.env.file, name=name), style="yellow", soft_wrap=True)


def print_begun(found: Begun, language: str) -> None:
    """What was loaded, and what can be measured now."""
    words, console = texts("init", language), new_console()
    for one, report in zip(found.files, found.loaded, strict=True):
        kinds = (
            ("questions read", report.questions, ("questions", "set")),
            ("passages read", report.chunks, ("chunks",)),
        )
        for what, counts, of_kind in kinds:
            if counts.read or one.kind in of_kind:
                numbers = {"added": counts.added, "updated": counts.updated, "skipped": counts.skipped}
                console.print(words[what].format(file=plain(one.file), read=counts.read, **numbers), soft_wrap=True)
        for problem in (problem for problem in report.problems if problem not in one.notes):
            console.print(plain(told(problem, language)), style="yellow", soft_wrap=True)
    if found.readiness:
        console.print(f"\n[bold]{words['measurable']}[/]")
    for line in ready_lines(found.readiness, language):
        console.print(line, soft_wrap=True)
    if found.tables and not found.readiness:
        console.print(words["after the view"], soft_wrap=True)


def _print_file(one: FoundFile, source: str, language: str) -> None:
    words, console = texts("init", language), new_console()
    kind = words[one.kind].format(source=source)
    encoding = "" if one.encoding.startswith("utf-8") else f", {one.encoding}"
    shape = f" ({plain(one.shape)})" if one.shape else ""
    console.print(f"[bold]{plain(one.file)}[/]{encoding}{shape}: {kind}", soft_wrap=True)
    unused = [f"{name or words['no name']} ({value})" if value else name for name, value in one.unused.items()]
    _print_columns(one.mapping, one.doubtful, unused, language)
    for note in one.notes:
        console.print("  " + plain(told(note, language)), style="yellow", soft_wrap=True)
    if one.kind == "chunks" and one.characters > LONG:
        console.print(words["long passages"].format(n=one.characters), soft_wrap=True)


def _print_columns(
    mapping: Mapping[str, str], doubtful: Mapping[str, list[str]], unused: Iterable[str], language: str
) -> None:
    words, console = texts("init", language), new_console()
    if mapping:
        console.print("  " + ", ".join(f"{ours} = {plain(theirs)}" for ours, theirs in mapping.items()), soft_wrap=True)
    for ours, several in doubtful.items():
        console.print("  " + plain(told(advise(ours, several), language)), style="yellow", soft_wrap=True)
    if left := list(unused):
        console.print("  " + words["unused"].format(names=plain(", ".join(left))), soft_wrap=True)

"""What moved between two evaluations, for people."""

from rich.console import Console
from rich.table import Table

from yarus.flows.terminal.printing import LONGEST, WIDTH, new_console, plain, tier_name
from yarus.tasks.comparison.changes import settings_text
from yarus.tasks.comparison.explanation.explanation_schema import ExplainedMetric, Explanation
from yarus.tasks.comparison.explanation.largest import sentences
from yarus.tasks.config.texts import texts
from yarus.tasks.config.texts.messages import told
from yarus.tasks.evaluation.numbers import shown


def print_explanation(document: Explanation, language: str) -> None:
    """The sentences, and of the first metric the topics, pages and questions that explain most.

    Args:
        document: as `yarus.tasks.comparison.explanation.explain.explain` gives it.
        language: ru or en.
    """
    words = texts("explanation", language)
    console = new_console()
    tier = tier_name(document["b"]["tier"], language)
    console.print(f"\n[bold]{words['title']}: {tier}[/] · {plain(document['b']['source'])}")
    console.print(f"{document['a']['evaluation_id']} → {document['b']['evaluation_id']}", style="dim")
    if changed := settings_text(document):
        console.print(plain(f"{texts('statements', language)['settings']}: {changed[language]}."), soft_wrap=True)
    if document["differs"]:
        console.print(words["differs"].format(parts=", ".join(part["part"] for part in document["differs"])))
    if document["corpus"] and any(n for fate, n in document["corpus"].items() if fate != "untouched"):
        named = texts("fates", language)
        console.print(words["corpus"] + ", ".join(f"{named[fate]} {n}" for fate, n in document["corpus"].items()))
    if document["n_relabelled"]:
        console.print(words["relabelled"].format(n=document["n_relabelled"]))
    for sentence in sentences(document, language):
        console.print(plain(sentence), soft_wrap=True)
    for name, why in document["not_split"].items():
        console.print(f"{words['not split']}: {name} ({plain(told(why, language))})", style="dim")
    for name, found in list(document["metrics"].items())[:1]:
        _print_largest(console, name, found, language)
    console.print(words[f"topics by {document['topics_by']}"], style="dim", soft_wrap=True)


def _print_largest(console: Console, name: str, found: ExplainedMetric, language: str) -> None:
    words = texts("explanation", language)
    if found["topics"]:
        table = Table(words["topic"], "A", "B", words["by questions"], words["by answers"], box=None, width=WIDTH)
        for one in found["topics"]:
            figures = (shown(name, one["questions"], sign=True), shown(name, one["answers"], sign=True))
            table.add_row(plain(one["topic"]), str(one["n_a"]), str(one["n_b"]), *figures)
        console.print(table)
    fates = texts("fates", language)
    for page in found["pages"]:
        became = f" ({fates[page['fate'] or 'untouched']})" if page["fate"] not in (None, "untouched") else ""
        said = words["page"].format(n=page["n"], part=shown(name, page["answers"], sign=True))
        console.print(f"  {plain(page['page'])}{became}: {said}", soft_wrap=True)
    for case in found["cases"]:
        values = f"{shown(name, case['before'])} → {shown(name, case['after'])}"
        console.print(f"  {plain(case['case_id'])}  {values}  {plain((case['question'] or '')[:LONGEST])}")

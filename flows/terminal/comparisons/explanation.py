"""Print for people why metrics moved between two evaluations."""

from rich.console import Console
from rich.table import Table

from yarus.flows.terminal.printing import MAX_QUESTION, WIDTH, clean, get_tier_name, make_console
from yarus.tasks.comparison.changes import changed_settings_text, is_same_evaluation
from yarus.tasks.comparison.explanation.explanation_schema import ExplainedMetric, Explanation
from yarus.tasks.comparison.explanation.largest_changes import (
    answer_sentence,
    explanation_sentences,
    find_main_change,
)
from yarus.tasks.config.former_names import present_setting
from yarus.tasks.config.texts import texts
from yarus.tasks.config.texts.messages import told
from yarus.tasks.evaluation.number_format import format_metric


def print_explanation(document: Explanation, language: str) -> None:
    """Print which metric changed and mostly why, then the explanation, and what explains most of that metric.

    Args:
        document: returned by `yarus.tasks.comparison.explanation.explain.explain`.
        language: ru or en.
    """
    words = texts("explanation", language)
    console = make_console()
    console.print()
    if is_same_evaluation(document):
        line = texts("comparison", language)["same evaluation"].format(id=document["b"]["evaluation_id"])
        console.print(clean(line), soft_wrap=True)
        return
    if answer := answer_sentence(document, language):
        console.print(clean(answer), style="bold", soft_wrap=True)
    tier = get_tier_name(document["b"]["tier"], language)
    console.print(f"{words['title']}: {tier} · {clean(document['b']['source'])}")
    console.print(f"{document['a']['evaluation_id']} → {document['b']['evaluation_id']}", style="dim")
    if changed := changed_settings_text(document):
        console.print(clean(f"{texts('statements', language)['settings']}: {changed[language]}."), soft_wrap=True)
    if document["key_differences"]:
        parts = ", ".join(present_setting(part["part"]) for part in document["key_differences"])
        console.print(words["differs"].format(parts=parts))
    if document["corpus"] and any(n for fate, n in document["corpus"].items() if fate != "untouched"):
        fate_names = texts("fates", language)
        console.print(words["corpus"] + ", ".join(f"{fate_names[fate]} {n}" for fate, n in document["corpus"].items()))
    if document["n_relabelled"]:
        console.print(words["relabelled"].format(n=document["n_relabelled"]))
    for sentence in explanation_sentences(document, language):
        console.print(clean(sentence), soft_wrap=True)
    for name, why in document["not_decomposed"].items():
        console.print(f"{words['not split']}: {name} ({clean(told(why, language))})", style="dim")
    if main := find_main_change(document):
        _print_largest(console, main, document["metrics"][main], language)
    console.print(words[f"topics by {document['topic_source']}"], style="dim", soft_wrap=True)


def _print_largest(console: Console, name: str, metric: ExplainedMetric, language: str) -> None:
    words = texts("explanation", language)
    if metric["topics"]:
        table = Table(words["topic"], "A", "B", words["by questions"], words["by answers"], box=None, width=WIDTH)
        for row in metric["topics"]:
            figures = (format_metric(name, row["questions"], sign=True), format_metric(name, row["answers"], sign=True))
            table.add_row(clean(row["topic"]), str(row["n_a"]), str(row["n_b"]), *figures)
        console.print(table)
    fates = texts("fates", language)
    for page in metric["pages"]:
        fate = (
            f" ({fates[page['page_change'] or 'untouched']})" if page["page_change"] not in (None, "untouched") else ""
        )
        text = words["page"].format(n=page["n"], part=format_metric(name, page["answers"], sign=True))
        console.print(f"  {clean(page['page'])}{fate}: {text}", soft_wrap=True)
    for case in metric["cases"]:
        values = f"{format_metric(name, case['before'])} → {format_metric(name, case['after'])}"
        console.print(f"  {clean(case['case_id'])}  {values}  {clean((case['question'] or '')[:MAX_QUESTION])}")

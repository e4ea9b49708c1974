"""The exam of a judge for people, on stdout: prompt by prompt, and which kinds of damage it sees."""

from rich.table import Table

from yarus.tasks.results.exam.words import exam_tables
from yarus.tasks.results.summary import EvaluationSummary
from yarus.tasks.texts import texts


def exam_printed(summary: EvaluationSummary, language: str) -> tuple[Table, Table]:
    """Two tables: the prompts with their figures and verdicts, and the kinds of answers."""
    words, found = texts("exam", language), exam_tables(summary)
    heads = (words[name] for name in ("prompt", "auc", "caught", "passed", "verdict"))
    prompts = Table(*heads, title=words["title"], box=None, title_justify="left", title_style="bold")
    for row in found.prompts:
        prompts.add_row(row.prompt, row.auc, row.caught, row.passed, row.verdict[language])
    kinds = Table(
        "", *(row.prompt for row in found.prompts),
        title=words["kinds"], box=None, title_justify="left", title_style="bold",
    )  # fmt: skip
    for kind in found.kinds:
        kinds.add_row(kind.name[language], *kind.hits)
    return prompts, kinds

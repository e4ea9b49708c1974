"""The columns of an annotation file: their order and headings, and what people may write in them.

What stands after a colon in a heading explains it and may be left out.
"""

from collections.abc import Sequence

from yarus.tasks.dataset.annotation.messages import said
from yarus.tasks.dataset.annotation.spreadsheets import Cell
from yarus.tasks.dataset.annotation.workbook import Look, Passage
from yarus.tasks.texts import LANGUAGES, texts

COLUMNS: tuple[str, ...] = ("question_id", "source", "why", "question", "answer", "answer_of", "other_answers")
COLUMNS += ("reference", "retrieved", "nuggets", "question_ok", "answer_ok", "relevant", "show", "notes")
YES_NO = ("question_ok", "answer_ok", "show")
ASKED = (*YES_NO, "relevant", "notes")
VERDICTS = (*ASKED, "nuggets")
"""What people may say: the nuggets are there already, to be edited."""
NEEDED = ("question_id", "source", "answer_of", *ASKED)
YES = {"да", "д", "yes", "y", "1", "true", "истина", "+", "верно", "ok"}
NO = {"нет", "н", "no", "n", "0", "false", "ложь", "-", "неверно"}
NONE = {"нет", "none", "no", "-", "0", "ни один", "ничего"}


def headings(language: str) -> list[str]:
    """The header of a file."""
    return [texts("annotation.columns", language)[name] for name in COLUMNS]


def heading(name: str, language: str) -> str:
    """What a column is called, without what explains it."""
    return texts("annotation.columns", language)[name].partition(":")[0]


def look(passages: Sequence[Passage], language: str) -> Look:
    """What the workbook has beside the table."""
    said = texts("annotation.workbook", language)
    asked = [COLUMNS.index(name) for name in VERDICTS]
    return Look(
        title=said["questions"],
        choices={COLUMNS.index(name): (said["yes"], said["no"]) for name in YES_NO},
        asked=frozenset(asked),
        guide=(said["guide"], said["how"].strip().split("\n")),
        passages=(said["passages"], said["passage columns"].split("|"), passages),
        named_in=COLUMNS.index("relevant"),
    )


def reason(name: str, language: str) -> str:
    """Why a question is asked; see `tasks/dataset/annotation/priority.py`."""
    return texts("annotation.reasons", language)[name]


def positions(header: list[str]) -> dict[str, int]:
    """Where each of our columns stands, whatever the language and order; columns of people's own are passed over."""
    names = {_short(heading(name, language)): name for language in LANGUAGES for name in COLUMNS}
    found: dict[str, int] = {}
    for position, text in enumerate(header):
        name = names.get(_short(text))
        if name is not None:
            found.setdefault(name, position)
    return found


def yes_no(cell: Cell) -> bool | None:
    """What a cell says.

    Raises:
        ValueError: neither yes nor no.
    """
    word = cell.text.strip(" .!").casefold()
    if not word:
        return None
    if cell.is_date or word not in YES | NO:
        raise ValueError(said("yes or no", given=cell.text))
    return word in YES


def _short(text: str) -> str:
    return " ".join(text.partition(":")[0].casefold().split())

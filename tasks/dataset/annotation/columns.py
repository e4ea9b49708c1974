"""The columns of an annotation file: what they are called in both languages, and what people may write in them."""

from typing import NamedTuple

from tasks.dataset.annotation.messages import said
from tasks.dataset.annotation.spreadsheets import Cell


class Heading(NamedTuple):
    """A column's heading by language; what stands after a colon explains it and may be left out."""

    ru: str
    en: str


COLUMNS: dict[str, Heading] = {
    "question_id": Heading("id вопроса", "question id"),
    "source": Heading("источник", "source"),
    "why": Heading("почему спрашиваем", "why asked"),
    "question": Heading("вопрос", "question"),
    "answer": Heading("ответ", "answer"),
    "answer_of": Heading("чей ответ", "answer of"),
    "other_answers": Heading("другие ответы", "other answers"),
    "reference": Heading("эталон", "reference"),
    "retrieved": Heading("найденные фрагменты", "retrieved chunks"),
    "question_ok": Heading("вопрос годен: да или нет", "question ok: yes or no"),
    "answer_ok": Heading("ответ верен: да или нет", "answer ok: yes or no"),
    "relevant": Heading("верные фрагменты: id через точку с запятой или нет", "relevant chunks: ids or none"),
    "show": Heading("показывать: да или нет", "show: yes or no"),
    "notes": Heading("заметки", "notes"),
}
REASONS = {
    "disagreement": Heading("спор судей", "judges disagree"),
    "uncertainty": Heading("судья не уверен", "judge uncertain"),
    "failure": Heading("сбой", "failure"),
    "unlabelled": Heading("нет разметки", "no label"),
}
"""Why a question is asked; see `tasks/dataset/annotation/priority.py`."""
YES_NO = ("question_ok", "answer_ok", "show")
VERDICTS = (*YES_NO, "relevant", "notes")
NEEDED = ("question_id", "source", "answer_of", *VERDICTS)
YES = {"да", "д", "yes", "y", "1", "true", "истина", "+", "верно", "ok"}
NO = {"нет", "н", "no", "n", "0", "false", "ложь", "-", "неверно"}
NONE = {"нет", "none", "no", "-", "0", "ни один", "ничего"}


def headings(language: str) -> list[str]:
    """The header of a file."""
    return [str(getattr(heading, language)) for heading in COLUMNS.values()]


def heading(name: str, language: str) -> str:
    """What a column is called, without what explains it."""
    return str(getattr(COLUMNS[name], language)).partition(":")[0]


def positions(header: list[str]) -> dict[str, int]:
    """Where each of our columns stands, whatever the language and order; columns of people's own are passed over."""
    names = {_short(text): name for name, heading in COLUMNS.items() for text in heading}
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

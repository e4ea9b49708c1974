"""What people are shown of other people's texts: with pseudonyms in the place of personal data, or as they are.

One setting decides, YARUS_MASK_SHOWN; without it pseudonyms stand where the source is `production`. Results, our tables
and everything that is computed from them keep the texts as they are, so that figures are the same; what goes into a
page, a terminal, a document for programs, an export, an artifact or a message goes through here first.
"""

import hashlib
import hmac
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from yarus.db.sources import PRODUCTION
from yarus.tasks.cases.vocabulary import FREE_TEXTS
from yarus.tasks.config.settings import settings

if TYPE_CHECKING:
    import pyarrow as pa

Ways = Mapping[str, Callable[[str], str]]
TEXTS = (*FREE_TEXTS, "passage", "error", "label", "words", "examples", "examples_unserved", "representative")
TEXTS += ("ground_truth_answer",)
"""Columns of cases and parts of documents that hold texts of people and models, at any depth."""
KEPT = 50_000
"""Texts whose masked form is remembered: the tiers of a report have the same questions, contexts the same chunks."""
DIALOG = re.compile(r"(.+)(@\d{4}-\d\d-\d\dT[\d:]+)", re.DOTALL)
"""Of one user, by the time of its first question, as tasks/cases/dialogs.py names it."""
USER, IN_DIALOG = "user ", "dialog "


def has_pseudonyms(source: str, *, unset: bool = False) -> bool:
    """Whether texts of that source are shown with pseudonyms.

    Args:
        source: its name.
        unset: what holds for other sources than production where YARUS_MASK_SHOWN is not set.
    """
    chosen = settings().mask_shown
    return (unset or source == PRODUCTION) if chosen is None else chosen


def ways(source: str) -> Ways:
    """Name of a column, or of a part of a document -> what is shown for a text of it; nothing: all as it is."""
    if not has_pseudonyms(source):
        return {}
    from yarus.tasks.cases.privacy.masking import own_key  # its patterns take a tenth of a second to compile

    key = own_key()
    text = partial(masked, key=key, language=settings().language)
    return dict.fromkeys(TEXTS, text) | {"group": partial(group, key=key), "dialog": partial(dialog, key=key)}


def cases(table: "pa.Table", source: str) -> "pa.Table":
    """The cases as people may see them; ids, addresses and numbers are the same, and so are the types."""
    by_name = ways(source)
    if by_name and "unsupported_facts" in table.column_names:
        table = _with_facts(table, by_name["answer"])
    for name, show in by_name.items():
        if name in table.column_names:
            place = table.column_names.index(name)
            table = table.set_column(place, table.schema.field(name), _column(table[name], show))
    return table


def document(found: Any, source: str, *, name: str = "") -> Any:
    """A document as people may see it: its parts that are named like a text are one, with all that is below them.

    Args:
        found: lists and mappings of anything.
        source: whose it is.
        name: of the part that it is itself.
    """
    by_name = ways(source)
    return _part(found, by_name, by_name.get(name)) if by_name else found


def text(said: str, source: str) -> str:
    """One text or message as people may see it."""
    return ways(source).get("error", str)(said)


def cut(said: str, most: int) -> str:
    """The beginning of a text, of at most so many characters, that tears no personal data: half of it is not found."""
    if len(said) <= most:
        return said
    from yarus.tasks.cases.privacy.masking import find

    return said[: min([most, *(found.start for found in find(said) if found.start < most < found.end)])]


def without_personal_data(said: str) -> str:
    """The text with nothing in the place of personal data."""
    from yarus.tasks.cases.privacy.masking import find

    for found in reversed(find(said)):
        said = f"{said[: found.start]} {said[found.end :]}"
    return said


@contextmanager
def errors(source: str) -> Iterator[None]:
    """Errors that leave the block go to logs, Prefect and people: a server may have repeated a question in them."""
    try:
        yield
    except Exception as problem:
        told: BaseException | None = problem
        while told is not None:  # a traceback shows what it came from too
            told.args = tuple(document(list(told.args), source, name="error"))
            told = told.__cause__ or told.__context__
        raise


def _column(values: "pa.ChunkedArray", show: Callable[[str], str]) -> "pa.ChunkedArray":
    import pyarrow as pa

    parts = [pa.array(_part(chunk.to_pylist(), {}, show), type=values.type) for chunk in values.chunks]
    return pa.chunked_array(parts, type=values.type)


def _with_facts(table: "pa.Table", show: Callable[[str], str]) -> "pa.Table":
    """Facts of the answers as they stand in what is shown of these: a number alone may not look like personal data."""
    import pyarrow as pa

    from yarus.tasks.cases.table import values_if_any, values_of

    pairs = zip(values_of(table, "unsupported_facts"), values_if_any(table, "answer"), strict=True)
    facts = [found and [_fact(fact, answer or "", show) for fact in found] for found, answer in pairs]
    place = table.column_names.index("unsupported_facts")
    field = table.schema.field(place)
    return table.set_column(place, field, pa.array(facts, type=field.type))


def _fact(fact: dict[str, Any], answer: str, show: Callable[[str], str]) -> dict[str, Any]:
    """A fact with what is shown in its place in the answer; without text and place where that cannot be told."""
    from yarus.tasks.cases.privacy.masking import find

    over = [one for one in find(answer) if one.start < fact["end"] and one.end > fact["start"]]
    start = min([fact["start"], *(one.start for one in over)])
    end = max([fact["end"], *(one.end for one in over)])
    before, through = show(answer[:start]), show(answer[:end])
    if not (through.startswith(before) and show(answer).startswith(through)):
        return fact | dict.fromkeys(("text", "start", "end"))
    return fact | {"text": through[len(before) :], "start": len(before), "end": len(through)}


def _part(value: Any, by_name: Ways, show: Callable[[str], str] | None) -> Any:
    if isinstance(value, str):
        return show(value) if show else value
    if isinstance(value, dict):
        return {name: _part(part, by_name, by_name.get(name, show)) for name, part in value.items()}
    return [_part(part, by_name, show) for part in value] if isinstance(value, list | tuple) else value


def masked(said: str, key: bytes, language: str) -> str:
    """Paragraph by paragraph, for a context is made of the same chunks many times."""
    return "\n\n".join(_paragraph(part, key, language) for part in said.split("\n\n"))


@lru_cache(KEPT)
def _paragraph(said: str, key: bytes, language: str) -> str:
    """What is a pseudonym already stays: models are sent them, and repeat them."""
    from yarus.tasks.cases.privacy.masking import mask, own_pattern

    parts = own_pattern().split(said)
    return "".join(part if number % 2 else mask(part, key, language) for number, part in enumerate(parts))


def group(name: str, key: bytes) -> str:
    """A user, or the dialog of one; a page or a topic is nobody."""
    if name.startswith(IN_DIALOG):
        return IN_DIALOG + dialog(name.removeprefix(IN_DIALOG), key)
    return USER + _code(name.removeprefix(USER), key) if name.startswith(USER) else name


def dialog(name: str, key: bytes) -> str:
    """The pseudonym of a dialog: that of its user, and its number."""
    of_user = DIALOG.fullmatch(name)
    return _code(of_user[1], key) + of_user[2] if of_user else _code(name, key)


def _code(name: str, key: bytes) -> str:
    """Long enough that users stay as many as they are."""
    return hmac.new(key, f"user|{name}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:12]

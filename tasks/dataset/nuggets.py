"""Nuggets: what a good answer must contain, listed by a judge once, stored, and edited by people."""

import asyncio
import hashlib
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select
from typing_extensions import TypedDict

from yarus.db import tables
from yarus.db.engine import reaching
from yarus.db.errors import InputError
from yarus.db.loading.fill import Row as Loaded
from yarus.db.loading.fill import Rows, fill_within, lock
from yarus.db.source_rows import Corpus, Row, read_corpus, read_questions
from yarus.db.sources import Source, snapshot
from yarus.db.words import Words
from yarus.tasks.cases.labels import pages_of
from yarus.tasks.cases.outcomes import answerable, ideal_context, reference_of
from yarus.tasks.cases.text import fit, parts, same_said, starts
from yarus.tasks.config.connections import database, source
from yarus.tasks.config.settings import settings
from yarus.tasks.dataset.dataset_schema import NuggetsMade
from yarus.tasks.models.calls import Call, Model, bill
from yarus.tasks.models.chat import chat
from yarus.tasks.models.prompts import Prompt, prompts
from yarus.tasks.models.verdicts import NoVerdict, Verdict, ask_for, read_list, unreadable

MOST = 20
"""Nuggets of a question; as many the AutoNuggetizer keeps."""
VITAL = "!"
"""Begins the line of a vital one."""


class Nugget(TypedDict):
    """One thing that an answer may contain."""

    nugget: str
    vital: bool
    """Whether a good answer must have it, or it is okay to have."""


def nuggets_of(question: Mapping[str, Any]) -> list[Nugget]:
    """The nuggets that a question is labelled with; none where nobody has made any.

    Raises:
        InputError: the column holds something else.
    """
    given = question.get("nuggets") or []
    if isinstance(given, list) and all(map(_is_nugget, given)):
        return [{"nugget": one["nugget"], "vital": one["vital"]} for one in given]
    raise InputError(
        'annotation.nuggets of question {question}: expected a list of {{"nugget": text, "vital": true or false}}, '
        "not {given!r:.200}",
        question=question["question_id"],
        given=given,
    )


def most_important(found: list[Nugget]) -> list[Nugget]:
    """Each once, the vital ones first, and no more than a judge can hold against an answer at once."""
    once: dict[str, Nugget] = {}
    for one in found:
        key = same_said(one["nugget"])
        if key not in once or (one["vital"] and not once[key]["vital"]):
            once[key] = one
    return sorted(once.values(), key=lambda one: not one["vital"])[:MOST]


def as_text(nuggets: list[Nugget]) -> str:
    """One a line, for people; `from_text` reads it back.

    Example:
        >>> from yarus.tasks.dataset.nuggets import as_text
        >>> as_text([{"nugget": "до 25 июля", "vital": True}, {"nugget": "можно почтой", "vital": False}])
        '! до 25 июля\\nможно почтой'
    """
    return "\n".join(f"{VITAL} {one['nugget']}" if one["vital"] else one["nugget"] for one in nuggets)


def from_text(text: str) -> list[Nugget]:
    """What people have written, one a line; empty lines and what stands twice count for nothing."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    found = (
        Nugget(nugget=line.removeprefix(VITAL).strip(), vital=line.startswith(VITAL))
        for line in lines
        if line.removeprefix(VITAL).strip()
    )
    return most_important(list(found))


def _is_nugget(given: Any) -> bool:
    if not isinstance(given, dict):
        return False
    text = given.get("nugget")
    return isinstance(text, str) and bool(text.strip()) and isinstance(given.get("vital"), bool)


log = logging.getLogger("yarus")
Made = Verdict[list[Nugget]] | NoVerdict
ROUND = 200
"""Questions asked about and stored at a time: what is broken off loses no more, and buys nothing twice."""
CONTEXT_TOKENS = 3_000
"""Of relevant chunks; what is longer is cut."""


async def make(source_name: str, *, limit: int | None = None, remake: bool = False) -> NuggetsMade:
    """Has nuggets made for the questions of a source that have a reference and no nuggets yet.

    Args:
        source_name: a loaded source.
        limit: at most so many questions, in the order of their ids.
        remake: also those that have nuggets, unless people have edited them.

    Raises:
        InputError: no such source, one that nothing is written to, or no question with a reference.
        ModelUnavailable: the judge refuses what every call would bring.
    """
    where = source(source_name)
    if where.kind == "production":
        raise InputError("nothing is written into a production database; copy it: yarus load postgres URL --into NAME")
    with snapshot(where) as connection:
        questions = read_questions(connection, where, all_rows=True)
        corpus = read_corpus(connection, where, vectors=False)
    fit_for_it = [row for row in questions if _usable(row)]
    if not fit_for_it:
        raise InputError(
            "source {source!r}: no question has a reference answer to make nuggets from; annotate some: yarus "
            "dataset export-annotation FILE --source {source}",
            source=where.name,
        )
    wanted = [row for row in fit_for_it if row.get("nuggets") is None or (remake and not _edited(row))][:limit]
    configuration = settings().model_copy(update={"language": where.language})
    prompt, pages = prompts(configuration)["nuggets"], pages_of(corpus)
    texts = dict(zip(corpus.ids, corpus.texts, strict=True))
    payer = "nuggets-" + hashlib.sha256(where.name.encode()).hexdigest()[:12]
    given: list[Made] = []
    async with chat("judge", configuration, database(), evaluation=payer) as judge:
        for start in range(0, len(wanted), ROUND):
            some = wanted[start : start + ROUND]
            asked = (_asked(judge, prompt, row, _passages(row, corpus, pages, texts)) for row in some)
            made = await asyncio.gather(*asked)
            await asyncio.to_thread(_store, where, some, made)
            given += made
            log.info("nuggets of %d of %d questions", len(given), len(wanted))
        return _told(where, questions, fit_for_it, given, judge.describe())


def read_nuggets(text: str) -> Made:
    """Reads `{"nuggets": [{"nugget": text, "vital": true or false}]}`.

    Args:
        text: the reply as received.

    Returns:
        At most 20, vital ones first, each once; or `parse_error`, also where a single entry cannot be read: without it
        the question would seem to ask for less.
    """
    entries = read_list(text, "nuggets")
    if isinstance(entries, NoVerdict):
        return entries
    found: list[Nugget] = []
    for number, entry in enumerate(entries):
        said, vital = entry.get("nugget"), entry.get("vital")
        if not isinstance(said, str) or not said.strip():
            return unreadable(
                Words(
                    "nugget {number} of {n_entries} is {said!r:.60}, not a text",
                    number=number,
                    n_entries=len(entries),
                    said=said,
                )
            )
        if not isinstance(vital, bool):
            return unreadable(
                Words(
                    "'vital' of nugget {number} of {n_entries} is {vital!r:.60}, not true or false",
                    number=number,
                    n_entries=len(entries),
                    vital=vital,
                )
            )
        found.append({"nugget": " ".join(said.replace("\0", "").split()), "vital": vital})
    return Verdict(most_important(found), "")


async def _asked(judge: Model, prompt: Prompt, row: Row, passages: list[str]) -> Made:
    texts = {
        "question": row["question"],
        "reference": reference_of(row) or "",
        "passages": {f"passage_{number}": text for number, text in enumerate(passages, start=1)},
    }
    return await ask_for(judge, Call(prompt, texts), read_nuggets)


def _passages(row: Row, corpus: Corpus, pages: dict[str, str | None], texts: dict[str, str]) -> list[str]:
    """The relevant chunks, cut to what a judge reads at once."""
    known = [texts[chunk] for chunk in ideal_context(row, corpus, pages)]
    context = fit(known, CONTEXT_TOKENS)[0]
    return parts(context, starts(known, context))


def _usable(row: Row) -> bool:
    """Whether an answer to it is known, and nobody has rejected it."""
    rejected = (row.get("review") or {}).get("rejected", False)
    return bool((row["question"] or "").strip() and reference_of(row)) and answerable(row) is not False and not rejected


def _edited(row: Row) -> bool:
    said = (row.get("review") or {}).get("annotators", {})
    return any("nuggets" in verdict for verdict in said.values())


def _store(where: Source, rows: Sequence[Row], made: Sequence[Made]) -> None:
    """Keeps the nuggets with the other labels; those that somebody has edited meanwhile stay."""
    found = {row["question_id"]: one.value for row, one in zip(rows, made, strict=True) if isinstance(one, Verdict)}
    engine = database()
    with reaching(engine), engine.begin() as connection:
        lock(connection, where.name)
        now = {row["question_id"]: row for row in read_questions(connection, where, all_rows=True)}
        kept = [name for name in found if name in now and not _edited(now[name])]
        labels = [Loaded(f"question {name}", {"question_id": name, "nuggets": found[name]}) for name in kept]
        of = tables.source.c
        language, origin = connection.execute(select(of.language, of.origin).where(of.name == where.name)).one()
        fill_within(connection, where.name, Rows(annotations=labels), language=language, origin=origin)


def _told(where: Source, questions: list[Row], usable: list[Row], given: list[Made], judge: str) -> NuggetsMade:
    found = [one.value for one in given if isinstance(one, Verdict)]
    failed = [one for one in given if isinstance(one, NoVerdict)]
    return {
        "state": "completed" if not failed else "invalid",
        "source": where.name,
        "questions": len(questions),
        "without_reference": len(questions) - len(usable),
        "asked": len(given),
        "made": len(found),
        "failed": dict(Counter(one.status for one in failed)),
        "reason": failed[0].reason if failed else None,
        "nuggets": sum(map(len, found)),
        "vital": sum(one["vital"] for of in found for one in of),
        "judge": judge,
        **bill(reply for one in given for reply in one.replies),
    }

"""Nuggets: facts a good answer must contain, listed once by a judge, stored, and edited by people."""

import asyncio
import hashlib
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select
from typing_extensions import TypedDict

from yarus.db import tables
from yarus.db.engine import reporting_unreachable
from yarus.db.errors import InputError
from yarus.db.loading.load_rows import ImportedRows, load_rows_in_transaction, lock_source
from yarus.db.loading.load_rows import IncomingRow as Loaded
from yarus.db.messages import Words
from yarus.db.source_rows import Corpus, QuestionRow, read_corpus, read_questions
from yarus.db.sources import Source, open_snapshot
from yarus.tasks.cases.labels import page_by_chunk
from yarus.tasks.cases.outcomes import ideal_context, is_answerable, reference_answer
from yarus.tasks.cases.text import claim_key, join_within_limit, split_context, text_offsets
from yarus.tasks.config.connections import database, open_source
from yarus.tasks.config.settings import get_settings
from yarus.tasks.dataset.dataset_schema import NuggetGeneration
from yarus.tasks.models.calls import Call, Model, sum_costs
from yarus.tasks.models.chat import open_chat
from yarus.tasks.models.prompts import Prompt, read_prompts
from yarus.tasks.models.verdicts import MissingVerdict, Verdict, ask_for_verdict, build_parse_error, parse_list

MAX_NUGGETS = 20
"""Maximum nuggets per question, as in the AutoNuggetizer."""
VITAL_MARK = "!"
"""Prefix of a line with a vital nugget."""


class Nugget(TypedDict):
    """A fact that an answer may contain."""

    nugget: str
    vital: bool
    """Whether a good answer must contain it; otherwise it is okay to have."""


def nuggets_of(question: Mapping[str, Any]) -> list[Nugget]:
    """Return the nuggets that label a question; an empty list if there are none.

    Raises:
        InputError: the column holds another kind of value.
    """
    value = question.get("nuggets") or []
    if isinstance(value, list) and all(map(_is_nugget, value)):
        return [{"nugget": nugget["nugget"], "vital": nugget["vital"]} for nugget in value]
    raise InputError(
        'annotation.nuggets of question {question}: expected a list of {{"nugget": text, "vital": true or false}}, '
        "not {given!r:.200}",
        question=question["question_id"],
        given=value,
    )


def select_most_important(nuggets: list[Nugget]) -> list[Nugget]:
    """Return unique nuggets, vital ones first, at most as many as a judge can check at once."""
    unique: dict[str, Nugget] = {}
    for nugget in nuggets:
        key = claim_key(nugget["nugget"])
        if key not in unique or (nugget["vital"] and not unique[key]["vital"]):
            unique[key] = nugget
    return sorted(unique.values(), key=lambda nugget: not nugget["vital"])[:MAX_NUGGETS]


def format_nuggets(nuggets: list[Nugget]) -> str:
    """Format nuggets as text for people, one per line; `parse_nuggets` parses it.

    Example:
        >>> from yarus.tasks.dataset.nuggets import format_nuggets
        >>> format_nuggets([{"nugget": "до 25 июля", "vital": True}, {"nugget": "можно почтой", "vital": False}])
        '! до 25 июля\\nможно почтой'
    """
    return "\n".join(f"{VITAL_MARK} {nugget['nugget']}" if nugget["vital"] else nugget["nugget"] for nugget in nuggets)


def parse_nuggets(text: str) -> list[Nugget]:
    """Parse nuggets that people wrote, one per line; skip empty lines and duplicates."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    nuggets = (
        Nugget(nugget=line.removeprefix(VITAL_MARK).strip(), vital=line.startswith(VITAL_MARK))
        for line in lines
        if line.removeprefix(VITAL_MARK).strip()
    )
    return select_most_important(list(nuggets))


def _is_nugget(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    text = value.get("nugget")
    return isinstance(text, str) and bool(text.strip()) and isinstance(value.get("vital"), bool)


log = logging.getLogger("yarus")
NuggetReply = Verdict[list[Nugget]] | MissingVerdict
BATCH_SIZE = 200
"""Questions that are requested and stored together; an interruption loses at most one batch."""
CONTEXT_TOKENS = 3_000
"""Token limit for the relevant chunks; longer text is cut."""


async def generate_nuggets(source_name: str, *, limit: int | None = None, remake: bool = False) -> NuggetGeneration:
    """Generate nuggets for questions of a source that have a reference and no nuggets yet.

    Args:
        source_name: name of a loaded source.
        limit: maximum number of questions, in the order of their ids.
        remake: whether to regenerate existing nuggets that people have not edited.

    Raises:
        InputError: the source does not exist or is read-only, or no question has a reference.
        ModelUnavailable: the judge refuses a setting that every call uses.
    """
    data_source = open_source(source_name)
    if data_source.kind == "production":
        raise InputError("nothing is written into a production database; copy it: yarus load postgres URL --into NAME")
    with open_snapshot(data_source) as connection:
        questions = read_questions(connection, data_source, all_rows=True)
        corpus = read_corpus(connection, data_source, vectors=False)
    usable = [row for row in questions if _is_usable(row)]
    if not usable:
        raise InputError(
            "source {source!r}: no question has a reference answer to make nuggets from; annotate some: yarus "
            "dataset export-annotation FILE --source {source}",
            source=data_source.name,
        )
    selected = [row for row in usable if row.get("nuggets") is None or (remake and not _is_edited(row))][:limit]
    configuration = get_settings().model_copy(update={"language": data_source.language})
    prompt, pages = read_prompts(configuration)["nuggets"], page_by_chunk(corpus)
    texts = dict(zip(corpus.ids, corpus.texts, strict=True))
    payer = "nuggets-" + hashlib.sha256(data_source.name.encode()).hexdigest()[:12]
    replies: list[NuggetReply] = []
    async with open_chat("judge", configuration, database(), evaluation=payer) as judge:
        for start in range(0, len(selected), BATCH_SIZE):
            batch = selected[start : start + BATCH_SIZE]
            calls = (_request_nuggets(judge, prompt, row, _passages(row, corpus, pages, texts)) for row in batch)
            batch_replies = await asyncio.gather(*calls)
            await asyncio.to_thread(_store, data_source, batch, batch_replies)
            replies += batch_replies
            log.info("nuggets of %d of %d questions", len(replies), len(selected))
        return _summarize(data_source, questions, usable, replies, judge.describe())


def parse_nuggets_reply(text: str) -> NuggetReply:
    """Parse a reply `{"nuggets": [{"nugget": text, "vital": true or false}]}`.

    Args:
        text: the reply as received.

    Returns:
        At most 20 unique nuggets, vital ones first. `parse_error` if any entry cannot be parsed, because a missing
        nugget would lower the requirements.
    """
    entries = parse_list(text, "nuggets")
    if isinstance(entries, MissingVerdict):
        return entries
    nuggets: list[Nugget] = []
    for number, entry in enumerate(entries):
        nugget, vital = entry.get("nugget"), entry.get("vital")
        if not isinstance(nugget, str) or not nugget.strip():
            return build_parse_error(
                Words(
                    "nugget {number} of {n_entries} is {said!r:.60}, not a text",
                    number=number,
                    n_entries=len(entries),
                    said=nugget,
                )
            )
        if not isinstance(vital, bool):
            return build_parse_error(
                Words(
                    "'vital' of nugget {number} of {n_entries} is {vital!r:.60}, not true or false",
                    number=number,
                    n_entries=len(entries),
                    vital=vital,
                )
            )
        nuggets.append({"nugget": " ".join(nugget.replace("\0", "").split()), "vital": vital})
    return Verdict(select_most_important(nuggets), "")


async def _request_nuggets(judge: Model, prompt: Prompt, row: QuestionRow, passages: list[str]) -> NuggetReply:
    texts = {
        "question": row["question"],
        "reference": reference_answer(row) or "",
        "passages": {f"passage_{number}": text for number, text in enumerate(passages, start=1)},
    }
    return await ask_for_verdict(judge, Call(prompt, texts), parse_nuggets_reply)


def _passages(row: QuestionRow, corpus: Corpus, pages: dict[str, str | None], texts: dict[str, str]) -> list[str]:
    """Return the relevant chunks, cut to what a judge reads at once."""
    relevant_texts = [texts[chunk] for chunk in ideal_context(row, corpus, pages)]
    context = join_within_limit(relevant_texts, CONTEXT_TOKENS)[0]
    return split_context(context, text_offsets(relevant_texts, context))


def _is_usable(row: QuestionRow) -> bool:
    """Return whether a question has an accepted reference answer."""
    rejected = (row.get("review") or {}).get("rejected", False)
    return (
        bool((row["question"] or "").strip() and reference_answer(row))
        and is_answerable(row) is not False
        and not rejected
    )


def _is_edited(row: QuestionRow) -> bool:
    annotators = (row.get("review") or {}).get("annotators", {})
    return any("nuggets" in verdict for verdict in annotators.values())


def _store(data_source: Source, rows: Sequence[QuestionRow], replies: Sequence[NuggetReply]) -> None:
    """Store nuggets with the other labels, except for questions that were edited meanwhile."""
    nuggets = {
        row["question_id"]: reply.value for row, reply in zip(rows, replies, strict=True) if isinstance(reply, Verdict)
    }
    engine = database()
    with reporting_unreachable(engine), engine.begin() as connection:
        lock_source(connection, data_source.name)
        stored = {row["question_id"]: row for row in read_questions(connection, data_source, all_rows=True)}
        ids = [question_id for question_id in nuggets if question_id in stored and not _is_edited(stored[question_id])]
        labels = [
            Loaded(f"question {question_id}", {"question_id": question_id, "nuggets": nuggets[question_id]})
            for question_id in ids
        ]
        columns = tables.source.c
        language, origin = connection.execute(
            select(columns.language, columns.origin).where(columns.name == data_source.name)
        ).one()
        load_rows_in_transaction(
            connection, data_source.name, ImportedRows(annotations=labels), language=language, origin=origin
        )


def _summarize(
    data_source: Source, questions: list[QuestionRow], usable: list[QuestionRow], replies: list[NuggetReply], judge: str
) -> NuggetGeneration:
    generated = [reply.value for reply in replies if isinstance(reply, Verdict)]
    failures = [reply for reply in replies if isinstance(reply, MissingVerdict)]
    return {
        "state": "completed" if not failures else "invalid",
        "source": data_source.name,
        "questions": len(questions),
        "without_reference": len(questions) - len(usable),
        "n_selected_questions": len(replies),
        "n_made": len(generated),
        "failed": dict(Counter(failure.status for failure in failures)),
        "reason": failures[0].reason if failures else None,
        "nuggets": sum(map(len, generated)),
        "vital": sum(nugget["vital"] for nuggets in generated for nugget in nuggets),
        "judge": judge,
        **sum_costs(call for reply in replies for call in reply.replies),
    }

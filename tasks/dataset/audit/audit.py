"""The label audit: everything that looks wrong with a source's questions and labels, counted, with examples."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import cast

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.db.source_rows import Corpus, read_corpus, read_questions
from yarus.db.sources import Source, snapshot
from yarus.tasks.cases.labels import Row
from yarus.tasks.cases.pseudonyms import has_pseudonyms
from yarus.tasks.cases.text import normalised
from yarus.tasks.config.connections import database, source
from yarus.tasks.config.settings import settings
from yarus.tasks.dataset.audit import defects
from yarus.tasks.dataset.audit.defects import Rankings
from yarus.tasks.dataset.documents import Audit, Finding, Place, TwinFinding
from yarus.tasks.dataset.twins import twins_of
from yarus.tasks.personal_data.masking import mask, own_key, pseudonym
from yarus.tasks.prompts import prompts
from yarus.tasks.results import parquet_files

NO_RANKINGS = "name evaluations of tier1, tier3 or real_users by --evaluation: their rankings dispute labels"
KINDS: tuple[str, ...] = ("stale", "duplicates", "near_duplicates", "contradictions", "leaked")
KINDS += ("disputed", "off_topic", "empty", "personal")
LAST = datetime.max.replace(tzinfo=UTC)


def audit(source_name: str, evaluations: Sequence[str] = (), *, examples: int = 10) -> Audit:
    """Looks through all questions of a source, those without a text and those rejected too.

    Args:
        source_name: a loaded source, or `production`.
        evaluations: whose rankings may dispute labels.
        examples: how many of each to name; texts have pseudonyms in the place of personal data.

    Raises:
        InputError: no such source or evaluation, or an evaluation of another source or without rankings.
    """
    where = source(source_name)
    rankings = {name: _rankings(name, where.name) for name in evaluations}
    with snapshot(where) as connection:
        questions = read_questions(connection, where, all_rows=True)
        corpus = read_corpus(connection, where, vectors=False)
    found = find_all(questions, corpus, rankings, _wording(where))
    key = own_key() if has_pseudonyms(where.name, unset=True) else None
    findings = {kind: _finding(found[kind], examples, key, where.language) for kind in KINDS}
    if not rankings:
        findings["disputed"]["reason"] = NO_RANKINGS
    kinds = dict(Counter(place["kind"] for place in found["personal"] or ()))
    document = {
        "source": where.name,
        "n_questions": len(questions),
        "n_chunks": len(corpus.ids),
        "evaluations": list(rankings),
        **findings,
        "personal": {**findings["personal"], "kinds": kinds},
        "twins": _twins(corpus, examples),
    }
    return cast(Audit, document)


def find_all(
    questions: Sequence[Row], corpus: Corpus, rankings: Rankings, wording: Mapping[str, str]
) -> dict[str, list[Place] | None]:
    """All places by kind; None for what cannot be looked for.

    Args:
        questions: rows with their annotations, in any order.
        corpus: the chunks.
        rankings: by evaluation.
        wording: name -> text of the prompts in use.
    """
    questions = sorted(questions, key=_asked)
    keys = [normalised(row["question"] or "") for row in questions]
    return {
        "stale": defects.stale(questions, corpus),
        "duplicates": defects.duplicates(questions, keys),
        "near_duplicates": defects.similar(questions, keys),
        "contradictions": defects.contradictions(questions, keys),
        "leaked": defects.leaked(questions, keys, wording),
        "disputed": defects.disputed(questions, rankings) if rankings else None,
        "off_topic": defects.off_topic(questions, keys, corpus),
        "empty": defects.empty(questions, keys),
        "personal": defects.personal(questions, corpus),
    }


def _twins(corpus: Corpus, examples: int) -> TwinFinding:
    groups: dict[str, list[str]] = {}
    for chunk, first in twins_of(corpus, "chunk").items():
        groups.setdefault(first, []).append(chunk)
    pages = twins_of(corpus, "page")
    largest = sorted(groups.values(), key=len, reverse=True)
    count = sum(len(group) - 1 for group in largest)
    return {"count": count, "pages": len(pages) - len({*pages.values()}), "examples": largest[:examples]}


def _finding(places: list[Place] | None, examples: int, key: bytes | None, language: str) -> Finding:
    if places is None:
        return {"count": None, "examples": []}
    shown = places[:examples]
    return {"count": len(places), "examples": [_masked(place, key, language) for place in shown] if key else shown}


def _masked(place: Place, key: bytes, language: str) -> Place:
    """The place with pseudonyms in all of its texts; ids and labels stay.

    What was found is not looked for again: without the words around it many a number or name gives nothing away.
    """
    masked: Place = {**place, "question": mask(place["question"], key, language)}
    if "other" in place:
        masked["other"] = mask(place["other"], key, language)
    if "text" in place:
        masked["text"] = pseudonym(place["kind"], place["text"], key, language)
    return masked


def _asked(row: Row) -> tuple[datetime, int, str]:
    """Earlier first; without a time last, by id."""
    moment = row["created_at"] or LAST
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC), len(row["question_id"]), row["question_id"])


def _rankings(evaluation: str, source_name: str) -> dict[str, tuple[list[str], list[str]]]:
    """Question -> (relevant, retrieved) of an evaluation."""
    row = journal.find(database(), evaluation)
    if row["source"] != source_name:
        raise InputError(
            "--evaluation {evaluation}: its source is {source!r}, not {source_name!r}",
            evaluation=evaluation,
            source=row["source"],
            source_name=source_name,
        )
    if row["parquet"] is None:
        raise InputError(
            "--evaluation {evaluation}: it is {state} and has no file", evaluation=evaluation, state=row["state"]
        )
    table = parquet_files.read(row["parquet"])
    if not {"relevant", "retrieved"} <= set(table.column_names):
        raise InputError(
            "--evaluation {evaluation}: {tier} has no rankings; name one of tier1 or tier3",
            evaluation=evaluation,
            tier=row["tier"],
        )
    cases = table.select(["question_id", "relevant", "retrieved"]).to_pylist()
    return {case["question_id"]: (case["relevant"], case["retrieved"]) for case in cases
            if case["relevant"] and case["retrieved"] is not None}  # fmt: skip


def _wording(where: Source) -> dict[str, str]:
    known = prompts(settings().model_copy(update={"language": where.language}))
    return {name: prompt.template for name, prompt in known.items()}

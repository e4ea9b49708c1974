"""The label audit: everything that looks wrong with a source's questions and labels, counted, with examples."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.db.source_rows import Corpus, Row, read_corpus, read_questions
from yarus.db.sources import snapshot
from yarus.db.urls import canonical_url
from yarus.tasks.cases.labels import BAD, GOOD, graded
from yarus.tasks.cases.outcomes import reference_of
from yarus.tasks.cases.privacy.masking import find, mask, own_key, pseudonym
from yarus.tasks.cases.privacy.pseudonyms import has_pseudonyms
from yarus.tasks.cases.text import normalised, words
from yarus.tasks.config.connections import database, source
from yarus.tasks.config.settings import settings
from yarus.tasks.dataset.dataset_schema import Audit, Finding, Place, TwinFinding
from yarus.tasks.dataset.duplicates import near_duplicates, twins_of
from yarus.tasks.evaluation import result_files
from yarus.tasks.models.prompts import prompts

Rankings = Mapping[str, Mapping[str, tuple[list[str], list[str]]]]
"""Evaluation -> question -> (relevant, retrieved), of the questions that have both."""
DEPTH = 10
KNOWN = 1 / 3
"""A question with no larger share of its words in the corpus is off topic."""
QUESTION_LEAST, ANSWER_LEAST = 15, 20
"""Characters of a normalised text below which finding it in another says nothing."""


def stale(questions: Sequence[Row], corpus: Corpus) -> list[Place]:
    """Labels that name a chunk or page that is not in the corpus."""
    pages, chunks = set(map(canonical_url, corpus.urls)), set(corpus.ids)
    found = []
    for row in questions:
        shown = canonical_url(row["confluence_url"])
        gone = [("confluence_url", row["confluence_url"])] if shown is not None and shown not in pages else []
        urls = graded(row, "relevant_urls")
        gone += [("relevant_urls", url) for url in urls if canonical_url(url) not in pages]
        gone += [("relevant_chunk_ids", chunk) for chunk in graded(row, "relevant_chunk_ids") if chunk not in chunks]
        found += [_place(row, column=column, label=label) for column, label in gone]
    return found


def empty(questions: Sequence[Row], keys: Sequence[str]) -> list[Place]:
    """Questions without a letter or digit."""
    return [_place(row) for row, key in zip(questions, keys, strict=True) if not key]


def duplicates(questions: Sequence[Row], keys: Sequence[str]) -> list[Place]:
    """Questions that repeat an earlier one but for case, punctuation and white space; the first of each is `of`."""
    return [
        _place(row, of=rows[0]["question_id"]) for rows in _same(questions, keys).values() for row in rows[1:]
    ]  # fmt: skip


def similar(questions: Sequence[Row], keys: Sequence[str]) -> list[Place]:
    """Questions that are almost an earlier one, once each, with the most similar."""
    best: dict[int, Place] = {}
    for one, other, score in near_duplicates(keys):
        row, near = questions[other], questions[one]
        best.setdefault(other, _place(row, of=near["question_id"], similarity=round(score, 3), other=near["question"]))
    return list(best.values())


def contradictions(questions: Sequence[Row], keys: Sequence[str]) -> list[Place]:
    """Equal questions whose labels exclude each other, and questions whose own labels do."""
    found = []
    for row in questions:
        labelled = bool(graded(row, "relevant_chunk_ids") or graded(row, "relevant_urls"))
        if row.get("answerable") is False and (labelled or row.get("ground_truth_answer")):
            found.append(_place(row, what="answerable is no, yet it is labelled"))
    for rows in _same(questions, keys).values():
        found += [
            _place(rows[-1], what=what, others=[row["question_id"] for row in rows[:-1]]) for what in _clashes(rows)
        ]
    return found


def leaked(questions: Sequence[Row], keys: Sequence[str], prompts: Mapping[str, str]) -> list[Place]:
    """Questions whose reference answer can be had without retrieval: from the cache, a prompt, or the question.

    Args:
        questions: n rows, earlier ones first.
        keys: their normalised texts.
        prompts: name -> text of the prompts in use.
    """
    plain = {name: normalised(text) for name, text in prompts.items()}
    cached: dict[tuple[str, str], str] = {}
    found = []
    for row, key in zip(questions, keys, strict=True):
        reference = normalised(reference_of(row) or "")
        own = normalised(row["answer"] or "")
        if reference and (key, reference) in cached:
            found.append(_place(row, where="cache", of=cached[key, reference]))
        elif len(reference) >= ANSWER_LEAST and reference in key:
            found.append(_place(row, where="question"))
        else:
            found += [_place(row, where=f"prompt {name}") for name in _within(key, reference, plain)]
        if row["score"] == GOOD and key and own:
            cached.setdefault((key, own), row["question_id"])
    return found


def disputed(questions: Sequence[Row], rankings: Rankings) -> list[Place]:
    """Questions where no evaluation's ranking has anything that is labelled relevant among its first ten."""
    found = []
    for row in questions:
        known = [of[row["question_id"]] for of in rankings.values() if row["question_id"] in of]
        if known and not any(set(relevant) & set(retrieved[:DEPTH]) for relevant, retrieved in known):
            found.append(_place(row, label=known[0][0][:5], retrieved=known[0][1][:3], evaluations=len(known)))
    return found


def off_topic(questions: Sequence[Row], keys: Sequence[str], corpus: Corpus) -> list[Place]:
    """Questions of whose words hardly any is in the corpus; those without words of content are passed over."""
    known = set[str]().union(*map(words, corpus.texts))
    stems = [words(key) for key in keys]
    shares = [len(of & known) / len(of) if of else 1.0 for of in stems]
    return [
        _place(row, known=round(share, 2)) for row, share in zip(questions, shares, strict=True) if share <= KNOWN
    ]  # fmt: skip


def personal(questions: Sequence[Row], corpus: Corpus) -> list[Place]:
    """Phones, e-mails, names and numbers of papers in questions and answers, but for what the corpus publishes."""
    public = {_bare(found.text) for text in corpus.texts for found in find(text)}
    return [
        _place(row, column=column, kind=found.kind, text=found.text)
        for row in questions
        for column in ("question", "answer")
        for found in find(row[column] or "")
        if _bare(found.text) not in public
    ]


def _place(row: Row, **more: Any) -> Place:
    return cast(Place, {"question_id": row["question_id"], "question": row["question"] or ""} | more)


def _same(questions: Sequence[Row], keys: Sequence[str]) -> dict[str, list[Row]]:
    """Equal questions together, where there are several."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row, key in zip(questions, keys, strict=True):
        if key:
            groups[key].append(row)
    return {key: rows for key, rows in groups.items() if len(rows) > 1}


def _clashes(rows: Sequence[Row]) -> Iterable[str]:
    scores = {row["score"] for row in rows}
    if {GOOD, BAD} <= scores:
        yield "score 5 and 1"
    pages = {canonical_url(row["confluence_url"]) for row in rows if row["score"] == GOOD} - {None}
    if len(pages) > 1:
        yield "score 5 for different pages"
    for name in ("ground_truth_show", "answerable"):
        if {True, False} <= {row.get(name) for row in rows}:
            yield f"{name} yes and no"
    relevant = [labels for row in rows if (labels := graded(row, "relevant_chunk_ids").keys())]
    if any(relevant[0].isdisjoint(other) for other in relevant[1:]):
        yield "different relevant chunks"


def _within(key: str, reference: str, prompts: Mapping[str, str]) -> list[str]:
    """The prompts that hold the question or its reference."""
    sought = [text for text, least in ((key, QUESTION_LEAST), (reference, ANSWER_LEAST)) if len(text) >= least]
    return [name for name, prompt in prompts.items() if any(text in prompt for text in sought)]


def _bare(text: str) -> str:
    return "".join(text.casefold().split())


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
    known = prompts(settings().model_copy(update={"language": where.language}))
    found = find_all(questions, corpus, rankings, {name: prompt.template for name, prompt in known.items()})
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
        "stale": stale(questions, corpus),
        "duplicates": duplicates(questions, keys),
        "near_duplicates": similar(questions, keys),
        "contradictions": contradictions(questions, keys),
        "leaked": leaked(questions, keys, wording),
        "disputed": disputed(questions, rankings) if rankings else None,
        "off_topic": off_topic(questions, keys, corpus),
        "empty": empty(questions, keys),
        "personal": personal(questions, corpus),
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
    table = result_files.read(row["parquet"])
    if not {"relevant", "retrieved"} <= set(table.column_names):
        raise InputError(
            "--evaluation {evaluation}: {tier} has no rankings; name one of tier1 or tier3",
            evaluation=evaluation,
            tier=row["tier"],
        )
    cases = table.select(["question_id", "relevant", "retrieved"]).to_pylist()
    return {case["question_id"]: (case["relevant"], case["retrieved"]) for case in cases
            if case["relevant"] and case["retrieved"] is not None}  # fmt: skip

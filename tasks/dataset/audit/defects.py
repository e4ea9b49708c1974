"""What can be wrong with questions and their labels: one function a defect, each from plain rows to the places found.

A place names the question it concerns (`question_id`) and what else explains it; texts are as in the source.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from yarus.db.source_rows import Corpus
from yarus.db.urls import canonical_url
from yarus.tasks.cases.answers import reference_of
from yarus.tasks.cases.labels import BAD, GOOD, Row, graded
from yarus.tasks.cases.text import normalised, words
from yarus.tasks.dataset.documents import Place
from yarus.tasks.dataset.near_duplicates import near_duplicates
from yarus.tasks.personal_data.masking import find

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
    known = set().union(*map(words, corpus.texts)) if corpus.texts else set()
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
    relevant = [set(graded(row, "relevant_chunk_ids")) for row in rows]
    relevant = [labels for labels in relevant if labels]
    if any(not (one & other) for one in relevant[:1] for other in relevant[1:]):
        yield "different relevant chunks"


def _within(key: str, reference: str, prompts: Mapping[str, str]) -> list[str]:
    """The prompts that hold the question or its reference."""
    sought = [text for text, least in ((key, QUESTION_LEAST), (reference, ANSWER_LEAST)) if len(text) >= least]
    return [name for name, prompt in prompts.items() if any(text in prompt for text in sought)]


def _bare(text: str) -> str:
    return "".join(text.casefold().split())

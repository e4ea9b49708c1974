"""BEIR: a folder with corpus.jsonl, queries.jsonl and graded judgements in qrels/SPLIT.tsv."""

import csv
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from yarus.db.errors import InputError, unknown
from yarus.db.importers.lines import json_lines, lines, text_or_rejected
from yarus.db.loading.fill import Stream
from yarus.db.loading.staging import Rejected, Row
from yarus.db.retrieval_sets import is_query_document, page_of_document
from yarus.db.words import Words

DEFAULT_SPLIT = "test"
Labels = dict[str, dict[str, tuple[str, float]]]
"""Question id -> chunk id -> the judgement's place and grade."""


def read(folder: Path, split: str | None = None) -> Stream:
    """Reads a BEIR data set while it is stored; memory holds the ids and the judgements.

    A document is a chunk (its title, a space, its text) and a page of its own, `beir:ID`. Grades are kept; grade 0 is
    a document that was judged not relevant, and a grade below 0 (TREC) is one that was not judged: it is left out, and
    one line says how many. Questions that the split does not judge belong to other splits: they are left out, and one
    line says how many. A judgement that names an unknown question or document is skipped. If queries are documents
    themselves, one line says so: evaluations leave the query's own id out of its ranking.

    Args:
        folder: of the data set.
        split: of the judgements; without, `test` or the only one there.

    Raises:
        InputError: a file is missing or cannot be read, no such split, or several and none of them is `test`.
    """
    if not folder.is_dir():
        raise InputError(
            "{folder}: no folder; a BEIR data set is one with corpus.jsonl, queries.jsonl and qrels/", folder=folder
        )
    for name in ("corpus.jsonl", "queries.jsonl"):
        if not (folder / name).is_file():
            raise InputError(
                "{folder}: no {name}; a BEIR data set is a folder with corpus.jsonl, queries.jsonl, qrels/",
                folder=folder,
                name=name,
            )
    stream = Stream()
    path = _judgements(folder, split)
    bad: list[Rejected] = []
    labels = _labels(path, bad, stream.problems) if path else {}
    if path is None:
        stream.problems.append(
            Words("{folder}: no *.tsv, the questions are loaded without labels", folder=folder / "qrels")
        )
    chunks, questions = set[str](), set[str]()
    same_ids: dict[str, str] = {}
    stream.chunks = _chunks(folder / "corpus.jsonl", chunks, labels, same_ids)
    judged = None if path is None else labels.keys()
    stream.questions = _questions(folder / "queries.jsonl", judged, questions, stream.problems)
    stream.questions = _count_query_documents(stream.questions, labels, same_ids, stream.problems)
    stream.annotations = _annotations(labels, bad, chunks, questions)
    return stream


def _judgements(folder: Path, split: str | None) -> Path | None:
    """The file of judgements to read; None where there is none at all and none was asked for."""
    found = {path.stem: path for path in sorted((folder / "qrels").glob("*.tsv"))}
    if split is not None and split not in found:
        raise unknown(Words("split in {folder}:", folder=folder / "qrels"), split, found)
    if split is None and len(found) > 1 and DEFAULT_SPLIT not in found:
        raise InputError(
            "{folder}: several splits, choose one by --split: {found}", folder=folder / "qrels", found=", ".join(found)
        )
    if not found:
        return None
    return found[split or (DEFAULT_SPLIT if DEFAULT_SPLIT in found else next(iter(found)))]


def _labels(path: Path, bad: list[Rejected], problems: list[str]) -> Labels:
    """The judgements of a split; what cannot be used goes to `bad`; of two different grades the first wins."""
    labels: Labels = {}
    not_judged = 0
    rows = csv.reader(lines(path), delimiter="\t", quoting=csv.QUOTE_NONE)
    for number, fields in enumerate(rows, start=1):
        place = Words("qrels/{name}:{number}", name=path.name, number=number)
        grade = _grade(fields[2]) if len(fields) == 3 else None
        is_header = number == 1 and grade is None
        if is_header or not any(field.strip() for field in fields):
            continue
        if grade is None:
            bad.append(
                Rejected(
                    place, Words("expected query-id, corpus-id, number, parted by tabs; got {fields!r}", fields=fields)
                )
            )
            continue
        question, chunk = fields[0].strip(), fields[1].strip()
        judgements = labels.setdefault(question, {})
        if grade < 0:
            not_judged += 1
            continue
        first = judgements.setdefault(chunk, (place, grade))
        if first[1] != grade:
            bad.append(
                Rejected(
                    place,
                    Words(
                        "{question!r} and {chunk!r} were judged otherwise at {first}",
                        question=question,
                        chunk=chunk,
                        first=first[0],
                    ),
                )
            )
    if not_judged:
        problems.append(
            Words(
                'qrels/{name}: {n:,} grades below 0 mean "not judged" and were left out', name=path.name, n=not_judged
            )
        )
    return labels


def _grade(text: str) -> float | None:
    try:
        grade = float(text)
    except ValueError:
        return None
    if not abs(grade) < 1e9:
        return None
    return int(grade) if grade.is_integer() else grade


def _chunks(path: Path, ids: set[str], queries: Collection[str], same_ids: dict[str, str]) -> Iterator[Row | Rejected]:
    """The documents; `same_ids` gets the texts of those that have the id of a query."""
    for place, document in json_lines(path):
        chunk_id = text_or_rejected(document.get("_id"), "_id", place)
        if isinstance(chunk_id, Rejected):
            yield chunk_id
            continue
        ids.add(chunk_id)
        parts = (str(document.get(name) or "").strip() for name in ("title", "text"))
        text = " ".join(part for part in parts if part)
        if chunk_id in queries:
            same_ids[chunk_id] = text
        yield Row(place, {"id": chunk_id, "confluence_url": page_of_document(chunk_id), "text": text})


def _questions(
    path: Path, judged: Iterable[str] | None, ids: set[str], problems: list[str]
) -> Iterator[Row | Rejected]:
    """The questions that the split judges, or all where nothing is judged."""
    left_out = 0
    for place, query in json_lines(path):
        question_id = text_or_rejected(query.get("_id"), "_id", place)
        text = text_or_rejected(query.get("text"), "text", place)
        if isinstance(question_id, Rejected):
            yield question_id
        elif judged is not None and question_id not in judged:
            left_out += 1
        elif isinstance(text, Rejected):
            yield text
        else:
            ids.add(question_id)
            yield Row(place, {"id": question_id, "question": text})
    if left_out:
        problems.append(
            Words(
                "{name}: {left_out:,} questions were left out, which this split does not judge",
                name=path.name,
                left_out=left_out,
            )
        )


def _count_query_documents(
    questions: Iterable[Row | Rejected], labels: Labels, same_ids: dict[str, str], problems: list[str]
) -> Iterator[Row | Rejected]:
    """The questions as they are; then a line on how many of them are documents, and not relevant to themselves."""
    n = 0
    for question in questions:
        yield question
        if isinstance(question, Rejected) or (document := same_ids.get(name := question.values["id"])) is None:
            continue
        relevant = labels[name].get(name, (None, 0.0))[1] > 0
        n += not relevant and is_query_document(question.values["question"], document)
    if n:
        problems.append(
            Words("{n:,} questions are documents themselves: their own id is left out of rankings, as BEIR does", n=n)
        )


def _annotations(
    labels: Labels, bad: list[Rejected], chunks: set[str], questions: set[str]
) -> Iterator[Row | Rejected]:
    """The judgements of each question, once all chunks and questions are read."""
    yield from bad
    for question, judged in labels.items():
        known: dict[str, float] = {}
        for chunk, (place, grade) in judged.items():
            if question not in questions:
                yield Rejected(place, Words("queries.jsonl has no question {question!r}", question=question))
            elif chunk not in chunks:
                yield Rejected(place, Words("corpus.jsonl has no document {chunk!r}", chunk=chunk))
            else:
                known[chunk] = grade
        if known:
            place = next(iter(judged.values()))[0]
            values = {"question_id": question, "relevant_chunk_ids": known, "origin": "imported"}
            yield Row(place, values)

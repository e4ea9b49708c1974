"""Read BEIR data sets: a folder with corpus.jsonl, queries.jsonl and graded judgements in qrels/SPLIT.tsv."""

import csv
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from yarus.db.errors import InputError, unknown
from yarus.db.importers.lines import read_json_objects, read_lines, require_text
from yarus.db.loading.load_rows import RowStream
from yarus.db.loading.staging import IncomingRow, Rejected
from yarus.db.messages import Words
from yarus.db.retrieval_sets import is_query_document, page_of_document

DEFAULT_SPLIT = "test"
Judgements = dict[str, dict[str, tuple[str, float]]]
"""Question id -> chunk id -> place and grade of the judgement."""


def read_beir(folder: Path, split: str | None = None) -> RowStream:
    """Read a BEIR data set while it is stored; memory holds the ids and the judgements.

    A document is a chunk (its title, a space, its text) and a page of its own, `beir:ID`. Grades are kept; grade 0
    means judged not relevant. A grade below 0 (TREC) means not judged: it is left out and counted in a problem.
    Questions that the split does not judge belong to other splits: they are also left out and counted. A judgement with
    an unknown question or document is skipped. If queries are documents themselves, a problem reports it: evaluations
    leave the query's own id out of its ranking.

    Args:
        folder: of the data set.
        split: of the judgements; None for `test`, or for the only one.

    Raises:
        InputError: a file is missing or cannot be read; the split does not exist; or there are several without `test`.
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
    stream = RowStream()
    judgement_path = _find_judgements(folder, split)
    rejected: list[Rejected] = []
    judgements = _parse_judgements(judgement_path, rejected, stream.problems) if judgement_path else {}
    if judgement_path is None:
        stream.problems.append(
            Words("{folder}: no *.tsv, the questions are loaded without labels", folder=folder / "qrels")
        )
    chunk_ids, question_ids = set[str](), set[str]()
    same_ids: dict[str, str] = {}
    stream.chunks = _iter_chunks(folder / "corpus.jsonl", chunk_ids, judgements, same_ids)
    judged_questions = None if judgement_path is None else judgements.keys()
    stream.questions = _iter_questions(folder / "queries.jsonl", judged_questions, question_ids, stream.problems)
    stream.questions = _count_query_documents(stream.questions, judgements, same_ids, stream.problems)
    stream.annotations = _iter_annotations(judgements, rejected, chunk_ids, question_ids)
    return stream


def _find_judgements(folder: Path, split: str | None) -> Path | None:
    """Return the file of judgements to read; None if there is none and none was requested."""
    paths = {path.stem: path for path in sorted((folder / "qrels").glob("*.tsv"))}
    if split is not None and split not in paths:
        raise unknown(Words("split in {folder}:", folder=folder / "qrels"), split, paths)
    if split is None and len(paths) > 1 and DEFAULT_SPLIT not in paths:
        raise InputError(
            "{folder}: several splits, choose one by --split: {found}", folder=folder / "qrels", found=", ".join(paths)
        )
    if not paths:
        return None
    return paths[split or (DEFAULT_SPLIT if DEFAULT_SPLIT in paths else next(iter(paths)))]


def _parse_judgements(path: Path, rejected: list[Rejected], problems: list[str]) -> Judgements:
    """Parse the judgements of a split; unusable ones go to `rejected`; of two different grades the first wins."""
    judgements_by_question: Judgements = {}
    n_not_judged = 0
    rows = csv.reader(read_lines(path), delimiter="\t", quoting=csv.QUOTE_NONE)
    for number, fields in enumerate(rows, start=1):
        place = Words("qrels/{name}:{number}", name=path.name, number=number)
        grade = _parse_grade(fields[2]) if len(fields) == 3 else None
        is_header = number == 1 and grade is None
        if is_header or not any(field.strip() for field in fields):
            continue
        if grade is None:
            rejected.append(
                Rejected(
                    place, Words("expected query-id, corpus-id, number, parted by tabs; got {fields!r}", fields=fields)
                )
            )
            continue
        question_id, chunk_id = fields[0].strip(), fields[1].strip()
        judgements = judgements_by_question.setdefault(question_id, {})
        if grade < 0:
            n_not_judged += 1
            continue
        first = judgements.setdefault(chunk_id, (place, grade))
        if first[1] != grade:
            rejected.append(
                Rejected(
                    place,
                    Words(
                        "{question!r} and {chunk!r} were judged otherwise at {first}",
                        question=question_id,
                        chunk=chunk_id,
                        first=first[0],
                    ),
                )
            )
    if n_not_judged:
        problems.append(
            Words(
                'qrels/{name}: {n:,} grades below 0 mean "not judged" and were left out', name=path.name, n=n_not_judged
            )
        )
    return judgements_by_question


def _parse_grade(text: str) -> float | None:
    try:
        grade = float(text)
    except ValueError:
        return None
    if not abs(grade) < 1e9:
        return None
    return int(grade) if grade.is_integer() else grade


def _iter_chunks(
    path: Path, chunk_ids: set[str], query_ids: Collection[str], same_ids: dict[str, str]
) -> Iterator[IncomingRow | Rejected]:
    """Yield the documents; `same_ids` receives the texts of those with the id of a query."""
    for place, document in read_json_objects(path):
        chunk_id = require_text(document.get("_id"), "_id", place)
        if isinstance(chunk_id, Rejected):
            yield chunk_id
            continue
        chunk_ids.add(chunk_id)
        parts = (str(document.get(name) or "").strip() for name in ("title", "text"))
        text = " ".join(part for part in parts if part)
        if chunk_id in query_ids:
            same_ids[chunk_id] = text
        yield IncomingRow(place, {"id": chunk_id, "confluence_url": page_of_document(chunk_id), "text": text})


def _iter_questions(
    path: Path, judged_questions: Iterable[str] | None, question_ids: set[str], problems: list[str]
) -> Iterator[IncomingRow | Rejected]:
    """Yield the questions that the split judges, or all if there are no judgements."""
    n_left_out = 0
    for place, query in read_json_objects(path):
        question_id = require_text(query.get("_id"), "_id", place)
        text = require_text(query.get("text"), "text", place)
        if isinstance(question_id, Rejected):
            yield question_id
        elif judged_questions is not None and question_id not in judged_questions:
            n_left_out += 1
        elif isinstance(text, Rejected):
            yield text
        else:
            question_ids.add(question_id)
            yield IncomingRow(place, {"id": question_id, "question": text})
    if n_left_out:
        problems.append(
            Words(
                "{name}: {left_out:,} questions were left out, which this split does not judge",
                name=path.name,
                left_out=n_left_out,
            )
        )


def _count_query_documents(
    questions: Iterable[IncomingRow | Rejected], judgements: Judgements, same_ids: dict[str, str], problems: list[str]
) -> Iterator[IncomingRow | Rejected]:
    """Yield the questions unchanged, then report how many are documents that are not relevant to themselves."""
    n_documents = 0
    for question in questions:
        yield question
        if isinstance(question, Rejected) or (document := same_ids.get(question_id := question.values["id"])) is None:
            continue
        is_relevant = judgements[question_id].get(question_id, (None, 0.0))[1] > 0
        n_documents += not is_relevant and is_query_document(question.values["question"], document)
    if n_documents:
        problems.append(
            Words(
                "{n:,} questions are documents themselves: their own id is left out of rankings, as BEIR does",
                n=n_documents,
            )
        )


def _iter_annotations(
    judgements_by_question: Judgements, rejected: list[Rejected], chunk_ids: set[str], question_ids: set[str]
) -> Iterator[IncomingRow | Rejected]:
    """Yield the judgements of each question, after all chunks and questions are read."""
    yield from rejected
    for question_id, judgements in judgements_by_question.items():
        grades: dict[str, float] = {}
        for chunk_id, (place, grade) in judgements.items():
            if question_id not in question_ids:
                yield Rejected(place, Words("queries.jsonl has no question {question!r}", question=question_id))
            elif chunk_id not in chunk_ids:
                yield Rejected(place, Words("corpus.jsonl has no document {chunk!r}", chunk=chunk_id))
            else:
                grades[chunk_id] = grade
        if grades:
            place = next(iter(judgements.values()))[0]
            values = {"question_id": question_id, "relevant_chunk_ids": grades, "origin": "imported"}
            yield IncomingRow(place, values)

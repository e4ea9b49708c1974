"""Test sets as ragas and Langfuse export them, as rows for a source.

ragas (Testset or EvaluationDataset, by to_jsonl, to_csv, to_pandas or to_list): `user_input`, `reference`,
`reference_contexts`, `synthesizer_name`; of 0.1 also `question`, `ground_truth`, `contexts`, `evolution_type`. In CSV a
list stands as Python writes it. The contexts become chunks, known by their text, and are what is relevant.

Langfuse (items of a dataset, by the API, an SDK or the download of its pages, in JSON, JSON Lines or CSV): `id`,
`input`, `expectedOutput`, `metadata`, `status`. Input and output are a text, an object with the text under a usual
name, or a list of messages, of which the last counts. Archived items are passed over. What is relevant may stand in
`metadata`: `contexts`, `relevant_chunk_ids`, `relevant_urls`, `url`.
"""

import csv
import hashlib
import io
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import pyarrow.parquet as pq

from db.errors import InputError
from db.importers.files import read_json, read_jsonl, read_text
from db.importers.said import ANSWER_NAMES, QUESTION_NAMES, parsed, said, texts
from db.loading.fill import Row, Rows
from db.words import Words

Format = Literal["ragas", "langfuse"]
Item = Mapping[str, Any]
LONGEST_FIELD = 10_000_000


def read(path: Path, kind: Format) -> Rows:
    """The rows of an export: questions, their annotations, and chunks where the export has contexts.

    Args:
        path: ends in .json, .jsonl, .csv or .parquet.
        kind: who has written it.

    Raises:
        InputError: unreadable, of another format, or without a single usable item.
    """
    reader = {"ragas": _ragas, "langfuse": _langfuse}[kind]
    rows = Rows()
    for number, item in enumerate(_items(path), start=1):
        place = Words("{file}: item {number}", file=path.name, number=number)
        problem = reader(item, place, rows)
        if problem:
            rows.problems.append(Words("{place}: skipped, {problem}", place=place, problem=problem))
    if not rows.questions:
        first = Words("; {problem}", problem=rows.problems[0]) if rows.problems else ""
        raise InputError(
            "{path}: no item with a question, as {kind} exports them{first}; nothing was loaded",
            path=path,
            kind=kind,
            first=first,
        )
    known: dict[str, Row] = {}
    for row in rows.chunks:
        known.setdefault(row.values["id"], row)
    rows.chunks = list(known.values())
    return rows


def _items(path: Path) -> Iterator[Item]:
    formats: dict[str, Callable[[Path], Any]] = {
        ".json": _json, ".jsonl": read_jsonl, ".ndjson": read_jsonl, ".csv": _csv, ".parquet": _parquet,
    }  # fmt: skip
    if path.suffix.lower() not in formats:
        raise InputError("{path}: expected a name that ends in {formats}", path=path, formats=", ".join(formats))
    items = formats[path.suffix.lower()](path)
    for number, item in enumerate(items, start=1):
        if not isinstance(item, dict):
            raise InputError(
                "{path}: item {number}: expected an object, got {kind}; nothing loaded",
                path=path,
                number=number,
                kind=type(item).__name__,
            )
        yield item


def _json(path: Path) -> list[Any]:
    """A list, or the list under `data`, `items` or `samples`; a table by columns, as pandas writes it, too."""
    document = read_json(path)
    if isinstance(document, dict):
        for name in ("data", "items", "samples"):
            if isinstance(document.get(name), list):
                return list(document[name])
        columns = {name: list(of.values()) for name, of in document.items() if isinstance(of, dict)}
        if columns and len(columns) == len(document) and len({len(of) for of in columns.values()}) == 1:
            return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    if not isinstance(document, list):
        raise InputError(
            "{path}: expected a list of items, or an object with 'data' or 'items'; nothing was loaded", path=path
        )
    return document


def _csv(path: Path) -> list[dict[str, Any]]:
    csv.field_size_limit(LONGEST_FIELD)
    try:
        return list(csv.DictReader(io.StringIO(read_text(path), newline=""), strict=True))
    except csv.Error as error:
        raise InputError("{path}: {error}; nothing was loaded", path=path, error=error) from None


def _parquet(path: Path) -> list[dict[str, Any]]:
    try:
        rows: list[dict[str, Any]] = pq.ParquetFile(path).read().to_pylist()
    except (OSError, ValueError) as error:
        raise InputError("{path}: no Parquet: {error}; nothing was loaded", path=path, error=error) from None
    return rows


def _ragas(item: Item, place: str, rows: Rows) -> str:
    question = item.get("user_input", item.get("question"))
    if isinstance(question, list):
        return Words("a conversation of several turns")
    reference = item.get("reference") or item.get("ground_truth") or next(iter(texts(item.get("ground_truths"))), None)
    contexts = texts(item.get("reference_contexts") or (None if "user_input" in item else item.get("contexts")))
    made_by = item.get("synthesizer_name") or item.get("evolution_type")
    chunks = _add_chunks(contexts, place, rows)
    return _add(question, reference, place, rows, relevant_chunk_ids=chunks, review=made_by and {"made_by": made_by})


def _langfuse(item: Item, place: str, rows: Rows) -> str:
    if str(item.get("status", "")).upper() == "ARCHIVED":
        return Words("archived")
    output = item.get("expectedOutput", item.get("expected_output"))
    metadata = parsed(item.get("metadata"))
    known: Item = metadata if isinstance(metadata, dict) else {}
    chunks = _add_chunks(texts(known.get("contexts") or known.get("reference_contexts")), place, rows)
    return _add(
        said(parsed(item.get("input")), QUESTION_NAMES),
        said(parsed(output), ANSWER_NAMES),
        place,
        rows,
        name=item.get("id"),
        relevant_chunk_ids=chunks + texts(known.get("relevant_chunk_ids")),
        relevant_urls=texts(known.get("relevant_urls") or known.get("url")),
    )


def _add(question: Any, reference: Any, place: str, rows: Rows, *, name: Any = None, **labels: Any) -> str:
    """Adds a question with its annotation; or says why not."""
    if not isinstance(question, str) or not question.strip():
        return Words("no question")
    question_id = str(name or hashlib.sha256(question.encode("utf-8", "surrogatepass")).hexdigest()[:16])
    rows.questions.append(Row(place, {"id": question_id, "question": question.strip()}))
    answer = reference.strip() if isinstance(reference, str) else None
    given = {"relevant_chunk_ids": None, "relevant_urls": None, "review": None}
    given |= {key: value or None for key, value in labels.items()}
    label = {"question_id": question_id, "ground_truth_answer": answer or None, **given, "origin": "imported"}
    rows.annotations.append(Row(place, label))
    return ""


def _add_chunks(contexts: list[str], place: str, rows: Rows) -> list[str]:
    ids = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16] for text in contexts]
    rows.chunks += [Row(place, {"id": name, "text": text}) for name, text in zip(ids, contexts, strict=True)]
    return ids

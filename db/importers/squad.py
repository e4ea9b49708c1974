"""SQuAD and what is shaped like it (XQuAD, SberQuAD): the paragraph is the chunk, the article the page."""

from collections import Counter
from pathlib import Path
from typing import Any

from yarus.db.errors import InputError
from yarus.db.importers.files import read_json
from yarus.db.loading.fill import Row, Rows


def read(path: Path) -> Rows:
    """Reads a SQuAD 1.1 or 2.0 file.

    Chunk ids are made of the article's title and the paragraph's number in it, page URLs of the title; articles of one
    title are one page. A question's one relevant chunk is its paragraph, its reference the first answer;
    `is_impossible` makes it unanswerable.

    Raises:
        InputError: unreadable, not JSON, or not SQuAD (the place is named).
    """
    rows = Rows()
    numbers: Counter[str] = Counter()  # of the next paragraph, by title
    for a, article in enumerate(_list(read_json(path), "data", str(path), path)):
        title = str(_get(article, "title", f"data[{a}]", path, default=f"article-{a}"))
        for p, paragraph in enumerate(_list(article, "paragraphs", f"data[{a}]", path)):
            place = f"data[{a}].paragraphs[{p}]"
            chunk_id, url = f"{title}-{numbers[title]}", f"squad:{title}"
            numbers[title] += 1
            context = _get(paragraph, "context", place, path)
            rows.chunks.append(Row(place, {"id": chunk_id, "confluence_url": url, "text": context}))
            for q, question in enumerate(_list(paragraph, "qas", place, path)):
                _question(rows, question, f"{place}.qas[{q}]", path, chunk_id=chunk_id, url=url)
    return rows


def _question(rows: Rows, question: Any, place: str, path: Path, *, chunk_id: str, url: str) -> None:
    question_id = str(_get(question, "id", place, path))
    rows.questions.append(Row(place, {"id": question_id, "question": _get(question, "question", place, path)}))
    answers = _list(question, "answers", place, path)
    answerable = not question.get("is_impossible", False)
    values = {
        "question_id": question_id,
        "ground_truth_answer": _get(answers[0], "text", f"{place}.answers[0]", path) if answers else None,
        "relevant_chunk_ids": [chunk_id] if answerable else None,
        "relevant_urls": [url] if answerable else None,
        "answerable": answerable,
        "cluster": url.removeprefix("squad:"),
        "origin": "imported",
    }
    rows.annotations.append(Row(place, values))


def _get(value: Any, key: str, place: str, path: Path, **default: Any) -> Any:
    if not isinstance(value, dict) or (key not in value and not default):
        raise InputError(
            "{path}: {place} has no {key!r}: not a SQuAD file; nothing was loaded", path=path, place=place, key=key
        )
    return value.get(key, *default.values())


def _list(value: Any, key: str, place: str, path: Path) -> list[Any]:
    found = _get(value, key, place, path)
    if not isinstance(found, list):
        raise InputError(
            "{path}: {key!r} of {place} is not a list: not a SQuAD file; nothing was loaded",
            path=path,
            key=key,
            place=place,
        )
    return found

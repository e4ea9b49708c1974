"""Read SQuAD and files of its shape (XQuAD, SberQuAD): a paragraph is a chunk, an article a page."""

from collections import Counter
from pathlib import Path
from typing import Any

from yarus.db.errors import InputError
from yarus.db.importers.files import read_json
from yarus.db.loading.load_rows import ImportedRows, IncomingRow


def read_squad(path: Path) -> ImportedRows:
    """Read a SQuAD 1.1 or 2.0 file.

    Chunk ids consist of the article's title and the paragraph's number in it, page URLs of the title; articles with the
    same title are one page. A question's only relevant chunk is its paragraph, its reference the first answer;
    `is_impossible` makes it unanswerable.

    Raises:
        InputError: unreadable, not JSON, or not SQuAD (the message names the place).
    """
    rows = ImportedRows()
    numbers: Counter[str] = Counter()  # number of the next paragraph, by title
    for article_index, article in enumerate(_get_list(read_json(path), "data", str(path), path)):
        title = str(_get(article, "title", f"data[{article_index}]", path, default=f"article-{article_index}"))
        for paragraph_index, paragraph in enumerate(_get_list(article, "paragraphs", f"data[{article_index}]", path)):
            place = f"data[{article_index}].paragraphs[{paragraph_index}]"
            chunk_id, url = f"{title}-{numbers[title]}", f"squad:{title}"
            numbers[title] += 1
            context = _get(paragraph, "context", place, path)
            rows.chunks.append(IncomingRow(place, {"id": chunk_id, "confluence_url": url, "text": context}))
            for question_index, question in enumerate(_get_list(paragraph, "qas", place, path)):
                _add_question(rows, question, f"{place}.qas[{question_index}]", path, chunk_id=chunk_id, url=url)
    return rows


def _add_question(rows: ImportedRows, question: Any, place: str, path: Path, *, chunk_id: str, url: str) -> None:
    question_id = str(_get(question, "id", place, path))
    rows.questions.append(IncomingRow(place, {"id": question_id, "question": _get(question, "question", place, path)}))
    answers = _get_list(question, "answers", place, path)
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
    rows.annotations.append(IncomingRow(place, values))


def _get(value: Any, key: str, place: str, path: Path, **default: Any) -> Any:
    if not isinstance(value, dict) or (key not in value and not default):
        raise InputError(
            "{path}: {place} has no {key!r}: not a SQuAD file; nothing was loaded", path=path, place=place, key=key
        )
    return value.get(key, *default.values())


def _get_list(value: Any, key: str, place: str, path: Path) -> list[Any]:
    items = _get(value, key, place, path)
    if not isinstance(items, list):
        raise InputError(
            "{path}: {key!r} of {place} is not a list: not a SQuAD file; nothing was loaded",
            path=path,
            key=key,
            place=place,
        )
    return items

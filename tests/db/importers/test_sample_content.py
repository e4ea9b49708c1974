"""Test that the bundled sample has the contents that its README promises, and nothing else is broken."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from yarus.db.urls import canonical_url

FOLDER = Path(__file__).parents[3] / "db" / "sample"
REFUSALS = ("Ответ не найден", "К сожалению, в базе знаний нет", "Я отвечаю только на вопросы")
TRACKING = re.compile(r"[?&](utm_\w+|from)=")
COLUMN_TYPES = {
    "chunk": {"id": int, "confluence_url": str, "text": str},
    "question_answer": {
        "id": int,
        "question": str,
        "answer": str | None,
        "confluence_url": str | None,
        "score": int | None,
        "user_id": int,
        "created_at": str,
    },
    "annotation": {
        "question_id": int,
        "ground_truth_answer": str | None,
        "relevant_chunk_ids": dict,
        "relevant_urls": list,
        "ground_truth_show": bool | None,
        "answerable": bool,
        "cluster": str,
        "dialog_id": str | None,
        "turn": int | None,
        "origin": str,
    },
}


def _read_rows(name: str) -> list[dict]:
    return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


CHUNKS, LOG_ROWS, LABELS = (_read_rows(name) for name in COLUMN_TYPES)
CHUNK_IDS = {str(chunk["id"]) for chunk in CHUNKS}
PAGE_OF = {str(chunk["id"]): canonical_url(chunk["confluence_url"]) for chunk in CHUNKS}
PAGES = set(PAGE_OF.values())
ROW_BY_ID = {row["id"]: row for row in LOG_ROWS}
LABEL_OF = {label["question_id"]: label for label in LABELS}


def _normalize_question(question: str) -> str:
    """Normalise a question: case, «ё» and final marks do not matter."""
    return question.lower().replace("ё", "е").strip(" ?!.")


def _page_of_row(row: dict) -> str | None:
    return canonical_url(row["confluence_url"])


def _is_refusal(row: dict) -> bool:
    return (row["answer"] or "").startswith(REFUSALS)


def _answering_pages(label: dict) -> set[str | None]:
    """Return the pages of the chunks that answer the question by themselves (the highest grade)."""
    return {PAGE_OF[chunk] for chunk, grade in label["relevant_chunk_ids"].items() if grade == 3 and chunk in PAGE_OF}


def _is_stale(label: dict) -> bool:
    return bool(label["relevant_chunk_ids"].keys() - CHUNK_IDS) or any(
        canonical_url(url) not in PAGES for url in label["relevant_urls"]
    )


def _find_conversations() -> list[list[dict]]:
    """Return the conversations: at least two questions of one user, no more than 30 minutes apart."""
    conversations: list[list[dict]] = []
    for row in sorted(LOG_ROWS, key=lambda row: (row["user_id"], row["created_at"])):
        last = conversations[-1][-1] if conversations else None
        is_continued = (
            last is not None
            and last["user_id"] == row["user_id"]
            and _created_at(row) - _created_at(last) <= timedelta(minutes=30)
        )
        conversations[-1].append(row) if is_continued else conversations.append([row])
    return [turns for turns in conversations if len(turns) > 1]


def _created_at(row: dict) -> datetime:
    return datetime.fromisoformat(row["created_at"])


def _group_repeated_questions() -> list[list[dict]]:
    groups: defaultdict[str, list[dict]] = defaultdict(list)
    for row in LOG_ROWS:
        groups[_normalize_question(row["question"])].append(row)
    return [rows for rows in groups.values() if len(rows) > 1]


def _repeats_after_wrong_answer(first: dict, second: dict) -> bool:
    """Return whether the second turn needs the chunk that the wrong answer to the first one missed."""
    labels = [LABEL_OF.get(row["id"]) for row in (first, second)]
    if None in labels or labels[0]["ground_truth_show"] is not False:
        return False
    chunks = [{chunk for chunk, grade in label["relevant_chunk_ids"].items() if grade == 3} for label in labels]
    return bool(chunks[0] & chunks[1])


def _count_in_log(predicate: Callable[[dict], bool]) -> Callable[[], int]:
    return lambda: sum(map(predicate, LOG_ROWS))


def _count_labels(predicate: Callable[[dict], bool]) -> Callable[[], int]:
    return lambda: sum(map(predicate, LABELS))


# Counts in the README, each with the minimum that keeps the sample useful.
CONTENT_COUNTS: dict[str, tuple[Callable[[], int], int]] = {
    "pages": (lambda: len(PAGES), 40),
    "chunks": (lambda: len(CHUNKS), 120),
    "chunks that no label names": (
        lambda: len(CHUNK_IDS - {chunk for label in LABELS for chunk in label["relevant_chunk_ids"]}),
        5,
    ),
    "questions in the log": (lambda: len(LOG_ROWS), 220),
    "questions with an annotation": (lambda: len(LABELS), 90),
    "score 5": (_count_in_log(lambda row: row["score"] == 5), 60),
    "score 1": (_count_in_log(lambda row: row["score"] == 1), 30),
    "scores 2 to 4": (_count_in_log(lambda row: row["score"] in {2, 3, 4}), 6),
    "no score": (_count_in_log(lambda row: row["score"] is None), 60),
    "URL is NULL": (_count_in_log(lambda row: row["confluence_url"] is None), 15),
    "URL is empty, `None` or `null`": (_count_in_log(lambda row: row["confluence_url"] in {"", "None", "null"}), 5),
    "URL of a page that is gone": (
        _count_in_log(lambda row: _page_of_row(row) is not None and _page_of_row(row) not in PAGES),
        8,
    ),
    "URL with `preview=`": (_count_in_log(lambda row: "preview=" in (row["confluence_url"] or "")), 6),
    "URL with a `#fragment`": (_count_in_log(lambda row: "#" in (row["confluence_url"] or "")), 3),
    "URL with tracking parameters": (_count_in_log(lambda row: bool(TRACKING.search(row["confluence_url"] or ""))), 3),
    "no answer (NULL)": (_count_in_log(lambda row: row["answer"] is None), 8),
    "refusals": (_count_in_log(_is_refusal), 12),
    "questions asked more than once": (lambda: len(_group_repeated_questions()), 8),
    "of these, scored both 5 and 1": (
        lambda: sum({1, 5} <= {row["score"] for row in rows} for rows in _group_repeated_questions()),
        4,
    ),
    "wrong keyboard layout": (
        _count_in_log(lambda row: bool(re.fullmatch(r"[a-z., ]+\.?[a-z ,.]*", row["question"]))),
        2,
    ),
    "conversations of two turns or more": (lambda: len(_find_conversations()), 10),
    "the longest conversation, in turns": (lambda: max(map(len, _find_conversations())), 4),
    "asked on after a wrong answer": (
        lambda: sum(_repeats_after_wrong_answer(*pair) for turns in _find_conversations() for pair in pairwise(turns)),
        5,
    ),
    "not answerable from the wiki": (_count_labels(lambda label: not label["answerable"]), 14),
    "of these, off topic": (_count_labels(lambda label: label["cluster"] == "Не по теме"), 6),
    "two questions in one (two pages needed)": (_count_labels(lambda label: len(_answering_pages(label)) > 1), 5),
    "several chunks, graded": (_count_labels(lambda label: len(set(label["relevant_chunk_ids"].values())) > 1), 15),
    "only a page is labelled": (
        _count_labels(lambda label: bool(label["relevant_urls"]) and not label["relevant_chunk_ids"]),
        5,
    ),
    "answerable, but without a label": (
        _count_labels(
            lambda label: label["answerable"] and not label["relevant_urls"] and not label["relevant_chunk_ids"]
        ),
        2,
    ),
    "stale labels": (_count_labels(_is_stale), 4),
    "of these, nothing but stale": (
        _count_labels(
            lambda label: (
                _is_stale(label) and not label["relevant_chunk_ids"].keys() & CHUNK_IDS and not _has_live_page(label)
            )
        ),
        2,
    ),
    "answer should be shown": (_count_labels(lambda label: label["ground_truth_show"] is True), 50),
    "answer should not be shown": (_count_labels(lambda label: label["ground_truth_show"] is False), 30),
    "left open whether to show": (_count_labels(lambda label: label["ground_truth_show"] is None), 5),
    "wrong answers that the user scored 5": (
        _count_labels(
            lambda label: label["ground_truth_show"] is False and ROW_BY_ID[label["question_id"]]["score"] == 5
        ),
        2,
    ),
    "right answers that the user scored 1": (
        _count_labels(
            lambda label: label["ground_truth_show"] is True and ROW_BY_ID[label["question_id"]]["score"] == 1
        ),
        2,
    ),
    "references of one word": (_count_labels(lambda label: len((label["ground_truth_answer"] or "").split()) == 1), 3),
    "without a reference": (_count_labels(lambda label: label["ground_truth_answer"] is None), 14),
    "synthetic": (_count_labels(lambda label: label["origin"] == "synthetic"), 10),
    "imported": (_count_labels(lambda label: label["origin"] == "imported"), 10),
}


def _has_live_page(label: dict) -> bool:
    return any(canonical_url(url) in PAGES for url in label["relevant_urls"])


def _read_promised_counts() -> dict[str, int]:
    rows = re.findall(r"^\| (.+?) \| (\d+) \|", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    return {name: int(count) for name, count in rows}


@pytest.mark.parametrize("name", CONTENT_COUNTS)
def test_readme_counts_match_the_sample(name):
    count, minimum = CONTENT_COUNTS[name]
    assert _read_promised_counts()[name] == count() >= minimum


def test_every_count_in_the_readme_is_tested():
    assert _read_promised_counts().keys() == CONTENT_COUNTS.keys()


@pytest.mark.parametrize("name", COLUMN_TYPES)
def test_sample_rows_have_declared_keys_and_types(name):
    for row in _read_rows(name):
        assert row.keys() == COLUMN_TYPES[name].keys(), row
        for key, kind in COLUMN_TYPES[name].items():
            assert isinstance(row[key], kind), (key, row)


@pytest.mark.parametrize("rows, key", [(CHUNKS, "id"), (LOG_ROWS, "id"), (LABELS, "question_id")])
def test_sample_ids_are_unique(rows, key):
    assert [value for value, count in Counter(row[key] for row in rows).items() if count > 1] == []


def test_sample_log_is_ordered_within_its_period():
    times = [_created_at(row) for row in LOG_ROWS]
    assert all(created_at.utcoffset() == timedelta(0) for created_at in times)
    assert times == sorted(times)
    assert datetime(2025, 8, 18, tzinfo=UTC) <= times[0]
    assert times[-1] < datetime(2026, 1, 24, tzinfo=UTC)


@pytest.mark.parametrize("month, cluster", [("08", "Поступление"), ("09", "Wi-Fi"), ("01", "Пересдачи")])
def test_sample_topics_peak_in_their_month(month, cluster):
    months = Counter(
        ROW_BY_ID[label["question_id"]]["created_at"][5:7] for label in LABELS if label["cluster"] == cluster
    )
    assert months.most_common(1)[0][0] == month


def test_sample_scores_are_valid():
    assert {row["score"] for row in LOG_ROWS} <= {1, 2, 3, 4, 5, None}


def test_sample_chunks_are_ordered_and_unique():
    pages = [chunk["confluence_url"] for chunk in CHUNKS]
    assert len(CHUNKS) == len({chunk["text"] for chunk in CHUNKS})
    assert sum(first != second for first, second in pairwise(pages)) == len(PAGES) - 1
    assert all(20 <= len(chunk["text"].split()) <= 180 for chunk in CHUNKS)


def test_sample_labels_match_questions_and_pages():
    for label in LABELS:
        assert label["question_id"] in ROW_BY_ID, label
        urls = {canonical_url(url) for url in label["relevant_urls"]}
        assert {PAGE_OF[chunk] for chunk in label["relevant_chunk_ids"].keys() & CHUNK_IDS} <= urls, label
        assert set(label["relevant_chunk_ids"].values()) <= {1, 2, 3}, label
        assert label["origin"] in {"manual", "synthetic", "imported"}


def test_stale_sample_labels_name_only_the_old_wiki():
    """Expect ids from 3900 and pages of the old wiki; any other unknown name in a label is an error of ours."""
    unknown_ids = {chunk for label in LABELS for chunk in label["relevant_chunk_ids"].keys() - CHUNK_IDS}
    stale_urls = {url for label in LABELS for url in label["relevant_urls"] if canonical_url(url) not in PAGES}
    assert all(3900 <= int(chunk) < 4000 for chunk in unknown_ids)
    assert all("pageId=39000" in url or url.endswith("display/IT/Old+WiFi") for url in stale_urls)


def test_unanswerable_sample_questions_have_no_labels():
    for label in LABELS:
        if not label["answerable"]:
            assert (label["relevant_chunk_ids"], label["relevant_urls"], label["ground_truth_answer"]) == ({}, [], None)


def test_sample_dialogs_match_turns_of_one_user():
    turns = {
        row["id"]: (number, turn) for number, rows in enumerate(_find_conversations()) for turn, row in enumerate(rows)
    }
    dialogs: defaultdict[str, set[int]] = defaultdict(set)
    for label in LABELS:
        assert (label["dialog_id"] is None) == (label["question_id"] not in turns), label
        if label["dialog_id"] is not None:
            number, turn = turns[label["question_id"]]
            dialogs[label["dialog_id"]].add(number)
            assert label["turn"] == turn + 1, label
    assert all(len(numbers) == 1 for numbers in dialogs.values())


def test_sample_has_no_real_hosts_or_phone_numbers():
    """Check that hosts end in the reserved .example, and no digits look like a telephone number."""
    text = "\n".join(json.dumps(row, ensure_ascii=False) for row in CHUNKS + LOG_ROWS + LABELS)
    hosts = set(re.findall(r"[\w.-]+@([\w.-]+\w)", text)) | set(re.findall(r"https?://([^/\s\"]+)", text))
    assert all(host.lower().endswith("university.example") for host in hosts), hosts
    assert re.findall(r"\+7|\b8[ (-]*\d{3}[ )-]*\d{3}[ -]*\d{2}[ -]*\d{2}\b", text) == []

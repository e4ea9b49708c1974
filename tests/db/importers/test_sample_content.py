"""The bundled sample holds what its README promises: every count in its table, and that nothing else is broken."""

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
KEYS = {
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


def _read(name: str) -> list[dict]:
    return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


CHUNKS, LOG, LABELS = (_read(name) for name in KEYS)
CHUNK_IDS = {str(chunk["id"]) for chunk in CHUNKS}
PAGE_OF = {str(chunk["id"]): canonical_url(chunk["confluence_url"]) for chunk in CHUNKS}
PAGES = set(PAGE_OF.values())
BY_ID = {row["id"]: row for row in LOG}
LABEL_OF = {label["question_id"]: label for label in LABELS}


def _normal(question: str) -> str:
    """Equal for questions that differ only in case, «ё» and a final mark."""
    return question.lower().replace("ё", "е").strip(" ?!.")


def _page(row: dict) -> str | None:
    return canonical_url(row["confluence_url"])


def _refused(row: dict) -> bool:
    return (row["answer"] or "").startswith(REFUSALS)


def _pages_of(label: dict) -> set[str | None]:
    """Pages of the chunks that answer the question by themselves (the highest grade)."""
    return {PAGE_OF[chunk] for chunk, grade in label["relevant_chunk_ids"].items() if grade == 3 and chunk in PAGE_OF}


def _stale(label: dict) -> bool:
    return bool(label["relevant_chunk_ids"].keys() - CHUNK_IDS) or any(
        canonical_url(url) not in PAGES for url in label["relevant_urls"]
    )


def _conversations() -> list[list[dict]]:
    """One user's questions no more than 30 minutes apart, where there are at least two."""
    found: list[list[dict]] = []
    for row in sorted(LOG, key=lambda row: (row["user_id"], row["created_at"])):
        last = found[-1][-1] if found else None
        near = last is not None and last["user_id"] == row["user_id"] and _at(row) - _at(last) <= timedelta(minutes=30)
        found[-1].append(row) if near else found.append([row])
    return [turns for turns in found if len(turns) > 1]


def _at(row: dict) -> datetime:
    return datetime.fromisoformat(row["created_at"])


def _groups() -> list[list[dict]]:
    groups: defaultdict[str, list[dict]] = defaultdict(list)
    for row in LOG:
        groups[_normal(row["question"])].append(row)
    return [rows for rows in groups.values() if len(rows) > 1]


def _asks_on(first: dict, second: dict) -> bool:
    """Whether the second turn needs the chunk that the first one's wrong answer did not bring."""
    labels = [LABEL_OF.get(row["id"]) for row in (first, second)]
    if None in labels or labels[0]["ground_truth_show"] is not False:
        return False
    wanted = [{chunk for chunk, grade in label["relevant_chunk_ids"].items() if grade == 3} for label in labels]
    return bool(wanted[0] & wanted[1])


def _log(test: Callable[[dict], bool]) -> Callable[[], int]:
    return lambda: sum(map(test, LOG))


def _label(test: Callable[[dict], bool]) -> Callable[[], int]:
    return lambda: sum(map(test, LABELS))


# What the README counts, and the least that makes it worth looking at.
COUNTS: dict[str, tuple[Callable[[], int], int]] = {
    "pages": (lambda: len(PAGES), 40),
    "chunks": (lambda: len(CHUNKS), 120),
    "chunks that no label names": (
        lambda: len(CHUNK_IDS - {chunk for label in LABELS for chunk in label["relevant_chunk_ids"]}),
        5,
    ),
    "questions in the log": (lambda: len(LOG), 220),
    "questions with an annotation": (lambda: len(LABELS), 90),
    "score 5": (_log(lambda row: row["score"] == 5), 60),
    "score 1": (_log(lambda row: row["score"] == 1), 30),
    "scores 2 to 4": (_log(lambda row: row["score"] in {2, 3, 4}), 6),
    "no score": (_log(lambda row: row["score"] is None), 60),
    "URL is NULL": (_log(lambda row: row["confluence_url"] is None), 15),
    "URL is empty, `None` or `null`": (_log(lambda row: row["confluence_url"] in {"", "None", "null"}), 5),
    "URL of a page that is gone": (_log(lambda row: _page(row) is not None and _page(row) not in PAGES), 8),
    "URL with `preview=`": (_log(lambda row: "preview=" in (row["confluence_url"] or "")), 6),
    "URL with a `#fragment`": (_log(lambda row: "#" in (row["confluence_url"] or "")), 3),
    "URL with tracking parameters": (_log(lambda row: bool(TRACKING.search(row["confluence_url"] or ""))), 3),
    "no answer (NULL)": (_log(lambda row: row["answer"] is None), 8),
    "refusals": (_log(_refused), 12),
    "questions asked more than once": (lambda: len(_groups()), 8),
    "of these, scored both 5 and 1": (
        lambda: sum({1, 5} <= {row["score"] for row in rows} for rows in _groups()),
        4,
    ),
    "wrong keyboard layout": (_log(lambda row: bool(re.fullmatch(r"[a-z., ]+\.?[a-z ,.]*", row["question"]))), 2),
    "conversations of two turns or more": (lambda: len(_conversations()), 10),
    "the longest conversation, in turns": (lambda: max(map(len, _conversations())), 4),
    "asked on after a wrong answer": (
        lambda: sum(_asks_on(*pair) for turns in _conversations() for pair in pairwise(turns)),
        5,
    ),
    "not answerable from the wiki": (_label(lambda label: not label["answerable"]), 14),
    "of these, off topic": (_label(lambda label: label["cluster"] == "Не по теме"), 6),
    "two questions in one (two pages needed)": (
        _label(lambda label: len(_pages_of(label)) > 1),
        5,
    ),
    "several chunks, graded": (_label(lambda label: len(set(label["relevant_chunk_ids"].values())) > 1), 15),
    "only a page is labelled": (
        _label(lambda label: bool(label["relevant_urls"]) and not label["relevant_chunk_ids"]),
        5,
    ),
    "answerable, but without a label": (
        _label(lambda label: label["answerable"] and not label["relevant_urls"] and not label["relevant_chunk_ids"]),
        2,
    ),
    "stale labels": (_label(_stale), 4),
    "of these, nothing but stale": (
        _label(lambda label: _stale(label) and not label["relevant_chunk_ids"].keys() & CHUNK_IDS and not _live(label)),
        2,
    ),
    "answer should be shown": (_label(lambda label: label["ground_truth_show"] is True), 50),
    "answer should not be shown": (_label(lambda label: label["ground_truth_show"] is False), 30),
    "left open whether to show": (_label(lambda label: label["ground_truth_show"] is None), 5),
    "wrong answers that the user scored 5": (
        _label(lambda label: label["ground_truth_show"] is False and BY_ID[label["question_id"]]["score"] == 5),
        2,
    ),
    "right answers that the user scored 1": (
        _label(lambda label: label["ground_truth_show"] is True and BY_ID[label["question_id"]]["score"] == 1),
        2,
    ),
    "references of one word": (_label(lambda label: len((label["ground_truth_answer"] or "").split()) == 1), 3),
    "without a reference": (_label(lambda label: label["ground_truth_answer"] is None), 14),
    "synthetic": (_label(lambda label: label["origin"] == "synthetic"), 10),
    "imported": (_label(lambda label: label["origin"] == "imported"), 10),
}


def _live(label: dict) -> bool:
    return any(canonical_url(url) in PAGES for url in label["relevant_urls"])


def _promised() -> dict[str, int]:
    rows = re.findall(r"^\| (.+?) \| (\d+) \|", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    return {name: int(count) for name, count in rows}


@pytest.mark.parametrize("name", COUNTS)
def test_the_readme_counts_what_is_there(name):
    count, least = COUNTS[name]
    assert _promised()[name] == count() >= least


def test_the_readme_promises_nothing_that_is_not_counted():
    assert _promised().keys() == COUNTS.keys()


@pytest.mark.parametrize("name", KEYS)
def test_rows_have_the_known_keys_and_types(name):
    for row in _read(name):
        assert row.keys() == KEYS[name].keys(), row
        for key, kind in KEYS[name].items():
            assert isinstance(row[key], kind), (key, row)


@pytest.mark.parametrize("rows, key", [(CHUNKS, "id"), (LOG, "id"), (LABELS, "question_id")])
def test_ids_are_unique(rows, key):
    assert [value for value, n in Counter(row[key] for row in rows).items() if n > 1] == []


def test_the_log_is_in_order_and_within_its_period():
    times = [_at(row) for row in LOG]
    assert all(at.utcoffset() == timedelta(0) for at in times)
    assert times == sorted(times)
    assert datetime(2025, 8, 18, tzinfo=UTC) <= times[0]
    assert times[-1] < datetime(2026, 1, 24, tzinfo=UTC)


@pytest.mark.parametrize("month, cluster", [("08", "Поступление"), ("09", "Wi-Fi"), ("01", "Пересдачи")])
def test_topics_have_their_season(month, cluster):
    asked = Counter(BY_ID[label["question_id"]]["created_at"][5:7] for label in LABELS if label["cluster"] == cluster)
    assert asked.most_common(1)[0][0] == month


def test_scores_are_those_a_user_can_give():
    assert {row["score"] for row in LOG} <= {1, 2, 3, 4, 5, None}


def test_pages_are_cut_in_order_and_no_text_comes_twice():
    pages = [chunk["confluence_url"] for chunk in CHUNKS]
    assert len(CHUNKS) == len({chunk["text"] for chunk in CHUNKS})
    assert sum(first != second for first, second in pairwise(pages)) == len(PAGES) - 1
    assert all(20 <= len(chunk["text"].split()) <= 180 for chunk in CHUNKS)


def test_every_label_is_of_a_question_and_names_a_page_of_its_chunks():
    for label in LABELS:
        assert label["question_id"] in BY_ID, label
        urls = {canonical_url(url) for url in label["relevant_urls"]}
        assert {PAGE_OF[chunk] for chunk in label["relevant_chunk_ids"].keys() & CHUNK_IDS} <= urls, label
        assert set(label["relevant_chunk_ids"].values()) <= {1, 2, 3}, label
        assert label["origin"] in {"manual", "synthetic", "imported"}


def test_stale_labels_name_the_old_wiki_only():
    """Ids from 3900 and pages of the old wiki: a label that names anything else unknown is a slip of ours."""
    unknown = {chunk for label in LABELS for chunk in label["relevant_chunk_ids"].keys() - CHUNK_IDS}
    urls = {url for label in LABELS for url in label["relevant_urls"] if canonical_url(url) not in PAGES}
    assert all(3900 <= int(chunk) < 4000 for chunk in unknown)
    assert all("pageId=39000" in url or url.endswith("display/IT/Old+WiFi") for url in urls)


def test_what_cannot_be_answered_has_no_label_and_no_reference():
    for label in LABELS:
        if not label["answerable"]:
            assert (label["relevant_chunk_ids"], label["relevant_urls"], label["ground_truth_answer"]) == ({}, [], None)


def test_dialogs_are_one_users_turns_within_30_minutes():
    turns = {row["id"]: (number, turn) for number, rows in enumerate(_conversations()) for turn, row in enumerate(rows)}
    dialogs: defaultdict[str, set[int]] = defaultdict(set)
    for label in LABELS:
        assert (label["dialog_id"] is None) == (label["question_id"] not in turns), label
        if label["dialog_id"] is not None:
            number, turn = turns[label["question_id"]]
            dialogs[label["dialog_id"]].add(number)
            assert label["turn"] == turn + 1, label
    assert all(len(numbers) == 1 for numbers in dialogs.values())


def test_nothing_real_is_named():
    """Hosts end in the reserved .example, and no digits look like a telephone number."""
    text = "\n".join(json.dumps(row, ensure_ascii=False) for row in CHUNKS + LOG + LABELS)
    hosts = set(re.findall(r"[\w.-]+@([\w.-]+\w)", text)) | set(re.findall(r"https?://([^/\s\"]+)", text))
    assert all(host.lower().endswith("university.example") for host in hosts), hosts
    assert re.findall(r"\+7|\b8[ (-]*\d{3}[ )-]*\d{3}[ -]*\d{2}[ -]*\d{2}\b", text) == []

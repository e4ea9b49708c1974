"""What a source is promised to measure is what its tiers then measure, whatever it has."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.support.promises import check_promises
from tests.support.sources import store
from yarus.deployments.upkeep.readiness import Ready, readiness
from yarus.tasks.config.connections import source

Rows = list[dict[str, Any]]
URL = "https://wiki.example/{}"
TEXT = "Правило {0} велит сдать книгу {0} до мая года {0}. Книга {0} лежит на полке {0} у окна."
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def pages(n: int = 4, each: int = 1, **more: Any) -> Rows:
    """Chunks of so many pages."""
    return [
        {"id": f"c{page}.{part}", "confluence_url": URL.format(page), "text": f"{TEXT.format(page)} Часть {part}."}
        | more
        for page in range(n)
        for part in range(each)
    ]


def questions(n: int = 4, **more: Any) -> Rows:
    """Questions, each with these values; `{}` in a text is its number."""
    return [
        {"question": f"Что велит правило {i}?"} | {key: _of(value, i) for key, value in more.items()} for i in range(n)
    ]


def _of(value: Any, i: int) -> Any:
    return value(i) if callable(value) else value.format(i) if isinstance(value, str) else value


ANSWER, REFERENCE = "Правило {} велит сдать книгу.", "Сдать книгу {} до мая."
TIMES = {"created_at": lambda i: NOON + timedelta(minutes=i)}
CONTEXT = {"recorded": lambda i: {"contexts": [{"id": f"x{i}", "text": TEXT.format(i), "url": None}]}}

JUDGED = {"tier3", "judge", "judge_pipeline"}
# name -> questions, chunks, the tiers that are promised
SHAPES: dict[str, tuple[Rows, Rows, set[str]]] = {
    "only_questions": (questions(), [], set()),
    "only_answers": (questions(answer=ANSWER), [], {"tier3"}),
    "references": (questions(ground_truth_answer=REFERENCE), [], set()),
    "answers_and_references": (questions(answer=ANSWER, ground_truth_answer=REFERENCE), [], {"tier3"}),
    "contexts": (questions(answer=ANSWER, **CONTEXT), [], {"tier3", "judge"}),
    "rated_contexts": (questions(answer=ANSWER, score=5, **CONTEXT), [], JUDGED),
    "shown_contexts": (questions(answer=ANSWER, ground_truth_show=False, **CONTEXT), [], JUDGED),
    "pages_alone": (questions(), pages(), set()),
    "no_questions": ([], pages(each=2), {"tier0"}),
    "long_pages": (questions(), pages(each=2), {"tier0"}),
    "one_page_twice": (questions(), [*pages(), {"id": "z", "confluence_url": URL.format(1), "text": "ещё"}], {"tier0"}),
    "no_addresses": (questions(), pages(confluence_url=None), set()),
    "chunk_labels": (questions(relevant_chunk_ids=lambda i: [f"c{i}.0"]), pages(3), {"tier1", "tier2", "judge"}),
    "page_labels": (
        questions(relevant_urls=lambda i: [URL.format(i)]),
        pages(3, 2),
        {"tier0", "tier1", "tier2", "judge"},
    ),
    "golden": (
        questions(ground_truth_answer=REFERENCE, relevant_urls=lambda i: [URL.format(i)]),
        pages(3, 2),
        {"tier0", "tier1", "tier2", "tier3", "judge"},
    ),
    "log": (
        questions(7, answer=ANSWER, confluence_url=URL, score=lambda i: (5, 1, None, 3)[i % 4], user_id=7, **TIMES),
        pages(5),
        {"tier1", "tier2", "real_users", "ux", *JUDGED},
    ),
    "dialogs": (questions(dialog_id="d", turn=lambda i: i + 1), [], {"ux"}),
    "lonely_dialogs": (questions(dialog_id="d{}", turn=1), [], set()),
    "unanswerable": (questions(answerable=False), pages(), {"tier3"}),
    "strange_pages": (questions(answer=ANSWER, confluence_url="https://other.example/{}"), pages(), {"tier3"}),
    "strange_chunks": (questions(relevant_chunk_ids=["nobody"]), pages(), set()),
    "blank_answers": (
        questions(answer=" ", score=5, confluence_url=URL),
        pages(),
        {"tier1", "tier2", "tier3", "real_users", "judge"},
    ),
}


EVERY_DAY = {"only_questions", "golden", "log", "dialogs"}
"""Shapes that promise every tier, or none."""
BREADTH = pytest.mark.slow("breadth: other shapes of sources")


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in EVERY_DAY else BREADTH) for name in SHAPES])
def test_readiness_promises_what_tiers_measure(at_home: object, engine: Engine, name: str) -> None:
    rows, chunks, promised = SHAPES[name]
    assert check_promises(store(engine, f"promised_{name}", rows, chunks)).keys() == promised


def ready_of(engine: Engine, name: str, *given: Rows, sut: str | None = None) -> dict[str, Ready]:
    stored = store(engine, f"ready_{name}", *given)
    return {ready.tier: ready for ready in readiness(source(stored), sut=sut)}


def test_readiness_counts_recorded_answers_when_they_are_set(
    at_home: object, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YARUS_SUT", "recorded")
    rows = questions(answer=lambda i: "Да." if i else None, ground_truth_answer=REFERENCE)
    rows.append({"question": "Почему?", "recorded": {"error": "timeout"}})
    name = store(engine, "promised_recorded", rows, [])
    ready = {one.tier: one for one in readiness(source(name))}
    assert (ready["tier2"].questions, ready["tier3"].questions) == (4, 4)  # one has failed, which is measured as that
    rows.pop()
    assert check_promises(store(engine, "promised_recorded_well", rows, [])).keys() == {"tier2", "tier3"}


def test_readiness_needs_no_pages_for_an_external_system(at_home: object, engine: Engine) -> None:
    rows = questions(ground_truth_answer=REFERENCE)
    assert ready_of(engine, "no_system", rows)["tier3"].missing == "system"
    asked = ready_of(engine, "system", rows, sut="http://127.0.0.1:1/ask")
    assert (asked["tier3"].questions, asked["tier3"].missing) == (4, None)
    assert asked["tier1"].missing == asked["tier2"].missing == asked["tier0"].missing == "chunks"


@pytest.mark.parametrize(
    ("labels", "missing", "theirs", "ours"),
    [
        ({"relevant_urls": ["wifi.md"]}, "pages in the corpus", "wifi.md", URL.format(0)),
        ({"relevant_chunk_ids": lambda i: [f"p{i}"]}, "chunks in the corpus", "p0, p1, p2", "c0.0, c1.0, c2.0"),
        ({}, "pages", "", ""),
    ],
)
def test_readiness_shows_unmatched_labels_beside_ours(
    at_home: object, engine: Engine, labels: Any, missing: str, theirs: str, ours: str
) -> None:
    found = ready_of(engine, f"stray_{missing.replace(' ', '_')}", questions(**labels), pages())["tier1"]
    assert found.missing == missing
    assert found.values["theirs"] == theirs
    assert found.values["ours"].startswith(ours)


def test_readiness_names_what_judging_lacks(at_home: object, engine: Engine) -> None:
    missing = {
        "no_answers": ready_of(engine, "no_answers", questions())["judge"].missing,
        "no_contexts": ready_of(engine, "no_contexts", questions(answer=ANSWER), pages())["judge"].missing,
        "no_pages": ready_of(engine, "no_pages", questions(answer=ANSWER, confluence_url=URL))["judge"].missing,
        "no_scores": ready_of(engine, "no_scores", questions(answer=ANSWER, **CONTEXT))["judge_pipeline"].missing,
        "no_url": ready_of(engine, "no_url", questions(), pages())["real_users"].missing,
    }
    assert missing == {
        "no_answers": "answers", "no_contexts": "contexts", "no_pages": "contexts", "no_scores": "scores",
        "no_url": "shown pages",
    }  # fmt: skip


def test_readiness_finds_texts_of_contexts_in_the_corpus(at_home: object, engine: Engine) -> None:
    recorded = [
        {"contexts": [{"id": "c0.0"}]},
        {"contexts": [{"id": "gone"}, {"id": "c1.0", "text": "есть"}]},
        {"contexts": []},
        {"contexts": ["просто текст"]},
        {"contexts": None, "latency_ms": 3},
        {"contexts": [{"id": "a", "page_content": "текст"}, {"id": "c0.0", "text": " "}]},
    ]
    rows = questions(6, answer=ANSWER, recorded=lambda i: recorded[i])
    name = store(engine, "promised_textless", rows, pages(confluence_url=None))
    ready = {one.tier: one for one in readiness(source(name))}
    assert ready["judge"].questions == 3
    check_promises(name)

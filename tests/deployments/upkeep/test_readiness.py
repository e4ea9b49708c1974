"""Readiness: the promised number of cases equals the number that the tiers measure."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.support.promises import check_promises
from tests.support.sources import store_source
from yarus.deployments.upkeep.readiness import TierReadiness, read_readiness
from yarus.tasks.config.connections import open_source

Rows = list[dict[str, Any]]
URL = "https://wiki.example/{}"
TEXT = "Правило {0} велит сдать книгу {0} до мая года {0}. Книга {0} лежит на полке {0} у окна."
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def pages(n: int = 4, each: int = 1, **more: Any) -> Rows:
    """Return the chunks of so many pages."""
    return [
        {"id": f"c{page}.{part}", "confluence_url": URL.format(page), "text": f"{TEXT.format(page)} Часть {part}."}
        | more
        for page in range(n)
        for part in range(each)
    ]


def questions(n: int = 4, **more: Any) -> Rows:
    """Return questions with these values; `{}` in a text is replaced by its number."""
    return [
        {"question": f"Что велит правило {i}?"} | {key: _value_of(value, i) for key, value in more.items()}
        for i in range(n)
    ]


def _value_of(value: Any, i: int) -> Any:
    return value(i) if callable(value) else value.format(i) if isinstance(value, str) else value


ANSWER, REFERENCE = "Правило {} велит сдать книгу.", "Сдать книгу {} до мая."
TIMES = {"created_at": lambda i: NOON + timedelta(minutes=i)}
CONTEXT = {"recorded": lambda i: {"contexts": [{"id": f"x{i}", "text": TEXT.format(i), "url": None}]}}

JUDGED = {"tier3", "judge", "judge_pipeline"}
# name -> questions, chunks, promised tiers
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
    assert check_promises(store_source(engine, f"promised_{name}", rows, chunks)).keys() == promised


def ready_of(engine: Engine, name: str, *rows: Rows, sut: str | None = None) -> dict[str, TierReadiness]:
    stored_name = store_source(engine, f"ready_{name}", *rows)
    return {ready.tier: ready for ready in read_readiness(open_source(stored_name), sut=sut)}


def test_readiness_counts_recorded_answers_when_they_are_set(
    at_home: object, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YARUS_SUT", "recorded")
    rows = questions(answer=lambda i: "Да." if i else None, ground_truth_answer=REFERENCE)
    rows.append({"question": "Почему?", "recorded": {"error": "timeout"}})
    name = store_source(engine, "promised_recorded", rows, [])
    ready = {tier_ready.tier: tier_ready for tier_ready in read_readiness(open_source(name))}
    assert (ready["tier2"].questions, ready["tier3"].questions) == (4, 4)  # the failed one is measured as a failure
    rows.pop()
    assert check_promises(store_source(engine, "promised_recorded_well", rows, [])).keys() == {"tier2", "tier3"}


def test_readiness_needs_no_pages_for_an_external_system(at_home: object, engine: Engine) -> None:
    rows = questions(ground_truth_answer=REFERENCE)
    assert ready_of(engine, "no_system", rows)["tier3"].missing == "system"
    external = ready_of(engine, "system", rows, sut="http://127.0.0.1:1/ask")
    assert (external["tier3"].questions, external["tier3"].missing) == (4, None)
    assert external["tier1"].missing == external["tier2"].missing == external["tier0"].missing == "chunks"


@pytest.mark.parametrize(
    ("labels", "missing", "label_examples", "page_examples"),
    [
        ({"relevant_urls": ["wifi.md"]}, "pages in the corpus", "wifi.md", URL.format(0)),
        ({"relevant_chunk_ids": lambda i: [f"p{i}"]}, "chunks in the corpus", "p0, p1, p2", "c0.0, c1.0, c2.0"),
        ({}, "pages", "", ""),
    ],
)
def test_readiness_shows_unmatched_labels_beside_ours(
    at_home: object, engine: Engine, labels: Any, missing: str, label_examples: str, page_examples: str
) -> None:
    ready = ready_of(engine, f"stray_{missing.replace(' ', '_')}", questions(**labels), pages())["tier1"]
    assert ready.missing == missing
    assert ready.values["theirs"] == label_examples
    assert ready.values["ours"].startswith(page_examples)


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
    name = store_source(engine, "promised_textless", rows, pages(confluence_url=None))
    ready = {tier_ready.tier: tier_ready for tier_ready in read_readiness(open_source(name))}
    assert ready["judge"].questions == 3
    check_promises(name)

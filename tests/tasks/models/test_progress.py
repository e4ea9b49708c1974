"""What is counted while an evaluation runs, and the line that says it."""

import asyncio
import contextvars
import logging

import pytest

from yarus.tasks.config.texts import LANGUAGES, texts
from yarus.tasks.evaluation.batches import WAITS
from yarus.tasks.models import progress
from yarus.tasks.models.progress import (
    Part,
    Progress,
    bought,
    clock,
    counting,
    gathered,
    line,
    numbered,
    showing,
    shown,
    tick,
)


def of(**given: object) -> Progress:
    return Progress("tier3", "helpdesk", 10, ("answer", "judge"), **given)  # type: ignore[arg-type]


def within(part: Part, *calls: tuple[object, ...]) -> None:
    """Calls functions with their arguments in a context that works on a batch."""

    def work() -> None:
        counting(part)
        for function, *arguments in calls:
            function(*arguments)  # type: ignore[operator]

    contextvars.copy_context().run(work)


def test_a_case_is_done_when_its_last_step_is() -> None:
    found = of()
    part = Part(found, 6)
    within(part, (tick, "answer"), (tick, "answer"), (tick, "judge"), (tick, "score_texts"))
    assert (found.done, found.counts, found.share) == (1, {"answer": 2, "judge": 1}, 3 / 20)
    within(part, (tick, "answer", None, 6), (tick, "answer"))  # a step that counts its cases counts none twice
    assert found.counts["answer"] == 6
    part.end(0)
    assert (found.done, found.share) == (6, 12 / 20)


def test_failures_are_counted_as_they_come_and_right_in_the_end() -> None:
    found = of()
    first, second = Part(found, 5), Part(found, 5)
    within(
        first, (tick, "answer", "Timeout"), (tick, "judge", "judge_error: no JSON"), (tick, "judge", "the same case")
    )
    within(second, (tick, "answer", "Timeout"))
    assert found.failed == 4
    first.end(2)
    assert found.failed == 3
    second.end(None)  # as on a Dask worker, where nobody counts
    assert found.failed is None


def test_what_was_bought_adds_up_and_without_a_price_costs_nothing_known() -> None:
    found = of()
    within(Part(found, 5), (bought, (100, None), None))
    assert (found.tokens, found.cost_usd) == (100, None)
    within(Part(found, 5), (bought, (10, 5), 0.25), (bought, (10, 5), 0.5))
    assert (found.tokens, found.cost_usd) == (130, 0.75)
    bought((1, 1), 1.0)  # outside a batch
    assert found.tokens == 130


def test_pending_calls_set_share_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exam of 12 cases and 336 calls at 5 s each was at 50 % for half an hour, with 31 seconds left."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    found = Progress("judge", "helpdesk", 12, ("judge_again", "examine"))
    part = Part(found, 12)
    within(part, (tick, "judge_again", None, 12))
    now[0] += 1
    assert found.share == 0.5

    def ask(n: int) -> None:
        for _ in range(n):
            found.add_call()

    within(part, (ask, 336))
    assert (found.share, found.left_s) == (0, None)  # nobody knows yet
    now[0] += 5
    found.add_reply(waited=False)
    assert found.left_s is None  # the call store says nothing of the server
    found.add_reply(waited=True)
    assert found.left_s == pytest.approx(334 * 5)
    assert found.share == pytest.approx(2 / 336)
    assert "2 of 336 model calls" in line(found, "en")
    now[0] += 334 * 5
    for _ in range(334):
        found.add_reply(waited=True)
    assert (found.share, "calls" in line(found, "en")) == (0.5, False)


async def test_cases_that_are_worked_on_side_by_side_are_counted_one_by_one() -> None:
    found = of()
    seen: list[int] = []

    async def case(number: int) -> int:
        await asyncio.sleep(0)
        seen.append(found.counts["answer"])
        return number

    async def batch() -> list[int]:
        counting(Part(found, 4))
        return await gathered("answer", map(case, range(4)), lambda number: "odd" if number % 2 else None)

    assert await asyncio.create_task(batch()) == [0, 1, 2, 3]
    assert (found.counts["answer"], found.failed) == (4, 2)
    assert len(seen) == 4


def test_an_earlier_try_counts_but_not_for_the_speed() -> None:
    found = of()
    found.skip(8)
    assert (found.done, found.per_second, found.left_s) == (8, None, None)
    Part(found, 1).end(0)
    found.began -= 10
    assert found.per_second == pytest.approx(0.1, rel=0.1)
    assert found.left_s == pytest.approx(10, rel=0.1)


def test_which_of_how_many_is_known_and_only_the_newest_is_shown() -> None:
    places = []
    for _ in numbered("abc"):
        with showing(found := of()):
            assert shown() is found
            places.append(found.place)
    assert places == [(1, 3), (2, 3), (3, 3)]
    assert shown() is None


@pytest.mark.parametrize(
    ("language", "said"),
    [
        (
            "ru",
            "2 из 8: tier3 helpdesk · вопросов 3 из 10 (50 %) · отвечено 7 · {speed} · осталось {left} · не удалось: 1",
        ),
        ("en", "2 of 8: tier3 helpdesk · 3 of 10 cases (50 %) · 7 answered · {speed} · {left} left · 1 failed"),
    ],
)
def test_the_line(language: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = of(place=(2, 8))
    within(Part(found, 10), (tick, "answer", None, 7), (tick, "judge", None, 3), (tick, "judge", "x", 0))
    monkeypatch.setattr("yarus.tasks.models.progress.time.monotonic", lambda: found.began + 10)
    speed = {"ru": "вопросов в минуту: 30.0", "en": "30.0 cases per minute"}[language]
    assert line(found, language) == said.format(speed=speed, left="0:10")
    found.bought((9_000, 3_400), 0.0123)
    assert line(found, language).endswith(f"{texts('progress', language)['thousands'].format(n=12.4)} · $0.0123")


def test_times_and_names() -> None:
    assert [clock(seconds) for seconds in (0, 59.6, 754, 3_900)] == ["0:00", "1:00", "12:34", "1:05:00"]
    for language in LANGUAGES:
        for step in WAITS:
            if step not in ("fill", "decide", "find_nuggets", "examine"):
                assert "{n}" in texts("progress", language)[step]


def test_why_a_case_failed_is_said_only_to_who_wants_to_know_and_with_pseudonyms(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = Part(Progress("tier3", "production", 1, ("answer",)), 1)
    with caplog.at_level(logging.INFO, logger="yarus"):
        within(part, (tick, "answer", "call +7 912 345-67-89"))
    assert caplog.text == ""
    with caplog.at_level(logging.DEBUG, logger="yarus"):
        within(part, (tick, "answer", "call +7 912 345-67-89"))
    assert "answer failed: call [" in caplog.text
    assert "345" not in caplog.text

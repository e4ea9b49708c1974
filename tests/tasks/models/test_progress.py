"""Counts of a running evaluation, and its progress line."""

import asyncio
import contextvars
import logging

import pytest

from yarus.tasks.config.texts import LANGUAGES, texts
from yarus.tasks.evaluation.batches import WAITING_STEPS
from yarus.tasks.models import progress
from yarus.tasks.models.progress import (
    BatchProgress,
    Progress,
    count_purchase,
    count_step,
    format_duration,
    format_progress_line,
    gather_cases,
    get_current_progress,
    number_evaluations,
    set_current_batch,
    track_progress,
)


def make_progress(**fields: object) -> Progress:
    return Progress("tier3", "helpdesk", 10, ("answer", "judge"), **fields)  # type: ignore[arg-type]


def run_batch(part: BatchProgress, *calls: tuple[object, ...]) -> None:
    """Call functions with their arguments in the context of a batch."""

    def call_functions() -> None:
        set_current_batch(part)
        for function, *arguments in calls:
            function(*arguments)  # type: ignore[operator]

    contextvars.copy_context().run(call_functions)


def test_case_is_done_after_its_last_step() -> None:
    evaluation = make_progress()
    part = BatchProgress(evaluation, 6)
    run_batch(part, (count_step, "answer"), (count_step, "answer"), (count_step, "judge"), (count_step, "score_texts"))
    assert (evaluation.done, evaluation.counts, evaluation.share) == (1, {"answer": 2, "judge": 1}, 3 / 20)
    run_batch(part, (count_step, "answer", None, 6), (count_step, "answer"))  # a step does not count its cases twice
    assert evaluation.counts["answer"] == 6
    part.end(0)
    assert (evaluation.done, evaluation.share) == (6, 12 / 20)


def test_failures_are_counted_and_corrected_at_the_end() -> None:
    evaluation = make_progress()
    first, second = BatchProgress(evaluation, 5), BatchProgress(evaluation, 5)
    run_batch(
        first,
        (count_step, "answer", "Timeout"),
        (count_step, "judge", "judge_error: no JSON"),
        (count_step, "judge", "the same case"),
    )
    run_batch(second, (count_step, "answer", "Timeout"))
    assert evaluation.failed == 4
    first.end(2)
    assert evaluation.failed == 3
    second.end(None)  # as on a Dask worker, which does not count
    assert evaluation.failed is None


def test_purchases_add_up_and_unpriced_cost_is_unknown() -> None:
    evaluation = make_progress()
    run_batch(BatchProgress(evaluation, 5), (count_purchase, (100, None), None))
    assert (evaluation.tokens, evaluation.cost_usd) == (100, None)
    run_batch(BatchProgress(evaluation, 5), (count_purchase, (10, 5), 0.25), (count_purchase, (10, 5), 0.5))
    assert (evaluation.tokens, evaluation.cost_usd) == (130, 0.75)
    count_purchase((1, 1), 1.0)  # outside a batch
    assert evaluation.tokens == 130


def test_pending_calls_set_share_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The progress of an exam of 12 cases must follow its 336 slow calls, not its cases."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    exam = Progress("judge", "helpdesk", 12, ("judge_again", "examine"))
    part = BatchProgress(exam, 12)
    run_batch(part, (count_step, "judge_again", None, 12))
    now[0] += 1
    assert exam.share == 0.5

    def add_calls(n: int) -> None:
        for _ in range(n):
            exam.add_call()

    run_batch(part, (add_calls, 336))
    assert (exam.share, exam.left_s) == (0, None)  # unknown before the first reply
    now[0] += 5
    exam.add_reply(waited=False)
    assert exam.left_s is None  # the call store does not measure the server
    exam.add_reply(waited=True)
    assert exam.left_s == pytest.approx(334 * 5)
    assert exam.share == pytest.approx(2 / 336)
    assert "2 of 336 model calls" in format_progress_line(exam, "en")
    now[0] += 334 * 5
    for _ in range(334):
        exam.add_reply(waited=True)
    assert (exam.share, "calls" in format_progress_line(exam, "en")) == (0.5, False)


async def test_concurrent_cases_are_counted_one_by_one() -> None:
    evaluation = make_progress()
    counts: list[int] = []

    async def case(number: int) -> int:
        await asyncio.sleep(0)
        counts.append(evaluation.counts["answer"])
        return number

    async def batch() -> list[int]:
        set_current_batch(BatchProgress(evaluation, 4))
        return await gather_cases("answer", map(case, range(4)), lambda number: "odd" if number % 2 else None)

    assert await asyncio.create_task(batch()) == [0, 1, 2, 3]
    assert (evaluation.counts["answer"], evaluation.failed) == (4, 2)
    assert len(counts) == 4


def test_earlier_try_does_not_count_for_the_speed() -> None:
    evaluation = make_progress()
    evaluation.skip(8)
    assert (evaluation.done, evaluation.per_second, evaluation.left_s) == (8, None, None)
    BatchProgress(evaluation, 1).end(0)
    evaluation.began -= 10
    assert evaluation.per_second == pytest.approx(0.1, rel=0.1)
    assert evaluation.left_s == pytest.approx(10, rel=0.1)


def test_numbered_sets_places_and_shown_returns_the_newest() -> None:
    places = []
    for _ in number_evaluations("abc"):
        with track_progress(evaluation := make_progress()):
            assert get_current_progress() is evaluation
            places.append(evaluation.place)
    assert places == [(1, 3), (2, 3), (3, 3)]
    assert get_current_progress() is None


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        (
            "ru",
            "2 из 8: tier3 helpdesk · вопросов 3 из 10 (50 %) · отвечено 7 · {speed} · осталось {left} · не удалось: 1",
        ),
        ("en", "2 of 8: tier3 helpdesk · 3 of 10 cases (50 %) · 7 answered · {speed} · {left} left · 1 failed"),
    ],
)
def test_line_has_counts_speed_and_failures(language: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluation = make_progress(place=(2, 8))
    run_batch(
        BatchProgress(evaluation, 10),
        (count_step, "answer", None, 7),
        (count_step, "judge", None, 3),
        (count_step, "judge", "x", 0),
    )
    monkeypatch.setattr("yarus.tasks.models.progress.time.monotonic", lambda: evaluation.began + 10)
    speed = {"ru": "вопросов в минуту: 30.0", "en": "30.0 cases per minute"}[language]
    assert format_progress_line(evaluation, language) == expected.format(speed=speed, left="0:10")
    evaluation.bought((9_000, 3_400), 0.0123)
    assert format_progress_line(evaluation, language).endswith(
        f"{texts('progress', language)['thousands'].format(n=12.4)} · $0.0123"
    )


def test_clock_format_and_step_texts() -> None:
    assert [format_duration(seconds) for seconds in (0, 59.6, 754, 3_900)] == ["0:00", "1:00", "12:34", "1:05:00"]
    for language in LANGUAGES:
        for step in WAITING_STEPS:
            if step not in ("fill", "decide", "find_nuggets", "examine"):
                assert "{n}" in texts("progress", language)[step]


def test_failure_reason_is_logged_at_debug_with_pseudonyms(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = BatchProgress(Progress("tier3", "production", 1, ("answer",)), 1)
    with caplog.at_level(logging.INFO, logger="yarus"):
        run_batch(part, (count_step, "answer", "call +7 912 345-67-89"))
    assert caplog.text == ""
    with caplog.at_level(logging.DEBUG, logger="yarus"):
        run_batch(part, (count_step, "answer", "call +7 912 345-67-89"))
    assert "answer failed: call [" in caplog.text
    assert "345" not in caplog.text

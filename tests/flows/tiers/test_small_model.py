"""Check a small real model as generator and judge: SmolLM2-135M-Instruct behind `transformers serve`, on the CPU.

All its tests are in this file, so that one worker starts one server.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, text

from tests.support.command_line import ENGLISH, CommandLine, Document
from tests.support.evaluations import read_rows
from yarus.db.errors import InputError
from yarus.flows.cli.demo_llm.__main__ import QUESTIONS, build_settings, describe_exam
from yarus.flows.cli.demo_llm.server import MODEL, find_weights, open_server
from yarus.metrics.table import get_metric

SOURCE = "small_model"
RUNS = {
    "judge": ("--limit", "1", "--exam", "1", "--bias-probes", "false"),
    "tier2": ("--limit", "2"),
    "tier3": ("--limit", "1"),
}
"""Arguments of each tier; the exam comes first, so that the others use its outcome."""
REASONS = re.compile(
    r"not one JSON object|empty|a key stands there twice|no key 'score'|'score' is .*, not a number|"
    r"score \S+ is outside 0\.\.1|a JSON \w+, not an object|cut off after \d+ tokens \(…__MAX_TOKENS\)"
)
"""Everything that can be wrong with a reply."""
pytestmark = [pytest.mark.timeout(900), pytest.mark.slow("model: SmolLM2 answers and judges on the CPU")]


@pytest.fixture(scope="session")
def settings() -> Iterator[dict[str, str]]:
    """Yield the settings with which the model generates and judges, while its server runs."""
    try:
        find_weights()
    except InputError as missing:
        pytest.skip(f"needs the small model: {missing}")
    with open_server() as url:
        yield build_settings(url) | ENGLISH | {"YARUS_JUDGE__MAX_TOKENS": "24", "YARUS_GENERATOR__MAX_TOKENS": "24"}


@pytest.fixture(scope="session")
def summaries(yarus: CommandLine, settings: dict[str, str]) -> dict[str, Document]:
    """Return the summary of each tier that the model can serve."""
    yarus("load", "squad", str(QUESTIONS), "--into", SOURCE, "--language", "en")
    return {tier: run_tier(yarus, settings, tier) for tier in RUNS}


def run_tier(yarus: CommandLine, settings: dict[str, str], tier: str) -> Document:
    """Run a tier; the evaluation is invalid if too many replies are unreadable."""
    ran = yarus("run", tier, "--source", SOURCE, *RUNS[tier], "--json", env=settings, ok=False)
    assert ran.code in (0, 1), ran
    summary: Document = ran.json
    assert summary["state"] in ("completed", "invalid"), summary["error"]
    return summary


def list_replies(summary: Document) -> list[Document]:
    """Return the model's replies as a judge; the gate is a stand-in."""
    replies = [reply for row in read_rows(summary) for reply in row["judge_raw"] or ()]
    return [reply for reply in replies if not reply["metric"].startswith("exam:gate")]


def count_calls(engine: Engine) -> Any:
    with engine.connect() as connection:
        return connection.execute(
            text("SELECT count(*) FROM yarus.call WHERE model = :model"), {"model": MODEL}
        ).scalar_one()


@pytest.mark.parametrize(("tier", "n"), [("tier2", 2), ("tier3", 1)])
def test_small_model_answers_every_question(summaries: dict[str, Document], tier: str, n: int) -> None:
    rows = read_rows(summaries[tier])
    assert len(rows) == n
    assert all(row["answer"] for row in rows)
    assert set(summaries[tier]["statuses"]) <= {"ok", "parse_error", "sut_refusal"}
    assert MODEL in str(summaries[tier]["system"])


@pytest.mark.parametrize("tier", list(RUNS))
def test_small_model_replies_have_score_or_reason(summaries: dict[str, Document], tier: str) -> None:
    replies = list_replies(summaries[tier])
    assert replies
    for reply in replies:
        if reply["status"] == "ok":
            assert re.search(r'"score": [01](\.\d+)?\b', reply["reply"]), reply
        else:
            assert reply["status"] == "parse_error", reply
    for row in read_rows(summaries[tier]):
        if row["status"] == "parse_error":
            assert REASONS.search(row["reason"]), row["reason"]


def test_small_model_does_not_pass_exam(summaries: dict[str, Document], yarus: CommandLine) -> None:
    exam = summaries["judge"]["exam"]
    outcomes = {prompt: prompt_exam["outcome"] for prompt, prompt_exam in exam.items() if prompt != "gate"}
    # Which replies can be read depends on the CPU; if nearly all can, one question is too few.
    assert "unreadable" in outcomes.values(), outcomes
    assert set(outcomes.values()) <= {"unreadable", "incomplete", "few"}, outcomes
    assert describe_exam(exam).startswith("Do not believe this judge")
    for tier in ("tier2", "tier3"):
        judged = {name: metric for name, metric in summaries[tier]["metrics"].items() if metric.get("judge")}
        assert judged
        for name, metric in judged.items():
            outcome = outcomes[get_metric(name).opinion]
            assert metric["judge"] == ("failed" if outcome == "unreadable" else "missing"), name
            assert metric["grade"] is None, name
        output = yarus("show", summaries[tier]["evaluation_id"], env=ENGLISH)
        has_distrusted = any(metric["judge"] == "failed" and metric["value"] is not None for metric in judged.values())
        assert ("Judge failed its exam" in output.out) == has_distrusted


def test_small_model_is_not_asked_twice(
    summaries: dict[str, Document], yarus: CommandLine, settings: dict[str, str], engine: Engine
) -> None:
    before = count_calls(engine)
    again = run_tier(yarus, settings, "tier2")
    assert count_calls(engine) == before > 0
    for name, metric in summaries["tier2"]["metrics"].items():
        assert again["metrics"][name]["value"] == metric["value"], name


def test_doctor_reports_how_small_model_is_called(
    summaries: dict[str, Document], yarus: CommandLine, settings: dict[str, str]
) -> None:
    ran = yarus("doctor", env=settings, ok=False)
    output = " ".join(ran.out.split())
    # This server ignores the response format; it only logs that, so the client cannot notice it.
    assert f"{MODEL}, sent every parameter as intended" in output
    assert re.search(r"\d+ \+ \d+ tokens, \d+\.\d s a call", output)

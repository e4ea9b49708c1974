"""What is said of the night when `yarus serve` starts, and whether it stays on the schedule."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.support.evaluations import load, question
from yarus.deployments.night import plan_night
from yarus.deployments.registration import declared


@pytest.fixture
def deployments(at_home: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    monkeypatch.setenv("YARUS_LANGUAGE", "en")
    monkeypatch.setenv("GIT_VERSION", "0.1.0")
    monkeypatch.setenv("PWD", str(at_home))
    return declared()


def active(deployments: list[dict[str, Any]]) -> bool:
    [nightly] = [found for found in deployments if found["name"] == "nightly"]
    return bool(nightly["schedules"][0]["active"])


def test_a_source_with_questions_is_planned(deployments: list[dict[str, Any]]) -> None:
    night = plan_night(deployments, "sample")
    assert night.sentence == "Nightly run: every day at 03:00, Europe/Moscow, source sample."
    assert active(deployments)
    [nightly] = [found for found in deployments if found["name"] == "nightly"]
    assert nightly["parameters"] == {"parameters": {"source": "sample"}}


@pytest.mark.parametrize(("source", "said"), [(None, "Set YARUS_SOURCE_URL"), ("sampel", "did you mean 'sample'")])
def test_what_is_not_set_up_is_not_planned(deployments: list[dict[str, Any]], source: str | None, said: str) -> None:
    night = plan_night(deployments, source)
    assert night.sentence.startswith(f"There will be no nightly run (source {source or 'production'}): ")
    assert said in night.sentence
    assert not active(deployments)


def test_what_cannot_be_reached_now_is_planned_and_said(
    deployments: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YARUS_SOURCE_URL", "postgresql://reader:s3cret@127.0.0.1:9/bot")
    night = plan_night(deployments, None)
    assert "right now it would fail: " in night.sentence
    assert "127.0.0.1" in night.sentence
    assert "s3cret" not in night.sentence
    assert active(deployments)


def test_a_source_without_questions_is_said(deployments: list[dict[str, Any]], engine: Engine, tmp_path: Path) -> None:
    source = load(tmp_path, "emptied", [question(0)])
    with engine.begin() as connection:
        connection.exec_driver_sql(f"TRUNCATE source_{source}.question_answer CASCADE")
    night = plan_night(deployments, source)
    assert f"it has no questions. Load some: yarus load … --into {source}" in night.sentence
    assert active(deployments)

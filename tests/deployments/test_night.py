"""The planned night: its message at the start of `yarus serve`, and its schedule."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.support.evaluations import load, question
from yarus.deployments.night import plan_night
from yarus.deployments.registration import load_deployments


@pytest.fixture
def deployments(at_home: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    monkeypatch.setenv("YARUS_LANGUAGE", "en")
    monkeypatch.setenv("GIT_VERSION", "0.1.0")
    monkeypatch.setenv("PWD", str(at_home))
    return load_deployments()


def is_active(deployments: list[dict[str, Any]]) -> bool:
    [nightly] = [deployment for deployment in deployments if deployment["name"] == "nightly"]
    return bool(nightly["schedules"][0]["active"])


def test_plan_night_accepts_source_with_questions(deployments: list[dict[str, Any]]) -> None:
    night = plan_night(deployments, "sample")
    assert night.sentence == "Nightly run: every day at 03:00, Europe/Moscow, source sample."
    assert is_active(deployments)
    [nightly] = [deployment for deployment in deployments if deployment["name"] == "nightly"]
    assert nightly["parameters"] == {"parameters": {"source": "sample"}}


@pytest.mark.parametrize(("source", "message"), [(None, "Set YARUS_SOURCE_URL"), ("sampel", "did you mean 'sample'")])
def test_plan_night_deactivates_unconfigured_source(
    deployments: list[dict[str, Any]], source: str | None, message: str
) -> None:
    night = plan_night(deployments, source)
    assert night.sentence.startswith(f"No nightly run (source {source or 'production'}): ")
    assert message in night.sentence
    assert not is_active(deployments)


def test_plan_night_keeps_unreachable_source(
    deployments: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YARUS_SOURCE_URL", "postgresql://reader:s3cret@127.0.0.1:9/bot")
    night = plan_night(deployments, None)
    assert "right now it would fail: " in night.sentence
    assert "127.0.0.1" in night.sentence
    assert "s3cret" not in night.sentence
    assert is_active(deployments)


def test_plan_night_reports_source_without_questions(
    deployments: list[dict[str, Any]], engine: Engine, tmp_path: Path
) -> None:
    source = load(tmp_path, "emptied", [question(0)])
    with engine.begin() as connection:
        connection.exec_driver_sql(f"TRUNCATE source_{source}.question_answer CASCADE")
    night = plan_night(deployments, source)
    assert f"it has no questions. Load some: yarus load … --into {source}" in night.sentence
    assert is_active(deployments)

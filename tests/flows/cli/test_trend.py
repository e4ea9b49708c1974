"""Check `yarus trend` for people and programs."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Engine

from tests.support.evaluation_history import make_source_name, write_evaluations
from yarus.__main__ import cli
from yarus.db import journal
from yarus.db.errors import InputError
from yarus.flows.terminal.comparisons.trend import ACCEPTED, BREAK, OUT, plot_history


def run_trend(*words: str) -> Result:
    result = CliRunner().invoke(cli, ["trend", *words], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result


@pytest.fixture(scope="module")
def history(engine: Engine) -> tuple[str, list[str]]:
    """Write twenty calm nights and a drop at v2, then two nights with another key."""
    source = make_source_name()
    values = 0.8 + 0.01 * np.random.default_rng(0).normal(size=20)
    ids = write_evaluations(engine, source, values.tolist(), sut_label="v1")
    ids += write_evaluations(engine, source, [0.6, 0.61], first_night=20, sut_label="v2")
    return source, ids


@pytest.mark.parametrize(
    ("language", "message"), [("ru", "Вне полосы с 2024-01-24"), ("en", "Out of the band since 2024-01-24")]
)
def test_trend_names_first_night_out_in_both_languages(
    at_home: Path, monkeypatch: pytest.MonkeyPatch, history: tuple[str, list[str]], language: str, message: str
) -> None:
    source, ids = history
    monkeypatch.setenv("YARUS_LANGUAGE", language)
    text = run_trend("hit_rate@1", "--source", source).stdout
    assert f"{message} ({ids[20]})" in text
    assert "v1 → v2" in text
    assert OUT in text
    assert max(map(len, text.splitlines()[:14])) <= 110


def test_trend_prints_one_json_document(at_home: Path, history: tuple[str, list[str]]) -> None:
    source, ids = history
    document = json.loads(run_trend("hit_rate@1", "--source", source, "--last", "3", "--json").stdout)
    assert [night["evaluation_id"] for night in document["nights"]] == ids[-3:]
    assert (document["first_out_of_band"], document["side"]) == (ids[20], "below")


def test_trend_explains_breaks_with_command(at_home: Path, engine: Engine) -> None:
    source = make_source_name()
    before = write_evaluations(engine, source, [0.5], key="one")
    after = write_evaluations(engine, source, [0.5, None], key="two", first_night=1)
    text = run_trend("hit_rate@1", "--source", source).stdout
    assert f"yarus compare {before[-1]} {after[0]}" in text
    assert BREAK in text.splitlines()[4]


def test_trend_without_history_suggests_run(at_home: Path) -> None:
    assert (
        "yarus run tier3" in run_trend("avg_rubric_of_nobody", "--tier", "tier3", "--source", make_source_name()).stdout
    )


def test_trend_suggests_nearest_metric(at_home: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'ndcg@10'"):
        run_trend("NDCG")


def test_plot_keeps_width_and_shows_newest() -> None:
    night = {
        "value": 0.5,
        "band_low": None,
        "band_high": None,
        "state": "completed",
        "is_out_of_band": False,
        "is_break": False,
    }
    nights = [night | {"started_at": f"2026-01-{day:02}", "value": day / 100} for day in range(1, 31)]
    lines = [line.plain for line in plot_history(nights, width=10, name="mrr", height=5)]
    assert len(lines) == 6
    assert {len(line.rstrip()) for line in lines[:5]} <= set(range(14, 25))
    assert lines[0].strip().startswith("0.300 ┤")
    assert lines[4].strip().startswith("0.210 ┤")
    assert "2026-01-21" in lines[5]


def test_plot_includes_distant_accepted_level() -> None:
    night = {
        "value": 0.5,
        "band_low": 0.45,
        "band_high": 0.55,
        "state": "completed",
        "is_out_of_band": False,
        "is_break": False,
    }
    nights = [night | {"started_at": "2026-01-01"}] * 6
    first_line, *_ = (line.plain for line in plot_history(nights, width=10, name="mrr", height=5))
    assert ACCEPTED not in first_line
    highest, *lower_lines = (line.plain for line in plot_history(nights, width=10, name="mrr", accepted=0.9, height=5))
    assert highest.strip() == f"0.900 ┤ {ACCEPTED * 6}"
    assert not any(ACCEPTED in line for line in lower_lines)


@pytest.mark.parametrize(("language", "message"), [("ru", "Принятый уровень: 0.700"), ("en", "Accepted: 0.700")])
def test_trend_names_accepted_evaluation(
    at_home: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch, language: str, message: str
) -> None:
    source = make_source_name()
    _, accepted, _ = write_evaluations(engine, source, [0.5, 0.7, 0.6])
    journal.accept_baseline(engine, accepted)
    monkeypatch.setenv("YARUS_LANGUAGE", language)
    assert f"{message} ({accepted})" in run_trend("hit_rate@1", "--source", source).stdout


def test_plot_of_unmeasured_nights_is_empty() -> None:
    night = {
        "value": None,
        "band_low": None,
        "band_high": None,
        "state": "invalid",
        "is_out_of_band": False,
        "is_break": False,
    }
    assert list(plot_history([night | {"started_at": "2026-01-01"}], width=10, name="mrr")) == []

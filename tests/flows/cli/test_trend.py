"""`yarus trend` as people and programs read it."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Engine

from tests.support.evaluation_history import source_name, write
from yarus.__main__ import cli
from yarus.db import journal
from yarus.db.errors import InputError
from yarus.flows.terminal.differences.trend import ACCEPTED, BREAK, OUT, plot


def asked(*words: str) -> Result:
    result = CliRunner().invoke(cli, ["trend", *words], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result


@pytest.fixture(scope="module")
def history(engine: Engine) -> tuple[str, list[str]]:
    """Twenty calm nights and a drop by v2, then two nights of another key."""
    source = source_name()
    values = 0.8 + 0.01 * np.random.default_rng(0).normal(size=20)
    ids = write(engine, source, values.tolist(), sut_label="v1")
    ids += write(engine, source, [0.6, 0.61], first_night=20, sut_label="v2")
    return source, ids


@pytest.mark.parametrize(
    ("language", "said"), [("ru", "Вне полосы с 2024-01-24"), ("en", "Out of the band since 2024-01-24")]
)
def test_the_first_night_out_is_named_in_both_languages(
    at_home: Path, monkeypatch: pytest.MonkeyPatch, history: tuple[str, list[str]], language: str, said: str
) -> None:
    source, ids = history
    monkeypatch.setenv("YARUS_LANGUAGE", language)
    text = asked("hit_rate@1", "--source", source).stdout
    assert f"{said} ({ids[20]})" in text
    assert "v1 → v2" in text
    assert OUT in text
    assert max(map(len, text.splitlines()[:14])) <= 110


def test_json_is_one_document(at_home: Path, history: tuple[str, list[str]]) -> None:
    source, ids = history
    document = json.loads(asked("hit_rate@1", "--source", source, "--last", "3", "--json").stdout)
    assert [night["evaluation_id"] for night in document["nights"]] == ids[-3:]
    assert (document["first_out"], document["side"]) == (ids[20], "below")


def test_breaks_are_said_with_the_command_that_explains_them(at_home: Path, engine: Engine) -> None:
    source = source_name()
    before = write(engine, source, [0.5], key="one")
    after = write(engine, source, [0.5, None], key="two", first_night=1)
    text = asked("hit_rate@1", "--source", source).stdout
    assert f"yarus compare {before[-1]} {after[0]}" in text
    assert BREAK in text.splitlines()[4]


def test_a_history_that_does_not_exist_yet(at_home: Path) -> None:
    assert "yarus run tier3" in asked("avg_rubric_of_nobody", "--tier", "tier3", "--source", source_name()).stdout


def test_a_typo_names_the_nearest(at_home: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'ndcg@10'"):
        asked("NDCG")


def test_the_plot_keeps_its_width_and_shows_the_newest() -> None:
    night = {"value": 0.5, "band_low": None, "band_high": None, "state": "completed", "out": False, "break": False}
    nights = [night | {"started_at": f"2026-01-{day:02}", "value": day / 100} for day in range(1, 31)]
    lines = [line.plain for line in plot(nights, width=10, name="mrr", height=5)]
    assert len(lines) == 6
    assert {len(line.rstrip()) for line in lines[:5]} <= set(range(14, 25))
    assert lines[0].strip().startswith("0.300 ┤")
    assert lines[4].strip().startswith("0.210 ┤")
    assert "2026-01-21" in lines[5]


def test_the_accepted_level_is_a_line_of_the_plot_even_far_from_the_nights() -> None:
    night = {"value": 0.5, "band_low": 0.45, "band_high": 0.55, "state": "completed", "out": False, "break": False}
    nights = [night | {"started_at": "2026-01-01"}] * 6
    without, *_ = (line.plain for line in plot(nights, width=10, name="mrr", height=5))
    assert ACCEPTED not in without
    highest, *others = (line.plain for line in plot(nights, width=10, name="mrr", accepted=0.9, height=5))
    assert highest.strip() == f"0.900 ┤ {ACCEPTED * 6}"
    assert not any(ACCEPTED in line for line in others)


@pytest.mark.parametrize(("language", "said"), [("ru", "Принятый уровень: 0.700"), ("en", "Accepted: 0.700")])
def test_the_accepted_evaluation_is_named(
    at_home: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch, language: str, said: str
) -> None:
    source = source_name()
    _, accepted, _ = write(engine, source, [0.5, 0.7, 0.6])
    journal.accept(engine, accepted)
    monkeypatch.setenv("YARUS_LANGUAGE", language)
    assert f"{said} ({accepted})" in asked("hit_rate@1", "--source", source).stdout


def test_a_plot_of_nothing_is_nothing() -> None:
    night = {"value": None, "band_low": None, "band_high": None, "state": "invalid", "out": False, "break": False}
    assert list(plot([night | {"started_at": "2026-01-01"}], width=10, name="mrr")) == []

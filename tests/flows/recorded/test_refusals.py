"""Check what recorded answers cannot be used for."""

from pathlib import Path

import pytest

from tests.support.command_line import ENGLISH, assert_refused, run_here


@pytest.mark.parametrize(
    "words",
    [
        ("run", "tier2", "--sut", "recorded", "--context-perturbation", "injection"),
        ("run", "tier3", "--sut", "recorded", "--perturbation", "typos"),
        ("robustness", "--tiers", "tier2", "--perturbations", "injection"),
    ],
)
def test_recorded_answers_refuse_perturbations(at_home: Path, words: tuple[str, ...]) -> None:
    """Refuse before anything is started or paid for."""
    env = ENGLISH | ({"YARUS_SUT": "recorded"} if words[0] == "robustness" else {})
    assert_refused(run_here(*words, env=env), 2, ("recorded answers are to questions and contexts as they were",))

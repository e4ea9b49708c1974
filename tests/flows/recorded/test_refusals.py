"""What cannot be asked of recorded answers."""

from pathlib import Path

import pytest

from tests.support.command_line import ENGLISH, here, refused


@pytest.mark.parametrize(
    "words",
    [
        ("run", "tier2", "--sut", "recorded", "--context-perturbation", "injection"),
        ("run", "tier3", "--sut", "recorded", "--perturbation", "typos"),
        ("robustness", "--tiers", "tier2", "--kinds", "injection"),
    ],
)
def test_what_was_answered_long_ago_is_not_changed(at_home: Path, words: tuple[str, ...]) -> None:
    """Said before anything is begun or paid."""
    env = ENGLISH | ({"YARUS_SUT": "recorded"} if words[0] == "robustness" else {})
    refused(here(*words, env=env), 2, ("recorded answers are to questions and contexts as they were",))

"""Replies of a small real model to judge prompts: a score, or the reason why there is none.

`replies/smollm2.jsonl` has replies of SmolLM2-135M-Instruct: prose, loops, other JSON, cut off texts.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.llm_clients import make_call
from yarus.tasks.models.calls import Call, Reply
from yarus.tasks.models.verdicts import Verdict, ask_for_score

REPLIES = [
    json.loads(line)
    for line in (Path(__file__).parent / "replies" / "smollm2.jsonl").read_text(encoding="utf-8").splitlines()
]


class Repeater:
    """Judge that returns one reply to every call."""

    def __init__(self, recorded: dict[str, Any]) -> None:
        self.reply = Reply(
            "ok", raw=recorded["reply"], finish_reason=recorded["finish_reason"], tokens_out=recorded["tokens_out"]
        )

    async def ask(self, _: Call) -> Reply:
        return self.reply


@pytest.mark.parametrize("recorded", REPLIES, ids=range(len(REPLIES)))
async def test_reply_of_small_model_has_the_expected_verdict(recorded: dict[str, Any]) -> None:
    verdict = await ask_for_score(Repeater(recorded), make_call())  # type: ignore[arg-type]
    if "score" in recorded:
        assert isinstance(verdict, Verdict)
        assert verdict.value == recorded["score"]
    else:
        assert (verdict.status, str(verdict.reason)) == ("parse_error", recorded["reason"])


def test_replies_of_small_model_are_of_every_kind() -> None:
    reasons = {recorded.get("reason", "a score").split(" after ")[0] for recorded in REPLIES}
    assert reasons >= {"a score", "not one JSON object", "no key 'score'", "cut off", "a key stands there twice"}
    assert {recorded["score"] for recorded in REPLIES if "score" in recorded} == {0.0, 1.0}

"""Replies of a small real model to judge prompts: a score, or the true reason why there is none.

`replies/smollm2.jsonl` holds them as SmolLM2-135M-Instruct wrote them: prose, loops, other JSON, cut off texts.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.llm_clients import call
from yarus.tasks.models.calls import Call, Reply
from yarus.tasks.models.verdicts import Verdict, ask_for_score

REPLIES = [
    json.loads(line)
    for line in (Path(__file__).parent / "replies" / "smollm2.jsonl").read_text(encoding="utf-8").splitlines()
]


class Repeater:
    """A judge that gives one reply to every call."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.reply = Reply(
            "ok", raw=given["reply"], finish_reason=given["finish_reason"], tokens_out=given["tokens_out"]
        )

    async def ask(self, _: Call) -> Reply:
        return self.reply


@pytest.mark.parametrize("given", REPLIES, ids=range(len(REPLIES)))
async def test_reply_of_small_model_is_read_as_by_people(given: dict[str, Any]) -> None:
    verdict = await ask_for_score(Repeater(given), call())  # type: ignore[arg-type]
    if "score" in given:
        assert isinstance(verdict, Verdict)
        assert verdict.value == given["score"]
    else:
        assert (verdict.status, str(verdict.reason)) == ("parse_error", given["reason"])


def test_replies_of_small_model_are_of_every_kind() -> None:
    reasons = {given.get("reason", "a score").split(" after ")[0] for given in REPLIES}
    assert reasons >= {"a score", "not one JSON object", "no key 'score'", "cut off", "a key stands there twice"}
    assert {given["score"] for given in REPLIES if "score" in given} == {0.0, 1.0}

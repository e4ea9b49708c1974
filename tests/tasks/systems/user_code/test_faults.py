"""Failures of a user's function cost one question its answer."""

import pytest

from tests.support.bots import WriteBot, ask_bot

BOTH_KINDS = pytest.mark.parametrize(
    "keyword", ["def", pytest.param("async def", marks=pytest.mark.slow("breadth: of an asynchronous function too"))]
)


@BOTH_KINDS
@pytest.mark.parametrize(
    ("deed", "reason"),
    [
        ("sys.exit(5)", "SystemExit: 5 (bot.py:3)"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt: (bot.py:3)"),
        ("os._exit(7)", "ProcessEnded: the process ended with exit code 7"),
        ("os.kill(os.getpid(), 11)", "ProcessEnded: the process was ended by SIGSEGV"),
        ("os.closerange(3, 200)", "ProcessEnded: "),
        ("return {'answer': 'x' * 100_000_000}", "ValueError: what it returned has 100,"),
        ("return {'answer': 5}", "ValueError: 'answer' is 5, not a text"),
        ("return {'answer': object}", "ValueError: 'answer' is <class 'object'>, of type type"),
        ("return (word for word in 'ab')", "ValueError: expected {'answer', 'urls', 'contexts'}, got generator"),
        ("return {'answer': '', 'contexts': nested()}", "RecursionError: "),
        ("raise ValueError('key s3cret at postgresql://u:s3cret@db/x')", "ValueError: key s3cret at postgresql://u:*"),
        pytest.param(
            "time.sleep(100)",
            "TimeoutError: no answer within 3 s (YARUS_SUT_TIMEOUT_S)",
            marks=pytest.mark.slow("wait: a limit of time runs out"),
        ),
    ],
)
def test_failure_costs_one_question_its_answer(
    bot: WriteBot, monkeypatch: pytest.MonkeyPatch, keyword: str, deed: str, reason: str
) -> None:
    monkeypatch.setenv("YARUS_SUT_TIMEOUT_S", "3" if "sleep" in deed else "60")
    monkeypatch.setenv("YARUS_SUT_CONCURRENCY", "4")
    wait = "await asyncio.sleep(0.05)" if keyword == "async def" else "time.sleep(0.05)"
    code = f"""import asyncio, os, sys, time
{keyword} answer(question):
    if question == "q3": {deed}
    {wait}
    return question

def nested():
    inner = []
    for _ in range(99_999): inner = [inner]
    return inner
"""
    results = ask_bot(bot(code), 8)
    assert [answer.text for answer in results] == [None if n == 3 else f"q{n}" for n in range(8)]
    assert str(results[3].error).startswith(reason)

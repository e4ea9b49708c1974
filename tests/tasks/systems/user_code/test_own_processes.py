"""What functions of the user's do to their processes, and what becomes of these."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from tests.support.bots import CODES, Write, answers, lives
from tests.support.processes import until
from yarus.tasks.config.settings import settings
from yarus.tasks.systems.external import Raised
from yarus.tasks.systems.process import SHOWN
from yarus.tasks.systems.sut import system
from yarus.tasks.systems.user_code import GIVEN_UP, TIMEOUT_S

BOTH = pytest.mark.parametrize("of", ["def", "async def"])


@BOTH
def test_what_it_does_to_its_process_touches_nothing_of_ours(
    bot: Write, of: str, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It prints, forks, changes its folder, its loop and its signals, and starts programs."""
    code = f"""import asyncio, os, signal, subprocess, sys, warnings
{of} answer(question):
    warnings.simplefilter("ignore")
    print("printed")
    os.write(1, b"written\\n")
    subprocess.run(["echo", "by a program"])
    os.chdir("/")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.set_event_loop(asyncio.new_event_loop())
    os.fork()
    return question
"""
    before = os.getcwd(), signal.getsignal(signal.SIGINT)  # noqa: PTH109
    assert [said.text for said in answers(bot(code), 3)] == ["q0", "q1", "q2"]
    assert before == (os.getcwd(), signal.getsignal(signal.SIGINT))  # noqa: PTH109
    CODES.close()
    shown = capfd.readouterr()
    assert shown.out == ""
    for words in ("printed", "written", "by a program"):
        assert shown.err.count(words) >= 3


def test_a_flood_on_stderr_is_read_and_cut(bot: Write, capfd: pytest.CaptureFixture[str]) -> None:
    code = "import sys\ndef answer(question):\n    sys.stderr.write('\\x1b[2J' + 'x' * 50_000_000)\n    return question"
    assert answers(bot(code), 1)[0].text == "q0"
    CODES.close()
    shown = capfd.readouterr().err
    assert len(shown) < SHOWN + 200
    assert "the rest is not shown" in shown
    assert "\x1b" not in shown


def test_what_it_has_started_ends_with_it(bot: Write) -> None:
    code = "import subprocess\ndef answer(question):\n    return str(subprocess.Popen(['sleep', '1000']).pid)"
    children = [int(str(said.text)) for said in answers(bot(code), 2)]
    assert all(map(psutil.pid_exists, children))
    CODES.close()
    until("the end of the programs", lambda: not any(map(lives, children)))


def test_children_that_live_on_hide_no_end_of_their_parent(bot: Write) -> None:
    """They have copies of its sockets."""
    code = """import multiprocessing, os, time
multiprocessing.get_context("fork").Process(target=time.sleep, args=(1000,), daemon=True).start()
def answer(question):
    if question == "q1": os._exit(4)
    return question
"""
    found = answers(bot(code), 3)
    assert [said.text for said in found] == ["q0", None, "q2"]
    assert found[1].error == "ProcessEnded: the process ended with exit code 4"


def test_a_process_that_is_killed_is_started_anew(bot: Write) -> None:
    name = bot("import os\ndef answer(question): return str(os.getpid())")
    [first] = answers(name, 1)
    os.kill(int(str(first.text)), signal.SIGKILL)
    lost, second = answers(name, 2)
    assert lost.error == "ProcessEnded: the process was ended by SIGKILL"
    assert second.text not in (None, first.text)


@pytest.mark.slow("process: it is killed")
def test_it_ends_when_we_are_killed(bot: Write, tmp_path: Path) -> None:
    bot("import os, time\ndef answer(question):\n    open('pid', 'w').write(str(os.getpid()))\n    time.sleep(1000)")
    ours = "UserCodes().get('bot:answer', 'YARUS_SUT', 'answer').call('q')"
    ours = f"from yarus.tasks.systems.user_code import UserCodes\n{ours}"
    process = subprocess.Popen(
        [sys.executable, "-c", ours], env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[4])}
    )
    pid = tmp_path / "pid"
    until("the question", lambda: pid.exists() and pid.read_text() != "")
    process.kill()
    process.wait()
    until("the end of the worker", lambda: not lives(int(pid.read_text())))


@pytest.mark.slow("process: five of them die")
@BOTH
def test_one_that_dies_on_every_question_is_given_up(bot: Write, of: str) -> None:
    started = time.monotonic()
    found = answers(bot(f"import os\n{of} answer(question): os._exit(3)"), 2 * GIVEN_UP + 8)
    assert time.monotonic() - started < TIMEOUT_S, "nobody waits for what a process that is gone would answer"
    assert all(said.text is None for said in found)
    assert sum("not asked" in str(said.error) for said in found) >= 10
    assert sum("exit code 3" in str(said.error) for said in found) >= GIVEN_UP // 2


def test_a_module_that_is_broken_meanwhile_costs_questions_and_not_the_run(bot: Write) -> None:
    name = bot("import os\ndef answer(question):\n    os._exit(3)")
    code = CODES.get(name, "YARUS_SUT", "answer")
    bot("import absent_module")
    with pytest.raises(Raised, match="exit code 3"):
        code.call("q")
    with pytest.raises(Raised, match=r"could not be started anew: .*absent_module"):
        code.call("q")


@BOTH
def test_questions_are_asked_side_by_side(bot: Write, monkeypatch: pytest.MonkeyPatch, of: str) -> None:
    """Every question waits until four are under way."""
    monkeypatch.setenv("YARUS_SUT_CONCURRENCY", "4")
    wait = "await asyncio.sleep(0.01)" if of == "async def" else "time.sleep(0.01)"
    code = f"""import asyncio, pathlib, time
{of} answer(question):
    pathlib.Path(question).touch()
    while len(list(pathlib.Path().glob("q*"))) < 4: {wait}
    return question
"""
    assert [said.text for said in answers(bot(code), 4)] == ["q0", "q1", "q2", "q3"]


def test_a_plain_function_is_asked_one_by_one_unless_told_otherwise(bot: Write) -> None:
    assert CODES.get(bot("def answer(question): return ''"), "YARUS_SUT", "answer").concurrency == 1


def test_a_question_that_is_given_up_ends_its_process(bot: Write) -> None:
    """As when the person stops the evaluation: nobody waits for the answer."""
    name = bot(
        "import os, time\ndef answer(question):\n    open('pid', 'w').write(str(os.getpid()))\n    time.sleep(1000)"
    )

    async def stopped() -> None:
        asked = asyncio.create_task(system(name, settings(), CODES).answers(["q"]))
        await asyncio.to_thread(until, "question", Path("pid").exists)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        CODES.close()

    started = time.monotonic()
    asyncio.run(stopped())
    assert time.monotonic() - started < 30
    until("the end of the worker", lambda: not lives(int(Path("pid").read_text() or 0)))


@BOTH
def test_what_was_closed_starts_nothing_anew(bot: Write, of: str) -> None:
    """Not for the question that was under way, nor for those that still wait."""
    name = bot(
        f"import os, time\n{of} answer(question):\n    open('pid', 'w').write(str(os.getpid()))\n    time.sleep(1000)"
    )
    code, said = CODES.get(name, "YARUS_SUT", "answer"), []

    def ask() -> None:
        for question in ("under way", "waiting"):
            with pytest.raises(Raised) as raised:
                code.call(question)
            said.append(str(raised.value))

    asking = threading.Thread(target=ask)
    asking.start()
    until("question", lambda: Path("pid").exists() and Path("pid").read_text())
    Path("pid").unlink()
    CODES.close()
    asking.join(20)
    assert not asking.is_alive()
    assert said[0].startswith("ProcessEnded: ")
    assert said[1] == "ProcessEnded: not asked: the evaluation is over"
    assert (CODES.running, Path("pid").exists()) == (set(), False)
    assert CODES.get(name, "YARUS_SUT", "answer") is not code

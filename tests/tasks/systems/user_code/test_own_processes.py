"""Effects of a user's functions on their processes, and the end of these processes."""

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

from tests.support.bots import USER_CODES, WriteBot, ask_bot, is_running
from tests.support.processes import wait_for
from yarus.tasks.config.settings import get_settings
from yarus.tasks.systems.external import UserCodeError
from yarus.tasks.systems.process import MAX_OUTPUT_CHARACTERS
from yarus.tasks.systems.sut import create_system
from yarus.tasks.systems.user_code import MAX_LOST, TIMEOUT_S

BOTH_KINDS = pytest.mark.parametrize("keyword", ["def", "async def"])


@BOTH_KINDS
def test_function_cannot_affect_the_process_of_yarus(
    bot: WriteBot, keyword: str, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It prints, forks, changes its folder, its loop and its signals, and starts programs."""
    code = f"""import asyncio, os, signal, subprocess, sys, warnings
{keyword} answer(question):
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
    assert [answer.text for answer in ask_bot(bot(code), 3)] == ["q0", "q1", "q2"]
    assert before == (os.getcwd(), signal.getsignal(signal.SIGINT))  # noqa: PTH109
    USER_CODES.close()
    output = capfd.readouterr()
    assert output.out == ""
    for words in ("printed", "written", "by a program"):
        assert output.err.count(words) >= 3


def test_long_stderr_is_read_and_cut(bot: WriteBot, capfd: pytest.CaptureFixture[str]) -> None:
    code = "import sys\ndef answer(question):\n    sys.stderr.write('\\x1b[2J' + 'x' * 50_000_000)\n    return question"
    assert ask_bot(bot(code), 1)[0].text == "q0"
    USER_CODES.close()
    output = capfd.readouterr().err
    assert len(output) < MAX_OUTPUT_CHARACTERS + 200
    assert "the rest is not shown" in output
    assert "\x1b" not in output


def test_started_programs_end_with_the_process(bot: WriteBot) -> None:
    code = "import subprocess\ndef answer(question):\n    return str(subprocess.Popen(['sleep', '1000']).pid)"
    children = [int(str(answer.text)) for answer in ask_bot(bot(code), 2)]
    assert all(map(psutil.pid_exists, children))
    USER_CODES.close()
    wait_for("the end of the programs", lambda: not any(map(is_running, children)))


def test_end_is_noticed_despite_living_children(bot: WriteBot) -> None:
    """The children have copies of the sockets."""
    code = """import multiprocessing, os, time
multiprocessing.get_context("fork").Process(target=time.sleep, args=(1000,), daemon=True).start()
def answer(question):
    if question == "q1": os._exit(4)
    return question
"""
    results = ask_bot(bot(code), 3)
    assert [answer.text for answer in results] == ["q0", None, "q2"]
    assert results[1].error == "ProcessEnded: the process ended with exit code 4"


def test_killed_process_is_replaced(bot: WriteBot) -> None:
    name = bot("import os\ndef answer(question): return str(os.getpid())")
    [first] = ask_bot(name, 1)
    os.kill(int(str(first.text)), signal.SIGKILL)
    lost, second = ask_bot(name, 2)
    assert lost.error == "ProcessEnded: the process was ended by SIGKILL"
    assert second.text not in (None, first.text)


@pytest.mark.slow("process: it is killed")
def test_worker_ends_when_yarus_is_killed(bot: WriteBot, tmp_path: Path) -> None:
    bot("import os, time\ndef answer(question):\n    open('pid', 'w').write(str(os.getpid()))\n    time.sleep(1000)")
    script = "UserFunctions().get('bot:answer', 'YARUS_SUT', 'answer').call('q')"
    script = f"from yarus.tasks.systems.user_code import UserFunctions\n{script}"
    process = subprocess.Popen(
        [sys.executable, "-c", script], env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[4])}
    )
    pid = tmp_path / "pid"
    wait_for("the question", lambda: pid.exists() and pid.read_text() != "")
    process.kill()
    process.wait()
    wait_for("the end of the worker", lambda: not is_running(int(pid.read_text())))


@pytest.mark.slow("process: five of them die")
@BOTH_KINDS
def test_function_that_always_dies_is_given_up(bot: WriteBot, keyword: str) -> None:
    started = time.monotonic()
    results = ask_bot(bot(f"import os\n{keyword} answer(question): os._exit(3)"), 2 * MAX_LOST + 8)
    assert time.monotonic() - started < TIMEOUT_S, "nobody waits for what a process that is gone would answer"
    assert all(answer.text is None for answer in results)
    assert sum("not asked" in str(answer.error) for answer in results) >= 10
    assert sum("exit code 3" in str(answer.error) for answer in results) >= MAX_LOST // 2


def test_module_broken_later_fails_only_questions(bot: WriteBot) -> None:
    name = bot("import os\ndef answer(question):\n    os._exit(3)")
    code = USER_CODES.get(name, "YARUS_SUT", "answer")
    bot("import absent_module")
    with pytest.raises(UserCodeError, match="exit code 3"):
        code.call("q")
    with pytest.raises(UserCodeError, match=r"could not be started anew: .*absent_module"):
        code.call("q")


@BOTH_KINDS
def test_questions_run_concurrently(bot: WriteBot, monkeypatch: pytest.MonkeyPatch, keyword: str) -> None:
    """Every question waits until four are under way."""
    monkeypatch.setenv("YARUS_SUT_CONCURRENCY", "4")
    wait = "await asyncio.sleep(0.01)" if keyword == "async def" else "time.sleep(0.01)"
    code = f"""import asyncio, pathlib, time
{keyword} answer(question):
    pathlib.Path(question).touch()
    while len(list(pathlib.Path().glob("q*"))) < 4: {wait}
    return question
"""
    assert [answer.text for answer in ask_bot(bot(code), 4)] == ["q0", "q1", "q2", "q3"]


def test_synchronous_function_has_concurrency_1_by_default(bot: WriteBot) -> None:
    assert USER_CODES.get(bot("def answer(question): return ''"), "YARUS_SUT", "answer").concurrency == 1


def test_cancelled_question_ends_its_process(bot: WriteBot) -> None:
    """As when a person stops the evaluation, the answer is not awaited."""
    name = bot(
        "import os, time\ndef answer(question):\n    open('pid', 'w').write(str(os.getpid()))\n    time.sleep(1000)"
    )

    async def cancel_question() -> None:
        task = asyncio.create_task(create_system(name, get_settings(), USER_CODES).answers(["q"]))
        await asyncio.to_thread(wait_for, "question", Path("pid").exists)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        USER_CODES.close()

    started = time.monotonic()
    asyncio.run(cancel_question())
    assert time.monotonic() - started < 30
    wait_for("the end of the worker", lambda: not is_running(int(Path("pid").read_text() or 0)))


@BOTH_KINDS
def test_closed_code_starts_no_process(bot: WriteBot, keyword: str) -> None:
    """Neither the running question nor waiting ones get a new process."""
    name = bot(
        f"import os, time\n{keyword} answer(question):\n    open('pid', 'w').write(str(os.getpid()))\n"
        "    time.sleep(1000)"
    )
    code, errors = USER_CODES.get(name, "YARUS_SUT", "answer"), []

    def ask() -> None:
        for question in ("under way", "waiting"):
            with pytest.raises(UserCodeError) as raised:
                code.call(question)
            errors.append(str(raised.value))

    thread = threading.Thread(target=ask)
    thread.start()
    wait_for("question", lambda: Path("pid").exists() and Path("pid").read_text())
    Path("pid").unlink()
    USER_CODES.close()
    thread.join(20)
    assert not thread.is_alive()
    assert errors[0].startswith("ProcessEnded: ")
    assert errors[1] == "ProcessEnded: not asked: the evaluation is over"
    assert (USER_CODES.running, Path("pid").exists()) == (set(), False)
    assert USER_CODES.get(name, "YARUS_SUT", "answer") is not code

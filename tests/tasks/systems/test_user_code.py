"""Functions of the user's in their own processes: what they may be, and whatever they do there."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from db.errors import InputError
from tasks.config.settings import settings
from tasks.systems.external import Raised
from tasks.systems.process import SHOWN
from tasks.systems.sut import Answered, system
from tasks.systems.user_code import GIVEN_UP, close_user_code, user_code
from tests.support.processes import until

Write = Callable[..., str]


@pytest.fixture
def bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes a bot into the current folder, and returns its name."""
    monkeypatch.chdir(tmp_path)

    def write(code: str, name: str = "bot") -> str:
        (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
        return f"{name}:answer"

    yield write
    close_user_code()


@pytest.fixture
def pypy() -> str:
    if (found := shutil.which("pypy3")) is None:
        pytest.skip("needs another Python: apt-get install pypy3 pypy3-venv")
    return found


def answers(name: str, n: int) -> list[Answered]:
    return asyncio.run(system(name, settings()).answers([f"q{number}" for number in range(n)]))


def test_a_bot_whose_packages_bear_our_names_has_its_own(bot: Write, tmp_path: Path) -> None:
    """Modules, packages, and folders without an `__init__`, which Python takes for packages only where no other is."""
    (tmp_path / "db.py").write_text("DATA = 'theirs'")
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics" / "__init__.py").write_text("from .inner import VALUE")
    (tmp_path / "metrics" / "inner.py").write_text("VALUE = 'own'")
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "steps.py").write_text("STEP = 'too'")
    name = bot(
        "import db, metrics, tasks.steps\n"
        "try:\n    import flows\nexcept ModuleNotFoundError as error:\n    absent = error.name\n"
        "def answer(question): return ' '.join([db.DATA, metrics.VALUE, tasks.steps.STEP, absent])"
    )
    assert answers(name, 1)[0].text == "theirs own too flows"


def test_a_bot_has_its_own_virtual_environment_of_another_python(
    bot: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pypy: str
) -> None:
    """PyPy, of another version than ours, with a package that only its environment has."""
    subprocess.run([pypy, "-m", "venv", "--without-pip", str(tmp_path / "own")], check=True)
    python = tmp_path / "own" / "bin" / "python"
    where = subprocess.run(
        [python, "-c", "import site; print(site.getsitepackages()[0])"], check=True, capture_output=True, text=True
    )
    (Path(where.stdout.strip()) / "only_there.py").write_text("WORD = 'installed there'")
    monkeypatch.setenv("YARUS_SUT_PYTHON", str(python))
    name = bot(
        "import only_there, platform, sys\n"
        "def answer(question): return {'answer': only_there.WORD, 'path': platform.python_implementation(),"
        " 'contexts': [sys.prefix]}"
    )
    [said] = answers(name, 1)
    assert (said.text, said.path, said.contexts) == ("installed there", "PyPy", [str(tmp_path / "own")])


@pytest.mark.parametrize(
    "code",
    [
        "def answer(question): return {'answer': question}",
        "async def answer(question): return {'answer': question}",
        "def answer(question): return question",
        "class Bot:\n    def __call__(self, question): return question\nanswer = Bot()",
        "class Bot:\n    async def __call__(self, question): return question\nanswer = Bot()",
        "class Chain:\n    def invoke(self, input, config=None, **more): return {'answer': input}\nanswer = Chain()",
        "class Chain:\n    async def ainvoke(self, input, config=None): return input\ndef answer(): return Chain()",
        "class answer:\n    async def ainvoke(self, input): return input",
        "def answer():\n    async def ask(question): return question\n    return ask",
        "class Message:\n    def __init__(self, content): self.content = content\n"
        "class Chain:\n    def invoke(self, input): return Message(input)\nanswer = Chain()",
        "async def later(question): return question\ndef answer(question): return later(question)",
        "import functools\ndef both(tone, question): return question\nanswer = functools.partial(both, 'kind')",
    ],
)
def test_a_function_in_any_form_is_asked(bot: Write, code: str) -> None:
    assert [said.text for said in answers(bot(code), 3)] == ["q0", "q1", "q2"]


def test_a_method_is_named_with_its_object(bot: Write) -> None:
    bot("class Bot:\n    def answer(self, question): return question\nhelper = Bot()")
    assert answers("bot:helper.answer", 1)[0].text == "q0"


def test_documents_and_numbers_of_other_libraries_are_read(bot: Write) -> None:
    name = bot(
        "class Document:\n    page_content = 'текст'\n"
        "class Float:\n    def item(self): return 12.5\n"
        "def answer(question):\n"
        "    return {'answer': 'a', 'contexts': (Document(),), 'latency_ms': Float(), 'more': object()}"
    )
    [said] = answers(name, 1)
    assert (said.contexts, said.latency_ms) == (["текст"], 12.5)


@pytest.mark.parametrize(("arguments", "takes"), [("question, history", True), ("question, k=3", False)])
def test_a_second_argument_that_must_be_given_is_the_history(bot: Write, arguments: str, takes: bool) -> None:
    code = user_code(bot(f"def answer({arguments}): return question"), "YARUS_SUT", "answer")
    assert code.takes_history is takes


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def answer(): return 'a'", "takes no arguments and makes a str, which can neither be called nor invoked"),
        ("def answer(a, b, c): return 'a'", r"takes \(a, b, c\); expected answer\(question\) or answer\(question, his"),
        ("def answer(question): yield 'a'", "is a generator; return the whole answer"),
        ("answer = 5", "is no function but int"),
        ("import json\n\nimport absent_module", r"ModuleNotFoundError: No module named 'absent_module' \(bot.py:3\)"),
        ("import os\nos._exit(4)", "the process ended with exit code 4"),
        (
            "import sys, os\nprint('no licence for model X')\nos.kill(os.getpid(), 9)",
            "ended by SIGKILL; its last words: no licence for model X",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is(bot: Write, code: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        answers(bot(code), 1)
    assert str(refused.value).startswith("YARUS_SUT 'bot:answer'")


def test_a_module_that_fails_shows_its_traceback_from_its_own_first_line(
    bot: Write, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("helper.py").write_text("def load():\n    raise RuntimeError('no index')\nload()")
    with pytest.raises(InputError, match=r"RuntimeError: no index \(helper.py:2\)"):
        answers(bot("import helper"), 1)
    shown = capfd.readouterr().err
    assert shown.index('bot.py", line 1') < shown.index('helper.py", line 2')
    assert "importlib" not in shown.partition("helper.py")[0]
    assert "yarus_worker" not in shown


@pytest.mark.parametrize(
    ("python", "message"),
    [
        ("/nowhere/python", "'/nowhere/python' cannot be started: No such file or directory"),
        ("/etc/passwd", "'/etc/passwd' cannot be started: Permission denied"),
        ("/bin/true", "'/bin/true' did not start as a Python 3.7 or later does; give the path of one"),
        ("/bin/ls", "'/bin/ls' did not start as a Python 3.7 or later does: "),
    ],
)
def test_an_interpreter_that_is_none_is_refused(
    bot: Write, monkeypatch: pytest.MonkeyPatch, python: str, message: str
) -> None:
    monkeypatch.setenv("YARUS_SUT_PYTHON", python)
    with pytest.raises(InputError, match=f"^YARUS_SUT_PYTHON {message}"):
        answers(bot("def answer(question): return ''"), 1)


BOTH = pytest.mark.parametrize("of", ["def", "async def"])


@BOTH
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
        ("time.sleep(100)", "TimeoutError: no answer within 1 s (YARUS_SUT_TIMEOUT_S)"),
    ],
)
def test_whatever_it_does_costs_one_question_its_answer(
    bot: Write, monkeypatch: pytest.MonkeyPatch, of: str, deed: str, reason: str
) -> None:
    monkeypatch.setenv("YARUS_SUT_TIMEOUT_S", "1")
    monkeypatch.setenv("YARUS_SUT_CONCURRENCY", "4")
    wait = "await asyncio.sleep(0.05)" if of == "async def" else "time.sleep(0.05)"
    code = f"""import asyncio, os, sys, time
{of} answer(question):
    if question == "q3": {deed}
    {wait}
    return question

def nested():
    inner = []
    for _ in range(99_999): inner = [inner]
    return inner
"""
    found = answers(bot(code), 8)
    assert [said.text for said in found] == [None if n == 3 else f"q{n}" for n in range(8)]
    assert str(found[3].error).startswith(reason)


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
    close_user_code()
    shown = capfd.readouterr()
    assert shown.out == ""
    for words in ("printed", "written", "by a program"):
        assert shown.err.count(words) >= 3


def test_a_flood_on_stderr_is_read_and_cut(bot: Write, capfd: pytest.CaptureFixture[str]) -> None:
    code = "import sys\ndef answer(question):\n    sys.stderr.write('\\x1b[2J' + 'x' * 50_000_000)\n    return question"
    assert answers(bot(code), 1)[0].text == "q0"
    close_user_code()
    shown = capfd.readouterr().err
    assert len(shown) < SHOWN + 200
    assert "the rest is not shown" in shown
    assert "\x1b" not in shown


def test_what_it_has_started_ends_with_it(bot: Write) -> None:
    code = "import subprocess\ndef answer(question):\n    return str(subprocess.Popen(['sleep', '1000']).pid)"
    children = [int(str(said.text)) for said in answers(bot(code), 2)]
    assert all(map(psutil.pid_exists, children))
    close_user_code()
    until("the end of the programs", lambda: not any(map(_lives, children)))


def test_a_process_that_is_killed_is_started_anew(bot: Write) -> None:
    name = bot("import os\ndef answer(question): return str(os.getpid())")
    [first] = answers(name, 1)
    os.kill(int(str(first.text)), signal.SIGKILL)
    lost, second = answers(name, 2)
    assert lost.error == "ProcessEnded: the process was ended by SIGKILL"
    assert second.text not in (None, first.text)


def test_it_ends_when_we_are_killed(bot: Write, tmp_path: Path) -> None:
    bot("import os, time\ndef answer(question):\n    open('pid', 'w').write(str(os.getpid()))\n    time.sleep(1000)")
    ours = "from tasks.systems.user_code import user_code; user_code('bot:answer', 'YARUS_SUT', 'answer').call('q')"
    process = subprocess.Popen(
        [sys.executable, "-c", ours], env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    )
    pid = tmp_path / "pid"
    until("the question", lambda: pid.exists() and pid.read_text() != "")
    process.kill()
    process.wait()
    until("the end of the worker", lambda: not _lives(int(pid.read_text())))


@BOTH
def test_one_that_dies_on_every_question_is_given_up(bot: Write, of: str) -> None:
    found = answers(bot(f"import os\n{of} answer(question): os._exit(3)"), 2 * GIVEN_UP + 8)
    assert all(said.text is None for said in found)
    assert sum("not asked" in str(said.error) for said in found) >= 10
    assert sum("exit code 3" in str(said.error) for said in found) >= GIVEN_UP // 2


def test_a_module_that_is_broken_meanwhile_costs_questions_and_not_the_run(bot: Write) -> None:
    name = bot("import os\ndef answer(question):\n    os._exit(3)")
    code = user_code(name, "YARUS_SUT", "answer")
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
    assert user_code(bot("def answer(question): return ''"), "YARUS_SUT", "answer").concurrency == 1


def test_a_question_that_is_given_up_ends_its_process(bot: Write) -> None:
    """As when the person stops the evaluation: nobody waits for the answer."""
    name = bot(
        "import os, time\ndef answer(question):\n    open('pid', 'w').write(str(os.getpid()))\n    time.sleep(1000)"
    )

    async def stopped() -> None:
        asked = asyncio.create_task(system(name, settings()).answers(["q"]))
        await asyncio.to_thread(until, "question", Path("pid").exists)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        close_user_code()

    started = time.monotonic()
    asyncio.run(stopped())
    assert time.monotonic() - started < 30
    until("the end of the worker", lambda: not _lives(int(Path("pid").read_text() or 0)))


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False

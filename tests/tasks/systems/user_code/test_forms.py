"""Functions of a user: allowed forms, their environment, and rejected ones."""

import subprocess
from pathlib import Path

import pytest

from tests.support.bots import USER_CODES, WriteBot, ask_bot
from yarus.db.errors import InputError


def test_bot_may_have_packages_named_like_those_of_yarus(bot: WriteBot, tmp_path: Path) -> None:
    """Folders without `__init__` are packages only if no other package has their name."""
    (tmp_path / "db.py").write_text("DATA = 'theirs'")
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics" / "__init__.py").write_text("from .inner import VALUE")
    (tmp_path / "metrics" / "inner.py").write_text("VALUE = 'own'")
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "steps.py").write_text("STEP = 'too'")
    name = bot(
        "import db, metrics, tasks.steps\n"
        "def answer(question): return ' '.join([db.DATA, metrics.VALUE, tasks.steps.STEP])"
    )
    assert ask_bot(name, 1)[0].text == "theirs own too"


def test_bot_runs_in_virtual_environment_of_another_python(
    bot: WriteBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pypy: str
) -> None:
    """PyPy has another version than Yarus's Python, and its environment has a package of its own."""
    subprocess.run([pypy, "-m", "venv", "--without-pip", str(tmp_path / "own")], check=True)
    python = tmp_path / "own" / "bin" / "python"
    site_packages = subprocess.run(
        [python, "-c", "import site; print(site.getsitepackages()[0])"], check=True, capture_output=True, text=True
    )
    (Path(site_packages.stdout.strip()) / "only_there.py").write_text("WORD = 'installed there'")
    monkeypatch.setenv("YARUS_SUT_PYTHON", str(python))
    name = bot(
        "import only_there, platform, sys\n"
        "def answer(question): return {'answer': only_there.WORD, 'path': platform.python_implementation(),"
        " 'contexts': [sys.prefix]}"
    )
    [answer] = ask_bot(name, 1)
    assert (answer.text, answer.path, answer.contexts) == ("installed there", "PyPy", [str(tmp_path / "own")])


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
def test_function_in_any_form_is_called(bot: WriteBot, code: str) -> None:
    assert [answer.text for answer in ask_bot(bot(code), 3)] == ["q0", "q1", "q2"]


def test_method_is_named_with_its_object(bot: WriteBot) -> None:
    bot("class Bot:\n    def answer(self, question): return question\nhelper = Bot()")
    assert ask_bot("bot:helper.answer", 1)[0].text == "q0"


def test_method_without_its_object_is_rejected(bot: WriteBot) -> None:
    bot("class Bot:\n    def answer(self, question): return question")
    with pytest.raises(InputError, match=r"'bot:Bot\.answer' is a method without its object"):
        ask_bot("bot:Bot.answer", 1)


def test_documents_and_numbers_of_libraries_are_read(bot: WriteBot) -> None:
    name = bot(
        "class Document:\n    page_content = 'текст'\n"
        "class Float:\n    def item(self): return 12.5\n"
        "def answer(question):\n"
        "    return {'answer': 'a', 'contexts': (Document(),), 'latency_ms': Float(), 'more': object()}"
    )
    [answer] = ask_bot(name, 1)
    assert (answer.contexts, answer.latency_ms) == (["текст"], 12.5)


@pytest.mark.parametrize(("arguments", "takes"), [("question, history", True), ("question, k=3", False)])
def test_required_second_argument_is_the_history(bot: WriteBot, arguments: str, takes: bool) -> None:
    code = USER_CODES.get(bot(f"def answer({arguments}): return question"), "YARUS_SUT", "answer")
    assert code.takes_history is takes


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def answer(): return 'a'", "takes no arguments and makes a str, which can neither be called nor invoked"),
        ("def answer(a, b, c): return 'a'", r"takes \(a, b, c\); expected answer\(question\) or answer\(question, his"),
        ("def answer(question): yield 'a'", "is a generator; return the whole answer"),
        ("answer = 5", "is no function but int"),
        ("class answer:\n    def __init__(self, key): pass", r"is a class that takes \(key\); name an object"),
        ("import json\n\nimport absent_module", r"ModuleNotFoundError: No module named 'absent_module' \(bot.py:3\)"),
        ("import os\nos._exit(4)", "the process ended with exit code 4"),
        (
            "import sys, os\nprint('no licence for model X')\nos.kill(os.getpid(), 9)",
            "ended by SIGKILL; its last words: no licence for model X",
        ),
    ],
)
def test_unusable_function_is_rejected(bot: WriteBot, code: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        ask_bot(bot(code), 1)
    assert str(raised.value).startswith("YARUS_SUT 'bot:answer'")


def test_traceback_of_failing_module_begins_in_user_code(bot: WriteBot, capfd: pytest.CaptureFixture[str]) -> None:
    Path("helper.py").write_text("def load():\n    raise RuntimeError('no index')\nload()")
    with pytest.raises(InputError, match=r"RuntimeError: no index \(helper.py:2\)"):
        ask_bot(bot("import helper"), 1)
    output = capfd.readouterr().err
    assert output.index('bot.py", line 1') < output.index('helper.py", line 2')
    assert "importlib" not in output.partition("helper.py")[0]
    assert "yarus_worker" not in output


@pytest.mark.parametrize(
    ("python", "message"),
    [
        ("/nowhere/python", "'/nowhere/python' cannot be started: No such file or directory"),
        ("/etc/passwd", "'/etc/passwd' cannot be started: Permission denied"),
        ("/bin/true", "'/bin/true' did not start as a Python 3.7 or later does; give the path of one"),
        ("/bin/ls", "'/bin/ls' did not start as a Python 3.7 or later does: "),
    ],
)
def test_unusable_interpreter_is_rejected(
    bot: WriteBot, monkeypatch: pytest.MonkeyPatch, python: str, message: str
) -> None:
    monkeypatch.setenv("YARUS_SUT_PYTHON", python)
    with pytest.raises(InputError, match=f"^YARUS_SUT_PYTHON {message}"):
        ask_bot(bot("def answer(question): return ''"), 1)

"""Check the command line with bad input: exit code, a message with value, place and remedy, no traceback."""

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from sqlalchemy import Engine, inspect

from tests.support.command_line import (
    CLOSED,
    ENGLISH,
    SECRET,
    Command,
    CommandLine,
    CommandResult,
    assert_refused,
    make_environment,
    run_here,
    run_in_parallel,
)
from tests.support.texts.messages import commands
from yarus.__main__ import cli
from yarus.db.errors import DatabaseUnavailable, InputError
from yarus.db.sources import find_loaded_source
from yarus.flows.cli.framework.command_group import RENAMED_COMMANDS, RENAMED_OPTIONS
from yarus.tasks.config.flow_parameters import FLOWS

# Arguments, variables, exit code, and words that the message must have.
WRONG: dict[str, tuple[tuple[str, ...], dict[str, str], int, tuple[str, ...]]] = {
    "unknown command": (("rnu",), {}, 2, ("rnu",)),
    "unknown tier": (("run", "tier11"), {}, 2, ("no tier 'tier11'", "did you mean 'tier1'?")),
    "unknown source": (
        ("run", "tier1", "--source", "xquad_r"),
        {},
        2,
        ("no source 'xquad_r'", "did you mean 'xquad_ru'?", "yarus init FILE"),
    ),
    "unknown parameter": (("run", "tier1", "--limitt", "5"), {}, 2, ("'limitt'", "did you mean 'limit'?")),
    "unknown parameter by --set": (("run", "tier1", "--set", "uni=page"), {}, 2, ("'uni'", "did you mean 'unit'?")),
    "unknown retriever": (("run", "tier1", "--retriever", "fultext"), {}, 2, ("'fultext'", "'fulltext'")),
    "unknown retriever by setting": (("run", "tier1"), {"YARUS_RETRIEVER": "dens"}, 2, ("'dens'", "'dense'")),
    "value out of range": (("run", "tier1", "--k", "3"), {}, 2, ("k = '3'", "expected 10 or more")),
    "value not a number": (("run", "tier1", "--k", "ten"), {}, 2, ("k = 'ten'", "expected a whole number")),
    "value not among": (("run", "tier1", "--unit", "word"), {}, 2, ("unit = 'word'", "'chunk'", "'page'")),
    "no cases": (("run", "tier1", "--limit", "0"), {}, 2, ("limit", "0")),
    "value missing": (("run", "tier1", "--k"), {}, 2, ("--k", "value is missing")),
    "no equals sign": (("run", "tier1", "--set", "k"), {}, 2, ("--set 'k'", "PARAMETER=VALUE")),
    "stray word": (("run", "tier1", "xquad_ru"), {}, 2, ("'xquad_ru'", "--PARAMETER VALUE")),
    "nothing to resume": (("run", "tier1", "--resume", "tier1-2020"), {}, 2, ("no evaluation 'tier1-2020'",)),
    "unknown evaluation": (("show", "nothing"), {}, 2, ("no evaluation 'nothing'", "there are:")),
    "unknown setting": (("runs",), {"YARUS_RETREIVER": "x"}, 2, ("'YARUS_RETREIVER'", "'YARUS_RETRIEVER'")),
    "setting out of range": (("runs",), {"YARUS_MIN_COVERAGE": "95"}, 2, ("YARUS_MIN_COVERAGE", "95")),
    "setting not among": (("runs",), {"YARUS_LANGUAGE": "fr"}, 2, ("YARUS_LANGUAGE", "'ru' или 'en'")),
    "production without an address": (("run", "tier1", "--source", "production"), {}, 2, ("YARUS_SOURCE_URL=",)),
    "mapping of nothing": (
        ("run", "tier1", "--source", "production"),
        {"YARUS_SOURCE_URL": CLOSED, "YARUS_SOURCE_TABLES__CHUNKS": "x"},
        2,
        ("'chunks'", "did you mean 'chunk'?"),
    ),
    "another database": (("runs",), {"YARUS_DATABASE_URL": "mysql://u@h/d"}, 2, ("'mysql' is not supported",)),
    "no database URL": (("runs",), {"YARUS_DATABASE_URL": f"someone:{SECRET}"}, 2, ("YARUS_DATABASE_URL", "not a")),
    "unreachable database": (("runs",), {"YARUS_DATABASE_URL": CLOSED}, 3, ("127.0.0.1", "someone:***", "password")),
    "password as an option": (
        ("runs",),
        {"YARUS_DATABASE_URL": f"postgresql://127.0.0.1:1/there?user=someone&password={SECRET}"},
        3,
        ("127.0.0.1",),
    ),
    "a home that cannot be": (("runs",), {"YARUS_HOME": "/proc/yarus"}, 3, ("/proc/yarus", "YARUS_HOME")),
    "name that no source can have": (("load", "squad", "x.json", "--into", "a-b"), {}, 2, ("'a-b'", "a-z")),
    "file that is not there": (("load", "squad", "absent.json"), {}, 2, ("absent.json", "nothing was loaded")),
    "truncated file": (("load", "squad", "truncated.json"), {}, 2, ("line 1, column", "nothing was loaded")),
    "file that is not UTF-8": (("load", "squad", "cp1251.json"), {}, 2, ("not UTF-8 at byte 10", "iconv")),
    "file of another kind": (("load", "squad", "other.json"), {}, 2, ("has no 'data'", "not a SQuAD file")),
}


FORKED = ("unknown command", "unknown source", "unreachable database", "file that is not UTF-8")


@pytest.fixture(scope="module")
def wrong(yarus: CommandLine, at_home_for_module: Path, xquad_source: str) -> dict[str, CommandResult]:
    (yarus.home / "truncated.json").write_text('{"data": [{"title": "x", "para', encoding="utf-8")
    (yarus.home / "cp1251.json").write_bytes('{"data": "Привет"}'.encode("cp1251"))
    (yarus.home / "other.json").write_text("{}", encoding="utf-8")
    commands = {name: Command(words, ENGLISH | env) for name, (words, env, _, _) in WRONG.items()}
    results = {name: run_here(*commands[name].words, env=commands[name].env) for name in commands if name not in FORKED}
    return results | run_in_parallel(yarus, {name: commands[name] for name in FORKED})


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_refused_with_hint(wrong: dict[str, CommandResult], name: str) -> None:
    _, _, code, words = WRONG[name]
    assert_refused(wrong[name], code, words)


@pytest.mark.parametrize(
    ("problem", "code", "message"),
    [
        (RuntimeError(f"a mistake of ours at {CLOSED}"), 3, "Traceback"),
        (InputError(f"not {CLOSED}"), 2, "yarus: not"),
        (DatabaseUnavailable(f"no {CLOSED}"), 3, "yarus: no"),
    ],
)
def test_error_has_exit_code_and_no_secret(
    monkeypatch: pytest.MonkeyPatch, problem: Exception, code: int, message: str
) -> None:
    def fail() -> None:
        raise problem

    monkeypatch.setitem(cli.commands, "broken", click.Command("broken", callback=fail))
    ran = run_here("broken")
    assert (ran.code, message in ran.err, SECRET in ran.err) == (code, True, False)


@pytest.mark.parametrize("name", ["truncated", "cp1251", "other", "absent"])
def test_broken_file_loads_nothing(wrong: dict[str, CommandResult], engine: Engine, name: str) -> None:
    with pytest.raises(InputError, match="no source"):
        find_loaded_source(engine, name)
    assert f"source_{name}" not in inspect(engine).get_schema_names()


@pytest.mark.slow("breadth: a document of every command")
def test_json_commands_print_one_document(yarus: CommandLine, by_fulltext: dict[str, Any]) -> None:
    evaluation_id = by_fulltext["evaluation_id"]
    commands = (("runs",), ("show", evaluation_id), ("cases", evaluation_id, "--limit", "2"), ("doctor",))
    results = run_in_parallel(yarus, {words[0]: Command((*words, "--json")) for words in commands})
    worst_code = max(finding["exit_code"] for finding in results["doctor"].json)  # of the sources of all tests
    for words in commands:
        assert results[words[0]].code == (worst_code if words == ("doctor",) else 0), results[words[0]]
        assert isinstance(results[words[0]].json, dict | list)
        assert results[words[0]].err == ""


def test_help_imports_no_heavy_libraries(home: Path) -> None:
    heavy = "{'prefect', 'numpy', 'sqlalchemy', 'pyarrow', 'pandas', 'pydantic', 'rich'}"
    script = f"import sys, yarus.__main__; print(sorted({heavy} & set(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-c", script], env=make_environment(home), cwd=home, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


def test_commands_have_help() -> None:
    for words, command in commands(cli):
        result = run_here(*words, "--help")
        assert result.code == 0
        assert f"Использование: {' '.join(('yarus', *words))} " in result.out
        complete = run_here(*words, "--help-all").out
        options = [
            option for parameter in command.params if isinstance(parameter, click.Option) for option in parameter.opts
        ]
        assert [option for option in options if option not in complete] == [], words


FIRST_WEEK = ["demo", "init", "load", "run", "show", "cases", "report", "compare", "gate", "serve"]


@pytest.mark.parametrize("language", ["ru", "en"])
def test_help_shows_first_week_on_one_screen(monkeypatch: pytest.MonkeyPatch, language: str) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run_here("--help", env={"YARUS_LANGUAGE": language}).out.splitlines()
    start = lines.index({"ru": "Команды:", "en": "Commands:"}[language]) + 1
    rows = lines[start : lines.index("", start)]
    assert [row.split()[0] for row in rows] == FIRST_WEEK  # one line each
    assert len(lines) <= 40
    assert "yarus --help-all" in lines[-1]


def test_help_all_lists_every_command_and_option() -> None:
    overview = run_here("--help-all", env=ENGLISH).out
    assert [name for name in cli.commands if f"\n  {name} " not in overview] == []
    assert "--force" not in run_here("compare", "--help", env=ENGLISH).out
    assert "Rarely used options: --help-all." in run_here("compare", "--help", env=ENGLISH).out
    assert "--force" in run_here("compare", "--help-all", env=ENGLISH).out
    assert "--anchor" not in run_here("run", "tier3", "--help", env=ENGLISH).out
    assert "--anchor" in run_here("run", "tier3", "--help-all", env=ENGLISH).out
    assert "--parallel-source" in run_here("judge", "exam", "--help-all", env=ENGLISH).out


def list_help_examples() -> list[str]:
    """Return the command lines in the help of all commands."""
    groups = [command for command in cli.commands.values() if isinstance(command, click.Group)]
    commands = [*cli.commands.values(), *(command for group in groups for command in group.commands.values())]
    lines = [line.strip() for command in commands for line in (command.help or "").splitlines()]
    return [line.partition(" && ")[0] for line in lines if line.startswith("yarus ")]


@pytest.mark.parametrize("example", list_help_examples())
def test_help_examples_use_options_that_help_shows(example: str) -> None:
    words = shlex.split(example)[1:]
    command: click.Command = cli
    named = []
    for word in words:
        if isinstance(command, click.Group):
            command = command.commands[word]
            named.append(word)
        elif command.name == "run" and word in FLOWS:
            named.append(word)
    help_text = run_here(*named, "--help", env=ENGLISH).out
    options = {word.partition("=")[0] for word in words if word.startswith("--")}
    assert {option for option in options if f"{option} " not in help_text} == set()


@pytest.mark.parametrize(
    ("env", "purpose"),
    [(ENGLISH, "Examine the judge with correct"), ({"YARUS_LANGUAGE": "ru"}, "Проэкзаменовать судью")],
)
def test_exam_help_shows_its_purpose_and_example(env: dict[str, str], purpose: str) -> None:
    help_text = run_here("judge", "exam", "--help", env=env).out
    assert purpose in help_text
    assert "yarus judge exam --source xquad_ru --exam 60" in help_text
    assert "\n  --exam " in help_text


def test_usage_error_points_to_short_help() -> None:
    assert "Try 'yarus serve --help' for help." in run_here("serve", "--no-such-option", env=ENGLISH).err
    russian = run_here("judge", "label", "--no-such-option", env={"YARUS_LANGUAGE": "ru"})
    assert_refused(russian, 2, ("'yarus judge label --help'",))
    assert "--help-all" not in russian.err
    assert "Show this message and exit; --help-all: in full." in run_here("gate", "--help", env=ENGLISH).out


@pytest.mark.parametrize("words", [("--help",), ("gate", "--help"), ("judge",)])
def test_help_reports_unknown_language(words: tuple[str, ...]) -> None:
    env = {"YARUS_LANGUAGE": "de", "LC_ALL": "C"}
    help_result, refused = run_here(*words, env=env), run_here("runs", env=env)
    assert refused.err == "yarus: YARUS_LANGUAGE: expected 'ru' or 'en' (given: 'de')\n"
    assert help_result.err.startswith(refused.err)
    assert "Usage: yarus" in help_result.out + help_result.err


def test_hidden_commands_and_options_are_completed(home: Path) -> None:
    def complete(words: str, index: int) -> str:
        variables = {"_YARUS_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(index)}
        command = [sys.executable, "-m", "yarus"]
        return subprocess.run(
            command, env=make_environment(home) | variables, cwd=home, capture_output=True, text=True, check=True
        ).stdout

    assert "plain,judge" in complete("yarus j", 1)
    assert "plain,--force" in complete("yarus compare --f", 2)
    assert "plain,--limit" in complete("yarus corpus --points 5 --l", 4)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("view last --port 0", "yarus serve --reports last --port 0"),
        ("label --evaluation last", "yarus judge label --evaluation last"),
        ("label --evaluation last --plan mrr --width 0.1", "yarus judge plan --evaluation last mrr --width 0.1"),
        ("label --plan=avg_faithfulness --width 0.1", "yarus judge plan avg_faithfulness --width 0.1"),
        ("label --plan --metric mrr --width 0.1", "yarus judge plan mrr --width 0.1"),
        ("label --between A B", "yarus judge label --suggest A B"),
        ("prune --all --older-than=90d", "yarus admin prune --include-baselines --older-than=90d"),
        ("label --evaluation=last", "yarus judge label --evaluation=last"),
        ("examine pairs.json --json", "yarus judge agreement pairs.json --json"),
        ("prune --help", "yarus admin prune --help"),
        ("stop", "yarus admin stop"),
        ("tag last --name 'a b'", "yarus admin tag last --name 'a b'"),
    ],
)
def test_old_command_is_refused_with_new_command_line(old: str, new: str) -> None:
    result = run_here(*shlex.split(old), env=ENGLISH)
    assert_refused(result, 2, (f"'yarus {old.split()[0]}' was renamed; run: {new}\n",))


def test_renamed_commands_exist() -> None:
    for old, new in RENAMED_COMMANDS.items():
        assert old.split()[0] not in cli.commands
        command: click.Command = cli
        for word in new.split():
            if isinstance(command, click.Group):
                command = command.commands[word]
            else:
                assert word in [option for parameter in command.params for option in parameter.opts]


def find_options(command_line: str) -> list[str]:
    """Return the options of a command, with the parameters of all tiers for those that run one."""
    if command_line in ("run", "judge exam"):
        return [f"--{name.replace('_', '-')}" for parameters in FLOWS.values() for name in parameters.model_fields]
    command: click.Command = cli
    for word in command_line.split():
        assert isinstance(command, click.Group)
        command = command.commands[word]
    return [option for parameter in command.params for option in parameter.opts]


@pytest.mark.parametrize(
    ("command", "old", "new"),
    [(command, old, new) for command, options in RENAMED_OPTIONS.items() for old, new in options.items()],
)
def test_old_option_is_refused_with_new_name(command: str, old: str, new: str) -> None:
    options = find_options(command)
    assert (old in options, new in options) == (False, True)
    for word in (old, f"{old}=x"):
        result = run_here(*command.split(), "x", word, "y", env=ENGLISH)
        assert_refused(result, 2, (f"'{old}' was renamed; use {new}\n",))


@pytest.mark.parametrize(
    ("pair", "old", "new"),
    [("twins=false", "twins", "merge_duplicates"), ("labels=filled", "labels=filled", "labels=llm")],
)
def test_old_parameter_is_refused_with_new_name(pair: str, old: str, new: str) -> None:
    result = run_here("run", "tier1", "--set", pair, env=ENGLISH)
    assert_refused(result, 2, (f"'{old}' was renamed; use {new}\n",))


def test_serve_refuses_options_that_it_would_ignore() -> None:
    assert_refused(
        run_here("serve", "last", "--source", "x", "--no-schedule", env=ENGLISH),
        2,
        ("--no-schedule, --source cannot be combined with --reports or an EVALUATION",),
    )
    for option in ("--browser", "--no-browser"):
        assert_refused(run_here("serve", option, env=ENGLISH), 2, ("--browser and --no-browser need --reports",))
    assert_refused(
        run_here("serve", "--port", "0", env=ENGLISH),
        2,
        ("port 0 is only possible with --reports; use a port from 1 to 65535",),
    )

"""Check that the first screens in the documentation are what the commands print, in both languages."""

import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, make_environment, run_here
from tests.support.evaluations import evaluate
from tests.support.texts.docs_pages import PAGES, Block, read_blocks
from yarus.db.engine import open_own_database
from yarus.flows.terminal.printing import WIDTH

MARK = "compared with the real output"
MAX_LINES = 40
SCREENS = [block for page in PAGES for block in read_blocks(page) if block.not_run == MARK]
RUNS = [block for block in SCREENS if block.commands[0].split()[1] in ("demo", "run")]
COMMANDS = {"--help", "demo", "init", "run", "cases", "compare", "gate"}
LANGUAGES = ("en", "ru")
VARYING = {
    r"\b(tier\d|real_users|judge|judge_pipeline|ux)-\d{8}-\d{6}-[0-9a-f]{4}": "EVALUATION",
    r"\d{4}-\d\d-\d\d( \d\d:\d\d)?|\d{8}-\d{6}": "TIME",
    r"\S*(?=(results|reports)/)": "",
}
"""Pattern -> replacement of what differs from run to run: ids, times and the home."""


def get_language(block: Block) -> str:
    return "ru" if block.page.endswith(".ru.md") else "en"


def name_screen(block: Block) -> str:
    return f"{get_language(block)} {block.commands[0]}"


def normalise(text: str) -> list[str]:
    """Return the lines, with what varies replaced by its kind."""
    for pattern, kind in VARYING.items():
        text = re.sub(pattern, kind, text)
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def read_screen(block: Block) -> list[str]:
    """Return the lines that a page shows below the command."""
    return normalise(block.text.partition("\n")[2])


@pytest.fixture(scope="module")
def first_evaluation(own_home: Path) -> Iterator[str]:
    """Evaluate the sample with two retrievers in an empty home; return the id of the first evaluation."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in make_environment(own_home).items():
            patch.setenv(name, value)
        first = evaluate("tier1", source="sample")
        evaluate("tier1", source="sample", retriever="fulltext")
        yield str(first["evaluation_id"])
        open_own_database(own_home, None).dispose()


def test_every_first_command_has_screen_in_both_languages() -> None:
    screens = {(get_language(block), block.commands[0].split()[1]) for block in SCREENS}
    assert screens >= {(language, command) for language in LANGUAGES for command in COMMANDS}


@pytest.mark.parametrize("block", SCREENS, ids=name_screen)
def test_first_screen_has_at_most_40_lines(block: Block) -> None:
    assert sum(max(1, math.ceil(len(line) / WIDTH)) for line in read_screen(block)) <= MAX_LINES


@pytest.mark.parametrize("block", [block for block in SCREENS if "demo" not in block.commands[0]], ids=name_screen)
def test_command_prints_screen_of_page(
    block: Block, first_evaluation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run it in this process; `show` of a first evaluation prints what `run` printed."""
    monkeypatch.chdir(tmp_path)
    tables = [
        table.text for page in PAGES if page.name == block.page for table in read_blocks(page) if table.kind == "csv"
    ]
    for name, table in zip(("log.csv", "pages.csv"), tables, strict=False):
        Path(name).write_text(table, encoding="utf-8")
    words = block.commands[0].split()[1:]
    words = ["show", first_evaluation] if words[0] == "run" else words
    result = run_here(*words, env={"YARUS_LANGUAGE": get_language(block)})
    assert result.code == 0, result.err
    assert normalise(result.out) == read_screen(block)


@pytest.mark.slow("prefect: evaluations of a newcomer, each in a home of its own")
@pytest.mark.parametrize("block", RUNS, ids=name_screen)
def test_first_run_prints_screen_of_page(block: Block, tmp_path: Path, prefect_server: dict[str, str]) -> None:
    yarus = CommandLine(tmp_path, lambda: prefect_server)
    result = yarus(*block.commands[0].split()[1:], env={"YARUS_LANGUAGE": get_language(block)})
    assert normalise(result.out) == read_screen(block)

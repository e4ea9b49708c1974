"""Check that the commands, settings and links of every documentation page exist, and that its SQL runs."""

import re
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import DBAPIError

from tests.support.texts.docs_pages import PAGES, ROOT, find_inline_commands, read_blocks, split_command
from yarus.__main__ import cli
from yarus.db.source_rows import read_corpus, read_questions
from yarus.db.sources import open_snapshot
from yarus.db.views import VIEWS
from yarus.tasks.comparison.gate_rules import read_gate_rules
from yarus.tasks.config.connections import open_source
from yarus.tasks.config.flow_parameters import FLOWS
from yarus.tasks.config.settings import Settings

COMMANDS = [
    (page.name, command)
    for page in PAGES
    for command in [*(line for block in read_blocks(page) for line in block.commands), *find_inline_commands(page)]
    if split_command(command)[1][0].endswith("yarus")
]
PLACEHOLDER = re.compile(r"[A-Z]{2,}|…|tierX|\[.*")


def find_problem(command: str) -> str | None:
    """Return what is wrong with a command according to the command line's declaration, or None."""
    variables, arguments = split_command(command)
    if unknown := [name for name in variables if not is_known_setting(name)]:
        return f"no setting {unknown[0]}"
    current: click.Command = cli
    context = click.Context(cli)
    remaining = arguments[1:]
    while isinstance(current, click.Group) and remaining and not remaining[0].startswith("-"):
        name = remaining.pop(0)
        if PLACEHOLDER.fullmatch(name):
            return None
        subcommand = current.get_command(context, name)
        if subcommand is None:
            return f"no command {name}"
        current = subcommand
    options = {option for parameter in current.params for option in (*parameter.opts, *parameter.secondary_opts)}
    options |= {"--help", "--help-all", "-h", "--version"}
    if current.name in ("run", "exam") and remaining:
        tier = "judge" if current.name == "exam" else remaining[0]
        if tier not in FLOWS and not PLACEHOLDER.fullmatch(tier):
            return f"no tier {tier}"
        fields = [FLOWS[tier]] if tier in FLOWS else list(FLOWS.values())
        options |= {f"--{field.replace('_', '-')}" for model in fields for field in model.model_fields}
        options |= {f"--{field}" for model in fields for field in model.model_fields} | {"--parameter"}
    wrong = [word for word in remaining if word.startswith("--") and word.partition("=")[0] not in options]
    return f"no option {wrong[0]} of {current.name}" if wrong else None


def is_known_setting(name: str) -> bool:
    return name.removeprefix("YARUS_").split("__")[0].lower() in Settings.model_fields


@pytest.mark.parametrize(("page", "command"), COMMANDS, ids=lambda value: value[:60])
def test_page_commands_and_options_exist(page: str, command: str) -> None:
    assert find_problem(command) is None, f"{page}: {command}"


def test_command_check_finds_unknown_names() -> None:
    wrong = ("yarus rnu tier1", "yarus run tier11", "yarus run tier1 --kk 3", "yarus show last --jsn")
    wrong += ("YARUS_JUGDE__MODEL=x yarus runs", "yarus dataset freze x")
    assert None not in [find_problem(command) for command in wrong]
    right = ("yarus run TIER --limit 3", "yarus load squad FILE", "yarus run tier1 --set k=20 --no-such > file")
    assert [find_problem(command) for command in right] == [None, None, "no option --no-such of run"]
    assert len(COMMANDS) > 80
    assert {page for page, _ in COMMANDS} >= {"README.md", "README.ru.md", "operators.md", "tiers.md", "sources.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_settings_exist(page: Path) -> None:
    setting_names = set(re.findall(r"\bYARUS_[A-Z]+(?:_[A-Z]+)*(?:__)?", page.read_text(encoding="utf-8")))
    fields = {name.removeprefix("YARUS_").rstrip("_").lower() for name in setting_names}
    assert {name for name in fields if name not in Settings.model_fields} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_links_exist(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_readmes_have_same_content() -> None:
    """Compare commands, settings, pictures and pages in order; only the language differs."""

    def parse_readme(name: str) -> dict[str, list[str]]:
        page = ROOT / name
        content = page.read_text(encoding="utf-8")
        return {
            "headings": [line.split()[0] for line in content.splitlines() if line.startswith("#")],
            "rows": re.findall(r"^\| (`[^|]+`) \|", content, flags=re.MULTILINE),
            "blocks": [command for block in read_blocks(page) for command in block.commands],
            "links": [link for link in re.findall(r"\]\(([^)\s]+)\)", content) if not link.startswith("README")],
        }

    assert parse_readme("README.md") == parse_readme("README.ru.md")


def test_reader_role_reads_and_cannot_write(
    production: Callable[..., str], engine: Engine, at_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = ROOT / "docs" / "operators.md"
    (statements,) = [block.text for block in read_blocks(page) if block.kind == "sql"]
    url = production("docs_operators", statements)
    reader = create_engine(url).url.set(username="yarus_reader", password="change-me")
    monkeypatch.setenv("YARUS_SOURCE_URL", reader.render_as_string(hide_password=False))
    origin = open_source("production")
    with open_snapshot(origin) as connection:
        assert len(read_questions(connection, origin)) == 4
        assert len(read_corpus(connection, origin, vectors=True).ids) == 3
    outside = create_engine(reader)
    for statement in ("DELETE FROM chunk", "SET default_transaction_read_only = off; COMMIT; DELETE FROM chunk"):
        with pytest.raises(DBAPIError, match=r"read-only|permission denied"), outside.connect() as connection:
            connection.exec_driver_sql(statement)
    outside.dispose()
    origin.engine.dispose()
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("DROP DATABASE docs_operators WITH (FORCE)"))
        connection.execute(text("DROP ROLE yarus_reader"))


def test_page_gate_file_is_readable(tmp_path: Path) -> None:
    (rules,) = [block.text for block in read_blocks(ROOT / "docs" / "operators.md") if block.kind == "toml"]
    (tmp_path / "gate.toml").write_text(rules, encoding="utf-8")
    assert len(read_gate_rules(tmp_path / "gate.toml").rules) == 3


def test_views_have_row_and_query() -> None:
    page = (ROOT / "docs" / "sql.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `yarus\.(\w+)` \|", page, flags=re.MULTILINE) == list(VIEWS)
    queries = " ".join(block.text for block in read_blocks(ROOT / "docs" / "sql.md") if block.kind == "sql")
    assert all(f"FROM yarus.{name}" in queries for name in VIEWS)

"""Every page for people: its commands are there, its settings too, its links lead somewhere, its SQL runs."""

import re
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import DBAPIError

from tests.support.texts.docs_pages import PAGES, ROOT, blocks, inline, words
from yarus.__main__ import cli
from yarus.db.source_rows import read_corpus, read_questions
from yarus.db.sources import snapshot
from yarus.db.views import VIEWS
from yarus.tasks.comparison.gate_rules import read_policy
from yarus.tasks.config.connections import source
from yarus.tasks.config.flow_parameters import FLOWS
from yarus.tasks.config.settings import Settings

COMMANDS = [
    (page.name, command)
    for page in PAGES
    for command in [*(one for block in blocks(page) for one in block.commands), *inline(page)]
    if words(command)[1][0].endswith("yarus")
]
PLACEHOLDER = re.compile(r"[A-Z]{2,}|…|tierX|\[.*")


def problem(command: str) -> str | None:
    """What is wrong with a command of ours, by the command line's own declaration."""
    variables, given = words(command)
    if unknown := [name for name in variables if not known_setting(name)]:
        return f"no setting {unknown[0]}"
    found: click.Command = cli
    context = click.Context(cli)
    rest = given[1:]
    while isinstance(found, click.Group) and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        if PLACEHOLDER.fullmatch(name):
            return None
        sub = found.get_command(context, name)
        if sub is None:
            return f"no command {name}"
        found = sub
    options = {option for parameter in found.params for option in (*parameter.opts, *parameter.secondary_opts)}
    options |= {"--help", "-h", "--version"}
    if found.name == "run" and rest:
        tier = rest[0]
        if tier not in FLOWS and not PLACEHOLDER.fullmatch(tier):
            return f"no tier {tier}"
        fields = [FLOWS[tier]] if tier in FLOWS else list(FLOWS.values())
        options |= {f"--{field.replace('_', '-')}" for model in fields for field in model.model_fields}
        options |= {f"--{field}" for model in fields for field in model.model_fields} | {"--parameter"}
    wrong = [word for word in rest if word.startswith("--") and word.partition("=")[0] not in options]
    return f"no option {wrong[0]} of {found.name}" if wrong else None


def known_setting(name: str) -> bool:
    return name.removeprefix("YARUS_").split("__")[0].lower() in Settings.model_fields


@pytest.mark.parametrize(("page", "command"), COMMANDS, ids=lambda value: value[:60])
def test_commands_and_their_options_are_there(page: str, command: str) -> None:
    assert problem(command) is None, f"{page}: {command}"


def test_the_check_finds_what_is_not_there() -> None:
    wrong = ("yarus rnu tier1", "yarus run tier11", "yarus run tier1 --kk 3", "yarus show last --jsn")
    wrong += ("YARUS_JUGDE__MODEL=x yarus runs", "yarus dataset freze x")
    assert None not in [problem(command) for command in wrong]
    right = ("yarus run TIER --limit 3", "yarus load squad FILE", "yarus run tier1 --set k=20 --no-such > file")
    assert [problem(command) for command in right] == [None, None, "no option --no-such of run"]
    assert len(COMMANDS) > 80
    assert {page for page, _ in COMMANDS} >= {"README.md", "README.ru.md", "operators.md", "tiers.md", "sources.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_settings_that_a_page_names_are_there(page: Path) -> None:
    named = set(re.findall(r"\bYARUS_[A-Z]+(?:_[A-Z]+)*(?:__)?", page.read_text(encoding="utf-8")))
    parts = {name.removeprefix("YARUS_").rstrip("_").lower() for name in named}
    assert {name for name in parts if name not in Settings.model_fields} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_both_readmes_say_the_same() -> None:
    """Same commands, settings, pictures and pages, in the same order; only the language differs."""

    def told(name: str) -> dict[str, list[str]]:
        page = ROOT / name
        said = page.read_text(encoding="utf-8")
        return {
            "headings": [line.split()[0] for line in said.splitlines() if line.startswith("#")],
            "rows": re.findall(r"^\| (`[^|]+`) \|", said, flags=re.MULTILINE),
            "blocks": [command for block in blocks(page) for command in block.commands],
            "links": [link for link in re.findall(r"\]\(([^)\s]+)\)", said) if not link.startswith("README")],
        }

    assert told("README.md") == told("README.ru.md")


def test_the_role_of_the_page_reads_and_cannot_write(
    production: Callable[..., str], engine: Engine, at_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = ROOT / "docs" / "operators.md"
    (statements,) = [block.text for block in blocks(page) if block.kind == "sql"]
    url = production("docs_operators", statements)
    reader = create_engine(url).url.set(username="yarus_reader", password="change-me")
    monkeypatch.setenv("YARUS_SOURCE_URL", reader.render_as_string(hide_password=False))
    where = source("production")
    with snapshot(where) as connection:
        assert len(read_questions(connection, where)) == 4
        assert len(read_corpus(connection, where, vectors=True).ids) == 3
    outside = create_engine(reader)
    for what in ("DELETE FROM chunk", "SET default_transaction_read_only = off; COMMIT; DELETE FROM chunk"):
        with pytest.raises(DBAPIError, match=r"read-only|permission denied"), outside.connect() as connection:
            connection.exec_driver_sql(what)
    outside.dispose()
    where.engine.dispose()
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("DROP DATABASE docs_operators WITH (FORCE)"))
        connection.execute(text("DROP ROLE yarus_reader"))


def test_the_gate_file_of_the_page_can_be_read(tmp_path: Path) -> None:
    (rules,) = [block.text for block in blocks(ROOT / "docs" / "operators.md") if block.kind == "toml"]
    (tmp_path / "gate.toml").write_text(rules, encoding="utf-8")
    assert len(read_policy(tmp_path / "gate.toml").rules) == 3


def test_every_view_has_its_row_and_a_query() -> None:
    page = (ROOT / "docs" / "sql.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `yarus\.(\w+)` \|", page, flags=re.MULTILINE) == list(VIEWS)
    queries = " ".join(block.text for block in blocks(ROOT / "docs" / "sql.md") if block.kind == "sql")
    assert all(f"FROM yarus.{name}" in queries for name in VIEWS)

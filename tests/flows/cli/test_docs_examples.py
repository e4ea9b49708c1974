"""Run the commands and queries of the documentation pages over a night of the sample, except those marked `not run`."""

import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import DBAPIError

from tests.support.command_line import in_shell, make_environment
from tests.support.evaluations import evaluate
from tests.support.texts.docs_pages import PAGES, ROOT, Block, read_blocks

Document = dict[str, Any]
pytestmark = pytest.mark.slow("breadth: every command of every page")
RUN_BLOCKS = [
    block
    for page in PAGES
    for block in read_blocks(page)
    if block.kind == "console" and not block.not_run and block.commands
]
EVALUATION_ID = re.compile(r"(tier\d|real_users|judge|judge_pipeline|ux)-\d{8}-\d{6}-[0-9a-f]{4}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the folder in which the commands run, with the gate file of the operators' page."""
    path = tmp_path_factory.mktemp("docs")
    (rules,) = [block.text for block in read_blocks(ROOT / "docs" / "operators.md") if block.kind == "toml"]
    (path / "gate.toml").write_text(rules, encoding="utf-8")
    return path


@pytest.mark.parametrize("block", RUN_BLOCKS, ids=lambda block: f"{block.page} {block.commands[0]}")
def test_page_commands_succeed(
    block: Block, night: dict[str, Document], home: Path, folder: Path, prefect_server: dict[str, str]
) -> None:
    """Run each block; ids in the page stand for the night's evaluation of that tier, `last` for its last one."""
    variables = make_environment(home) | prefect_server
    for command in block.commands:
        line = EVALUATION_ID.sub(lambda match: str(night[match[1]]["evaluation_id"]), command.replace(".venv/bin/", ""))
        line = re.sub(r"(?<=\s)last\b", str(night["tier3"]["evaluation_id"]), line)
        line = re.sub(r"^yarus robustness$", "yarus robustness --limit 60", line)  # twelve evaluations
        ran = in_shell("bash", "-c", line, env=variables, folder=folder)
        assert ran.code == 0, f"{block.page}: {line}\n{ran.out}{ran.err}"
        assert ran.out.strip()


def test_page_queries_return_rows(night: dict[str, Document], engine: Engine, at_home: Path) -> None:
    evaluate("tier1", source="sample")  # one that comes after the accepted one of the night
    statements = [block.text for block in read_blocks(ROOT / "docs" / "sql.md") if block.kind == "sql"]
    grants, queries = statements[0], statements[1:]
    with engine.begin() as connection:
        connection.exec_driver_sql(grants)
    dashboard = create_engine(engine.url.set(username="yarus_dashboard"))
    try:
        for query in queries:
            with dashboard.connect() as connection:
                assert connection.exec_driver_sql(query.replace("%", "%%")).all(), query
        with dashboard.connect() as connection, pytest.raises(DBAPIError, match="permission denied"):
            connection.execute(text("SELECT * FROM yarus.call"))
    finally:
        dashboard.dispose()
        with engine.begin() as connection:
            connection.exec_driver_sql("DROP OWNED BY yarus_dashboard; DROP ROLE yarus_dashboard")


def test_pandas_reads_results_as_one_table(night: dict[str, Document], home: Path) -> None:
    (code,) = [block.text for block in read_blocks(ROOT / "docs" / "sql.md") if block.kind == "python"]
    names: Document = {"results": str(home / "results")}
    exec(code, names)  # noqa: S102 - our own page
    assert len(names["cases"]) >= pq.ParquetFile(night["tier1"]["parquet"]).metadata.num_rows
    assert len(names["worst"]) == 20

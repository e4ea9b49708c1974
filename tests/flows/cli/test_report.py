"""Check `yarus report`: it prints the path of its page, and reports errors."""

import html
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import Engine, delete, update

from tests.support.evaluation_history import make_source_name, write_evaluation_with_cases
from yarus.__main__ import cli
from yarus.db.errors import InputError
from yarus.db.tables import evaluation

pytestmark = pytest.mark.usefixtures("at_home")
COLUMNS = {"hit_rate@1": [0.0, 1.0] * 5, "mrr": [0.5, 1.0] * 5}


@pytest.fixture
def ids(engine: Engine, tmp_path: Path) -> list[str]:
    """Write two nights of tier 1 of one source."""
    source = make_source_name()
    return [
        write_evaluation_with_cases(engine, tmp_path, source, COLUMNS, night=night, statuses={"ok": 10}, coverage=1.0)
        for night in (0, 1)
    ]


def test_report_prints_path_at_home(ids: list[str], home: Path) -> None:
    ran = CliRunner().invoke(cli, ["report", ids[1]], catch_exceptions=False)
    assert ran.exit_code == 0
    path = Path(ran.stdout.strip())
    assert path.parent == home / "reports"
    assert ran.stderr.strip().count("\n") == 0 and ran.stderr.strip().endswith("."), "the answer, in a line"
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert (home / "reports" / "index.html").exists()


def test_report_compares_two_of_one_tier(ids: list[str], tmp_path: Path) -> None:
    out = tmp_path / "new" / "page.html"
    words = ["report", *reversed(ids), "--out", str(out), "--language", "en", "--json"]
    ran = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert json.loads(ran.stdout) == {"report": str(out)}
    page = out.read_text(encoding="utf-8")
    assert f"Compared with {ids[0]}" in page
    assert '<html lang="en"' in page


def test_report_prints_lead_of_its_page(ids: list[str], engine: Engine, tmp_path: Path) -> None:
    """The older evaluation of the tier failed, but a report leads with the newest one."""
    out = tmp_path / "page.html"
    with engine.begin() as connection:
        connection.execute(update(evaluation).where(evaluation.c.id == ids[0]).values(state="failed"))
    words = ["report", *ids, "--out", str(out), "--language", "en"]
    ran = CliRunner().invoke(cli, words, catch_exceptions=False)
    lead = out.read_text(encoding="utf-8").split("<h1>")[1].split("</h1>")[0]
    [english] = re.findall('<span lang="en">(.*?)</span>', lead)
    assert ran.stderr.strip() == html.unescape(english).strip()
    assert "failed" not in ran.stderr


@pytest.mark.parametrize("changed", [{"state": "invalid"}, {"comparability_key": "another"}])
def test_report_does_not_compare_incomparable_metrics(
    ids: list[str], engine: Engine, tmp_path: Path, changed: dict[str, str]
) -> None:
    out = tmp_path / "page.html"
    with engine.begin() as connection:
        connection.execute(update(evaluation).where(evaluation.c.id == ids[1]).values(**changed))
    CliRunner().invoke(cli, ["report", ids[1], "--out", str(out), "--language", "en"], catch_exceptions=False)
    page = out.read_text(encoding="utf-8")
    invalid = "state" in changed
    assert (f"Compared with {ids[0]}" in page, "Invalid, so changes cannot be assessed" in page) == (invalid,) * 2
    assert ("was measured differently" in page) != invalid
    assert 'class="metrics compare"' not in page


def test_report_shows_newest_of_every_tier_by_default(ids: list[str], engine: Engine, tmp_path: Path) -> None:
    source = ids[0].split("-")[1]
    last = write_evaluation_with_cases(engine, tmp_path, source, {"e2e_score": [0.5, 1.0]}, tier="tier3", night=400_000)
    try:
        ran = CliRunner().invoke(cli, ["report"], catch_exceptions=False)
    finally:  # it would stay the newest of all in the journal that all tests share
        with engine.begin() as connection:
            connection.execute(delete(evaluation).where(evaluation.c.id == last))
    page = Path(ran.stdout.strip()).read_text(encoding="utf-8")
    assert f'name="yarus-evaluations" content="{ids[1]} {last}"' in page


def test_report_refuses_unknown_name() -> None:
    with pytest.raises(InputError, match="no evaluation 'nothing'"):
        CliRunner().invoke(cli, ["report", "nothing"], catch_exceptions=False)

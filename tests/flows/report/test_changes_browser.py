"""What a report says of changes, in Chromium: its first screen, one line a question, ticks of trends."""

import re
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, expect
from sqlalchemy import Engine, update

from tests.support.browser import PATIENCE_MS, page_of
from tests.support.evaluation_history import START, source_name, with_cases, write
from yarus.db.tables import evaluation
from yarus.tasks.report.write import report

expect.set_options(timeout=PATIENCE_MS)
N = 120
TRENDS = (("tier1", "hit_rate@1"), ("tier2", "avg_faithfulness"), ("tier3", "avg_e2e_score"))


@pytest.fixture(scope="module")
def fell(engine: Engine, home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A night of tier 1 with another retriever that finds less, beside the accepted one, and one of tier 3 whose
    headline stays while its hit rate falls."""
    folder, source = tmp_path_factory.mktemp("changes"), source_name()
    before, after = np.ones(N), np.where(np.arange(N) < 40, 0.0, 1.0)
    ids = []
    for night, (values, retriever) in enumerate(((before, "dense"), (after, "fulltext"))):
        ranks = {"hit_rate@1": values, "mrr": values, "ndcg@10": values}
        useful = {"hit_rate@1": values, "e2e_score": np.tile([0.0, 1.0], N // 2)}
        for tier, columns in (("tier1", ranks), ("tier3", useful)):
            more = {"resolved": {"retriever": retriever}, "statuses": {"ok": N}, "coverage": 1.0, "n_cases": N}
            key = {"comparability_key": f"{tier} of {source}"}
            ids.append(with_cases(engine, folder, source, columns, tier=tier, night=night, **more, **key))
    with engine.begin() as connection:
        accepted = evaluation.c.id.in_(ids[:2])
        connection.execute(update(evaluation).where(accepted).values(accepted_at=START))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YARUS_HOME", str(home))
        return report(engine, ids[2:], folder / "page.html", "ru")


@pytest.mark.parametrize(
    ("width", "height"),
    [pytest.param(1280, 800, marks=pytest.mark.slow("breadth: another width")), (390, 844)],
)
def test_the_first_screen_says_what_is_weakest_lost_changed_and_next(
    browser: Browser, fell: Path, width: int, height: int
) -> None:
    with page_of(browser, fell.as_uri(), viewport={"width": width, "height": height}) as page:
        lead = page.locator("#overview .lead")
        expect(lead.locator("h1")).to_contain_text("вся система")
        wanted = {
            "settings": "поиск (retriever): dense → fulltext",
            "regressed": "поиск — hit_rate@1 1.000 → 0.667 (−0.333), mrr 1.000 → 0.667 (−0.333), ndcg@10",
            "alone": "вся система — хуже hit_rate@1 −0.333",
            "next": ".",
        }
        for kind, text in wanted.items():
            shown = lead.locator(f".is-{kind} dd")
            expect(shown).to_contain_text(text)
            box = shown.bounding_box()
            assert box and box["y"] + box["height"] <= height, kind
            assert box["x"] + box["width"] <= width, kind
        assert "нет" not in lead.locator(".statements").inner_text().split()
        moved = page.locator("#overview .moved").first
        expect(moved).to_contain_text(re.compile(r"−0\.333.*−0\.\d{3} … −0\.\d{3}", re.DOTALL))


def test_a_question_that_broke_is_one_line_with_its_metrics_before_and_after(browser: Browser, fell: Path) -> None:
    with page_of(browser, f"{fell.as_uri()}#tier1/compare") as page:
        expect(page.locator("#tier1 .lists button").first).to_have_text("сломалось: 40")
        lines = page.locator("#tier1 .changed-cases li")
        expect(lines).to_have_count(40)
        told = "hit_rate@1 1.000 → 0.000, mrr 1.000 → 0.000, ndcg@10 1.000 → 0.000"
        expect(lines.first.locator(".moved-by")).to_have_text(told)
        assert page.locator("#tier1 .statements .is-settings").count() == 1


@pytest.mark.slow("browser: trends of many lengths")
@pytest.mark.parametrize(
    "apart",
    [
        (86_400.0, 20.0, 3_600.0),
        pytest.param((40_000.0, 10 * 86_400.0), marks=pytest.mark.slow("breadth: other distances")),
    ],
)
def test_no_two_ticks_of_a_trend_say_the_same(
    engine: Engine, at_home: Path, browser: Browser, tmp_path: Path, apart: tuple[float, ...]
) -> None:
    """Six evaluations of one day showed that day five times."""
    last: list[str] = []
    for (tier, metric), seconds in zip(TRENDS, apart, strict=False):
        ids = write(engine, source_name(), [0.7, 0.72, 0.71, 0.69, 0.7, 0.73], tier=tier, metric=metric)
        with engine.begin() as connection:
            for number, name in enumerate(ids):
                start = {"started_at": START + timedelta(seconds=seconds * number)}
                connection.execute(update(evaluation).where(evaluation.c.id == name).values(**start))
        last += ids[-1:]
    path = report(engine, last, tmp_path / "page.html", "ru")
    with page_of(browser, f"{path.as_uri()}#trends") as page:
        charts = page.locator("#trends .chart")
        expect(charts).to_have_count(len(apart))
        found = [ticks(chart) for chart in charts.all()]
    assert [labels for labels in found if not 2 <= len(labels) <= 8 or len(set(labels)) < len(labels)] == []


def ticks(chart: Locator) -> list[str]:
    chart.scroll_into_view_if_needed()
    expect(chart.locator(".xtick text").first).to_be_visible()
    return chart.locator(".xtick text").all_text_contents()

"""Changes in a report in Chromium: the first screen, one line per question, and ticks of trends."""

import re
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, expect
from sqlalchemy import Engine, update

from tests.support.browser import PATIENCE_MS, page_of
from tests.support.evaluation_history import START, make_source_name, write_evaluation_with_cases, write_evaluations
from yarus.db.tables import evaluation
from yarus.tasks.report.write import write_report

expect.set_options(timeout=PATIENCE_MS)
N_QUESTIONS = 120
TRENDS = (("tier1", "hit_rate@1"), ("tier2", "avg_faithfulness"), ("tier3", "avg_e2e_score"))


@pytest.fixture(scope="module")
def report_with_losses(engine: Engine, home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a report of tier 1 with a worse retriever than the accepted evaluation, and of tier 3.

    The headline metric of tier 3 is unchanged, but its hit rate is lower.
    """
    folder, source = tmp_path_factory.mktemp("changes"), make_source_name()
    before, after = np.ones(N_QUESTIONS), np.where(np.arange(N_QUESTIONS) < 40, 0.0, 1.0)
    ids = []
    for night, (values, retriever) in enumerate(((before, "dense"), (after, "fulltext"))):
        ranks = {"hit_rate@1": values, "mrr": values, "ndcg@10": values}
        useful = {"hit_rate@1": values, "e2e_score": np.tile([0.0, 1.0], N_QUESTIONS // 2)}
        for tier, columns in (("tier1", ranks), ("tier3", useful)):
            more = {
                "resolved": {"retriever": retriever},
                "statuses": {"ok": N_QUESTIONS},
                "coverage": 1.0,
                "n_cases": N_QUESTIONS,
            }
            key = {"comparability_key": f"{tier} of {source}"}
            ids.append(
                write_evaluation_with_cases(engine, folder, source, columns, tier=tier, night=night, **more, **key)
            )
    with engine.begin() as connection:
        accepted = evaluation.c.id.in_(ids[:2])
        connection.execute(update(evaluation).where(accepted).values(accepted_at=START))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YARUS_HOME", str(home))
        return write_report(engine, ids[2:], folder / "page.html", "ru").path


@pytest.mark.parametrize(
    ("width", "height"),
    [pytest.param(1280, 800, marks=pytest.mark.slow("breadth: another width")), (390, 844)],
)
def test_overview_shows_weakest_tier_losses_and_next_step(
    browser: Browser, report_with_losses: Path, width: int, height: int
) -> None:
    with page_of(browser, report_with_losses.as_uri(), viewport={"width": width, "height": height}) as page:
        lead = page.locator("#overview .lead")
        expect(lead.locator("h1")).to_contain_text("вся система")
        texts_by_kind = {
            "settings": "поиск (retriever): dense → fulltext",
            "regressed": "поиск — hit_rate@1 1.000 → 0.667 (−0.333), mrr 1.000 → 0.667 (−0.333), "
            "ndcg@10 1.000 → 0.667 (−0.333); вся система — hit_rate@1 1.000 → 0.667 (−0.333)",
            "next": ".",
        }
        for kind, text in texts_by_kind.items():
            item = lead.locator(f".is-{kind} dd")
            expect(item).to_contain_text(text)
            box = item.bounding_box()
            assert box and box["y"] + box["height"] <= height, kind
            assert box["x"] + box["width"] <= width, kind
        assert "нет" not in lead.locator(".statements").inner_text().split()
        change_details = page.locator("#overview .moved").first
        expect(change_details).to_contain_text(re.compile(r"−0\.333.*−0\.\d{3} … −0\.\d{3}", re.DOTALL))


def test_broken_question_is_one_line_with_metric_changes(browser: Browser, report_with_losses: Path) -> None:
    with page_of(browser, f"{report_with_losses.as_uri()}#tier1/compare") as page:
        expect(page.locator("#tier1 .lists button").first).to_have_text("сломалось: 40")
        lines = page.locator("#tier1 .changed-cases li")
        expect(lines).to_have_count(40)
        metric_changes = "hit_rate@1 1.000 → 0.000, mrr 1.000 → 0.000, ndcg@10 1.000 → 0.000"
        expect(lines.first.locator(".moved-by")).to_have_text(metric_changes)
        assert page.locator("#tier1 .statements .is-settings").count() == 1


@pytest.mark.slow("browser: trends of many lengths")
@pytest.mark.parametrize(
    "intervals",
    [
        (86_400.0, 20.0, 3_600.0),
        pytest.param((40_000.0, 10 * 86_400.0), marks=pytest.mark.slow("breadth: other distances")),
    ],
)
def test_trend_ticks_are_distinct(
    engine: Engine, at_home: Path, browser: Browser, tmp_path: Path, intervals: tuple[float, ...]
) -> None:
    """Earlier, six evaluations of one day had five equal ticks."""
    newest_ids: list[str] = []
    for (tier, metric), seconds in zip(TRENDS, intervals, strict=False):
        ids = write_evaluations(
            engine, make_source_name(), [0.7, 0.72, 0.71, 0.69, 0.7, 0.73], tier=tier, metric=metric
        )
        with engine.begin() as connection:
            for number, name in enumerate(ids):
                start = {"started_at": START + timedelta(seconds=seconds * number)}
                connection.execute(update(evaluation).where(evaluation.c.id == name).values(**start))
        newest_ids += ids[-1:]
    path = write_report(engine, newest_ids, tmp_path / "page.html", "ru").path
    with page_of(browser, f"{path.as_uri()}#trends") as page:
        charts = page.locator("#trends .chart")
        expect(charts).to_have_count(len(intervals))
        tick_labels = [tick_texts(chart) for chart in charts.all()]
    assert [labels for labels in tick_labels if not 2 <= len(labels) <= 8 or len(set(labels)) < len(labels)] == []


def tick_texts(chart: Locator) -> list[str]:
    chart.scroll_into_view_if_needed()
    expect(chart.locator(".xtick text").first).to_be_visible()
    return chart.locator(".xtick text").all_text_contents()

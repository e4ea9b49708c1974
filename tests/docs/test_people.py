"""The table of how far metrics follow people is what the metrics give on the data today, and what the paper reports."""

import json
from pathlib import Path

import pytest

from benchmarks import people

ROOT = Path(__file__).parents[2]
needs_data = pytest.mark.skipif(not people.DATA.exists(), reason=f"needs {people.DATA}")


@pytest.mark.slow("model: MiniLM embeds 840 texts")
@needs_data
def test_the_table_is_what_the_metrics_give(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "DRAWS", 20)  # the intervals are those that were drawn with all
    stored, now = json.loads(people.RESULTS.read_text(encoding="utf-8")), people.measured()
    assert stored.keys() == now.keys()
    for name, of in now.items():
        for question, made in of.items():
            kept = stored[name][question]
            assert made["n"] == kept["n"], name
            for statistic in people.STATISTICS:
                value, low, high = kept[statistic]
                assert made[statistic][0] == pytest.approx(value, abs=0.002), (name, question, statistic)
                assert low < value < high


@needs_data
def test_it_is_as_was_published() -> None:
    stored = json.loads(people.RESULTS.read_text(encoding="utf-8"))
    for name, overall, correctness, completeness in (
        (people.RAGCHECKER, 0.619, 0.497, 0.607),
        (people.PEOPLE, 0.701, 0.637, 0.719),
    ):
        found = [stored[name][of]["pearson"][0] for of in people.QUESTIONS]
        assert found == pytest.approx([overall, correctness, completeness], abs=0.0005)


def test_the_page_shows_every_metric_once() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    section = page.split("## How far they follow people")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ") and "---" not in line][1:]
    stored = json.loads(people.RESULTS.read_text(encoding="utf-8"))
    assert sorted(line.split(" | ")[0].strip("| `") for line in lines) == sorted(stored)
    values = [float(line.split(" | ")[2].split(" (")[0]) for line in lines]
    assert values == sorted(values, reverse=True) and max(values) == values[0]

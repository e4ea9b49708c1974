"""Check that the table of agreement with people matches today's metrics and the paper."""

import json
from pathlib import Path

import pytest

from benchmarks import people

ROOT = Path(__file__).parents[2]
needs_data = pytest.mark.skipif(not people.DATA.exists(), reason=f"needs {people.DATA}")


@pytest.mark.slow("model: MiniLM embeds 840 texts")
@needs_data
def test_agreement_table_matches_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "DRAWS", 20)  # the stored intervals were drawn with all of them
    stored, current = json.loads(people.RESULTS.read_text(encoding="utf-8")), people.measure_agreement()
    assert stored.keys() == current.keys()
    for name, by_question in current.items():
        for question, agreement in by_question.items():
            stored_agreement = stored[name][question]
            assert agreement["n"] == stored_agreement["n"], name
            for statistic in people.STATISTICS:
                value, low, high = stored_agreement[statistic]
                assert agreement[statistic][0] == pytest.approx(value, abs=0.002), (name, question, statistic)
                assert low < value < high


@needs_data
def test_agreement_table_matches_paper() -> None:
    stored = json.loads(people.RESULTS.read_text(encoding="utf-8"))
    for name, overall, correctness, completeness in (
        (people.RAGCHECKER, 0.619, 0.497, 0.607),
        (people.PEOPLE, 0.701, 0.637, 0.719),
    ):
        correlations = [stored[name][aspect]["pearson"][0] for aspect in people.QUESTIONS]
        assert correlations == pytest.approx([overall, correctness, completeness], abs=0.0005)


def test_page_shows_every_metric_once() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    section = page.split("## How far they follow people")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ") and "---" not in line][1:]
    stored = json.loads(people.RESULTS.read_text(encoding="utf-8"))
    assert sorted(line.split(" | ")[0].strip("| `") for line in lines) == sorted(stored)
    values = [float(line.split(" | ")[2].split(" (")[0]) for line in lines]
    assert values == sorted(values, reverse=True) and max(values) == values[0]

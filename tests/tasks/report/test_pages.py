"""What a report is made of: data that no text breaks out of, numbers, figures, and what it says of what is missing."""

import base64
import gzip
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine, delete, update

from tests.support.evaluation_history import source_name, with_cases, write
from yarus.db import journal, tables
from yarus.db.errors import InputError
from yarus.metrics.table import METRICS
from yarus.tasks.cases.table import table
from yarus.tasks.config.texts import texts
from yarus.tasks.evaluation.numbers import shown
from yarus.tasks.report import figures
from yarus.tasks.report.bars import bar, difference_bar
from yarus.tasks.report.case_list import column, pack
from yarus.tasks.report.embedded_data import as_script, packed
from yarus.tasks.report.entries import described, entries
from yarus.tasks.report.metric_hints import PARTS, russian
from yarus.tasks.report.render import SCRIPTS, TEMPLATES, source, spoken
from yarus.tasks.report.write import index, report


def unpacked(text: str) -> Any:
    return json.loads(gzip.decompress(base64.b64decode(text)))


@given(st.text())
def test_no_text_ends_the_script_that_it_stands_in(text: str) -> None:
    written = as_script({"text": text + "</script><!--\u2028"})
    assert not set("<>&\u2028\u2029") & set(written)
    assert json.loads(written)["text"] == text + "</script><!--\u2028"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_packed_data_comes_out_as_it_went_in(text: str) -> None:
    assert unpacked(packed([text])) == [text]


def test_half_a_surrogate_does_not_stop_a_report() -> None:
    assert unpacked(packed(["\ud800"])) == ["?"]


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("mrr", 0.71649, "0.716"),
        ("silhouette_score", -0.0189, "−0.019"),
        ("avg_bleu", 9.96, "10.0"),
        ("total_pairs", 12345.0, "12\u202f345"),
        ("latency_ms_p50", 0.84, "0.8\u202fms"),
        ("latency_ms_p50", 1234.5, "1\u202f234\u202fms"),
        ("a rubric of their own", 0.5, "0.500"),
        ("mrr", None, "—"),
    ],
)
def test_numbers_are_rounded_for_reading(name: str, value: float | None, text: str) -> None:
    assert shown(name, value) == text


def test_a_difference_has_its_sign() -> None:
    assert shown("mrr", 0.05, sign=True) == "+0.050"
    assert shown("mrr", -0.05, sign=True) == "−0.050"


def test_a_bar_stands_on_the_range_of_its_metric() -> None:
    # The silhouette reaches from -1 to 1: 0 is the middle, 0.5 three quarters.
    found = bar("silhouette_score", {"value": 0.0, "ci_low": -0.5, "ci_high": 0.5})
    assert found is not None
    assert (found["point"], found["low"], found["width"], found["zero"]) == (50, 25, 50, 50)
    assert [zone["grade"] for zone in found["zones"]] == ["absent", "weak", "reasonable", "strong"]
    assert sum(zone["width"] for zone in found["zones"]) == pytest.approx(100)
    places = [tick["at"] for tick in found["ticks"]]
    assert all(later - earlier >= 13 for earlier, later in pairwise(places))
    assert bar("avg_wer", {"value": 0.5, "ci_low": None, "ci_high": None}) is None, "its range has no end"
    assert bar("mrr", {"value": None, "ci_low": None, "ci_high": None}) is None


def test_a_difference_bar_has_nothing_in_its_middle() -> None:
    found = difference_bar({"difference": 0.1, "ci_low": 0.0, "ci_high": 0.2, "smallest_detectable": None})
    assert found == {"point": 73.0, "low": 50.0, "width": 46.0}
    flat = {"difference": 0.0, "ci_low": 0.0, "ci_high": 0.0, "smallest_detectable": None}
    assert difference_bar(flat) == {"point": 50.0, "low": 50.0, "width": 0.0}


@given(st.lists(st.sampled_from(["a", "b", "", None]), min_size=1, max_size=30))
def test_texts_that_repeat_are_kept_once_and_none_is_lost(texts: list[str | None]) -> None:
    kept = column(pa.chunked_array([pa.array(texts, pa.string())]))
    if isinstance(kept, dict):
        kept = [None if code is None else kept["texts"][code] for code in kept["codes"]]
    assert kept == texts


def test_cases_are_packed_with_what_was_not_measured_as_null() -> None:
    cases = table(case_id=["1", "2"], status=["ok", "ok"], question=["?", "!"], mrr=[0.123456789, float("nan")])
    found = pack(cases)
    assert unpacked(found["rows"])["mrr"] == [0.12346, None]
    assert found["numbers"] == ["mrr"]
    assert found["n"] == 2


def test_ranks_count_the_first_right_result_of_labelled_questions() -> None:
    cases = table(
        case_id=list("abcde"),
        relevant=[["1"], ["2", "3"], ["9"], [], ["1"]],
        retrieved=[["1", "2"], ["5", "3"], ["1", "2"], ["1", "2"], None],
    )
    drawn = figures.ranks(cases)
    assert drawn is not None
    trace = drawn["data"][0]
    assert dict(zip(trace["x"], trace["y"], strict=True)) == {"1": 1, "2": 1, "@w:not found": 1}


def test_a_distribution_holds_every_measured_case() -> None:
    cases = table(case_id=list("abcd"), mrr=[0.0, 0.5, 1.0, None])
    (found,) = figures.distributions("tier1", cases)
    assert found["metric"] == "mrr"
    assert sum(found["figure"]["data"][0]["y"]) == 3


def test_a_trend_is_broken_where_nights_do_not_compare() -> None:
    night = {
        "ci_low": 0.4,
        "ci_high": 0.6,
        "name": None,
        "sut_label": None,
        "evaluation_id": "x",
        "band_low": None,
        "band_high": None,
    }
    nights = [
        night | {"started_at": f"2026-01-0{day}", "value": 0.5, "break": day == 3, "out": False} for day in (1, 2, 3, 4)
    ]
    drawn = figures.trend({"nights": nights, "accepted": {"evaluation_id": "x", "value": 0.55}})
    lines = [trace for trace in drawn["data"] if "markers" in trace["mode"]]
    assert [len(line["x"]) for line in lines] == [2, 2]
    assert [shape["x0"] for shape in drawn["layout"]["shapes"]] == ["2026-01-03"]
    assert [trace["y"] for trace in drawn["data"] if trace["line"].get("dash") == "dash"] == [[0.55, 0.55]]


@pytest.mark.parametrize("part", list(PARTS))
def test_every_metric_has_its_hints_in_russian(part: str) -> None:
    english = [name for name, metric in METRICS.items() if russian(part, name) == getattr(metric, part)]
    assert english == [], "add them to tasks/config/texts/ru.toml"


def test_every_word_of_the_pages_is_there() -> None:
    templates = "".join(path.read_text(encoding="utf-8") for path in TEMPLATES.glob("*.html"))
    asked = set(re.findall(r"(?:said|named)\(\"([^\"~]+)\"[,)]", templates))
    assert asked
    assert asked <= texts("report.page", "ru").keys()
    scripts = "".join(str(source(name)) for name in SCRIPTS)
    asked = set(re.findall(r"word\(\"([^\"]+)\"[,)]", scripts))
    assert asked
    assert asked <= spoken("ru").keys() == spoken("en").keys()


COLUMNS = {"hit_rate@1": [0.0, 1.0] * 10, "mrr": [0.2, 1.0] * 10}


@pytest.fixture
def evaluated(engine: Engine, at_home: Path, tmp_path: Path) -> str:
    """A small evaluation of tier 1 of a source of its own."""
    return with_cases(engine, tmp_path, source_name(), COLUMNS, statuses={"ok": 20}, coverage=1.0)


@pytest.mark.parametrize("damage", ["deleted", "cut", "text"])
def test_a_damaged_file_is_said_and_the_numbers_are_shown(
    engine: Engine, evaluated: str, tmp_path: Path, damage: str
) -> None:
    file = Path(journal.find(engine, evaluated)["parquet"])
    content = file.read_bytes()
    file.unlink() if damage == "deleted" else file.write_bytes(content[:-200] if damage == "cut" else b"no Parquet" * 9)
    page = report(engine, [evaluated], tmp_path / "page.html", "en").read_text(encoding="utf-8")
    assert "The file with the cases cannot be read" in page
    assert str(file) in page
    assert 'data-pack="rows-tier1"' not in page
    assert "0.500" in page


@pytest.mark.parametrize("state", ["failed", "cancelled", "invalid", "completed"])
def test_an_evaluation_without_numbers_is_shown_as_what_it_is(
    engine: Engine, at_home: Path, tmp_path: Path, state: str
) -> None:
    (name,) = write(engine, source_name(), [None], state=state, error="<b>why</b>")
    page = report(engine, [name], tmp_path / "page.html", "en").read_text(encoding="utf-8")
    assert "&lt;b&gt;why&lt;/b&gt;" in page
    assert "<b>why</b>" not in page
    assert ("Not measured, because the run failed" if state == "failed" else "No tier could be graded") in page


def test_all_failed_cases_make_a_report(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    columns = {"mrr": [None] * 3, "status": ["sut_error"] * 3, "reason": ["no answer"] * 3}
    name = with_cases(
        engine, tmp_path, source_name(), columns, state="invalid", statuses={"sut_error": 3}, coverage=0.0
    )
    page = report(engine, [name], tmp_path / "page.html", "en").read_text(encoding="utf-8")
    assert "error of the system" in page
    assert "no answer" in page


def test_what_does_not_compare_is_put_side_by_side_and_said(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    source_of_both = source_name()
    keys = [{"comparability_key": key, "comparability": {"cases": {"sha256": key}}} for key in ("one", "two")]
    ids = [
        with_cases(engine, tmp_path, source_of_both, COLUMNS, night=night, statuses={"ok": 20}, coverage=1.0, **key)
        for night, key in enumerate(keys)
    ]
    page = report(engine, ids, tmp_path / "page.html", "en").read_text(encoding="utf-8")
    assert "Measured otherwise, the numbers merely stand side by side" in page
    assert "cases.sha256" in page


def test_an_anchor_stands_beside_the_night_and_not_in_its_place(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    source_of_both = source_name()
    night = with_cases(engine, tmp_path, source_of_both, COLUMNS, statuses={"ok": 20}, coverage=1.0)
    low = {"hit_rate@1": [0.0] * 20, "mrr": [0.1] * 20}
    marked = {"statuses": {"ok": 20}, "coverage": 1.0, "resolved": {"anchor": night, "answers_of": night}}
    anchor = with_cases(engine, tmp_path, source_of_both, low, night=1, **marked)
    page = report(engine, [anchor, night], tmp_path / "page.html", "en").read_text(encoding="utf-8")
    assert f'content="{night} {anchor}"' in page
    assert "right passage first 0.500" in page
    assert "Compared with" not in page


def test_a_name_that_nothing_bears_is_refused(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no evaluation 'tier9-nothing'"):
        report(engine, ["tier9-nothing"], tmp_path / "page.html")


def test_a_place_that_cannot_be_written_is_refused(engine: Engine, evaluated: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    for target in (tmp_path, tmp_path / "file" / "page.html"):
        with pytest.raises(InputError, match="cannot be written"):
            report(engine, [evaluated], target)
    assert not list(tmp_path.glob(".*.part"))


@pytest.fixture
def newest(engine: Engine, at_home: Path, tmp_path: Path) -> Iterator[str]:
    """Newer than all that other tests leave: there may be more of these than the index lists."""
    name = with_cases(engine, tmp_path, source_name(), COLUMNS, night=40_000)
    yield name
    with engine.begin() as connection:
        connection.execute(delete(tables.evaluation).where(tables.evaluation.c.id == name))


@pytest.mark.slow("breadth: several reports")
def test_the_index_names_every_evaluation_and_its_newest_report(engine: Engine, newest: str) -> None:
    page = report(engine, [newest], None, "en")
    other = journal.find(engine, newest)["source"]
    row = next(line for line in all_pages(page.parent).splitlines() if "<tr><td" in line and newest in line)
    assert f'href="{page.name}#tier1"' in row
    assert other in row
    page.unlink()
    assert page.name not in all_pages(index(engine, language="en").parent)


def all_pages(folder: Path) -> str:
    """The whole index, of which a page has fifty evaluations."""
    return "".join(page.read_text(encoding="utf-8") for page in sorted(folder.glob("index*.html")))


def test_the_foot_shows_settings_and_hashes(engine: Engine, evaluated: str, tmp_path: Path) -> None:
    values = {"settings": {"sut": "http://bot.example/?key=***"}, "git_commit": "c0ffee", "case_set_hash": "5eed"}
    with engine.begin() as connection:
        connection.execute(update(tables.evaluation).where(tables.evaluation.c.id == evaluated).values(**values))
    page = report(engine, [evaluated], tmp_path / "page.html", "en").read_text(encoding="utf-8")
    for part in ("key=***", "c0ffee", "5eed", "key of"):
        assert part in page


def test_a_report_asks_nothing_of_the_network(engine: Engine, evaluated: str, tmp_path: Path) -> None:
    page = report(engine, [evaluated], tmp_path / "page.html", "en").read_text(encoding="utf-8")
    assert "default-src 'none'" in page
    assert re.findall(r"(?:src|href)=\"?(?:https?:)?//", page) == []


def test_of_rejected_answers_more_is_not_coloured_as_better(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    """Whoever found what users rejected has found nothing good."""
    [name] = write(engine, source_name(), [0.9], tier="real_users", stratum="confirmed")
    [other] = write(engine, source_name(), [0.9], tier="real_users", stratum="contradicted")
    with engine.begin() as connection:
        of = tables.evaluation_metric
        connection.execute(update(of).where(of.c.evaluation_id == other).values(evaluation_id=name))
    [entry] = entries(engine, [name])
    bars = {one["stratum"]: one["values"][0]["bar"] for one in described(entry)["strata"]}
    assert [zone["grade"] for zone in bars["confirmed"]["zones"]] == ["attention", "good", "excellent"]
    assert {zone["grade"] for zone in bars["contradicted"]["zones"]} == {""}

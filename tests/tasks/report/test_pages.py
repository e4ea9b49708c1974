"""Parts of a report: safe data, numbers, figures, and missing parts."""

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

from tests.support.evaluation_history import make_source_name, write_evaluation_with_cases, write_evaluations
from yarus.db import journal, tables
from yarus.db.errors import InputError
from yarus.metrics.table import METRICS
from yarus.tasks.cases.table import make_cases
from yarus.tasks.config.texts import texts
from yarus.tasks.evaluation.number_format import format_metric
from yarus.tasks.report import figures
from yarus.tasks.report.bars import difference_bar, value_bar
from yarus.tasks.report.case_list import encode_column, pack_cases
from yarus.tasks.report.embedded_data import pack_json, to_script_json
from yarus.tasks.report.entries import entry_view, load_entries
from yarus.tasks.report.metric_hints import HINT_PARTS, russian_hint
from yarus.tasks.report.render import SCRIPTS, TEMPLATES, page_text, read_template_file, script_texts, translate
from yarus.tasks.report.write import write_index, write_report


def unpack(text: str) -> Any:
    return json.loads(gzip.decompress(base64.b64decode(text)))


@given(st.text())
def test_script_json_cannot_end_its_element(text: str) -> None:
    script_json = to_script_json({"text": text + "</script><!--\u2028"})
    assert not set("<>&\u2028\u2029") & set(script_json)
    assert json.loads(script_json)["text"] == text + "</script><!--\u2028"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_packed_json_round_trip(text: str) -> None:
    assert unpack(pack_json([text])) == [text]


def test_pack_json_replaces_lone_surrogates() -> None:
    assert unpack(pack_json(["\ud800"])) == ["?"]


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
def test_shown_rounds_numbers(name: str, value: float | None, text: str) -> None:
    assert format_metric(name, value) == text


def test_shown_adds_sign_to_differences() -> None:
    assert format_metric("mrr", 0.05, sign=True) == "+0.050"
    assert format_metric("mrr", -0.05, sign=True) == "−0.050"


def test_value_bar_uses_range_of_metric() -> None:
    # The range of the silhouette is -1 to 1: 0 is at the middle, 0.5 at three quarters.
    bar = value_bar("silhouette_score", {"value": 0.0, "ci_low": -0.5, "ci_high": 0.5})
    assert bar is not None
    assert (bar["point"], bar["low"], bar["width"], bar["zero"]) == (50, 25, 50, 50)
    assert [zone["grade"] for zone in bar["zones"]] == ["absent", "weak", "reasonable", "strong"]
    assert sum(zone["width"] for zone in bar["zones"]) == pytest.approx(100)
    positions = [tick["at"] for tick in bar["ticks"]]
    assert all(later - earlier >= 13 for earlier, later in pairwise(positions))
    assert value_bar("avg_wer", {"value": 0.5, "ci_low": None, "ci_high": None}) is None, "its range has no end"
    assert value_bar("mrr", {"value": None, "ci_low": None, "ci_high": None}) is None


def test_difference_bar_is_centred_at_zero() -> None:
    positions = difference_bar({"difference": 0.1, "ci_low": 0.0, "ci_high": 0.2, "min_detectable_effect": None})
    assert positions == {"point": 73.0, "low": 50.0, "width": 46.0}
    zero_difference = {"difference": 0.0, "ci_low": 0.0, "ci_high": 0.0, "min_detectable_effect": None}
    assert difference_bar(zero_difference) == {"point": 50.0, "low": 50.0, "width": 0.0}


@given(st.lists(st.sampled_from(["a", "b", "", None]), min_size=1, max_size=30))
def test_encode_column_keeps_repeated_texts_once(texts: list[str | None]) -> None:
    encoded = encode_column(pa.chunked_array([pa.array(texts, pa.string())]))
    if isinstance(encoded, dict):
        encoded = [None if code is None else encoded["texts"][code] for code in encoded["codes"]]
    assert encoded == texts


def test_pack_cases_encodes_missing_values_as_null() -> None:
    cases = make_cases(case_id=["1", "2"], status=["ok", "ok"], question=["?", "!"], mrr=[0.123456789, float("nan")])
    packed = pack_cases(cases)
    assert unpack(packed["rows"])["mrr"] == [0.12346, None]
    assert packed["numbers"] == ["mrr"]
    assert packed["n"] == 2


def test_rank_figure_counts_first_relevant_results() -> None:
    cases = make_cases(
        case_id=list("abcde"),
        relevant=[["1"], ["2", "3"], ["9"], [], ["1"]],
        retrieved=[["1", "2"], ["5", "3"], ["1", "2"], ["1", "2"], None],
    )
    figure = figures.rank_figure(cases)
    assert figure is not None
    trace = figure["data"][0]
    assert dict(zip(trace["x"], trace["y"], strict=True)) == {"1": 1, "2": 1, "@w:not found": 1}


def test_metric_histograms_count_measured_cases() -> None:
    cases = make_cases(case_id=list("abcd"), mrr=[0.0, 0.5, 1.0, None])
    (entry,) = figures.metric_histograms("tier1", cases)
    assert entry["metric"] == "mrr"
    assert sum(entry["figure"]["data"][0]["y"]) == 3


def test_trend_figure_breaks_between_incomparable_evaluations() -> None:
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
        night | {"started_at": f"2026-01-0{day}", "value": 0.5, "is_break": day == 3, "is_out_of_band": False}
        for day in (1, 2, 3, 4)
    ]
    figure = figures.trend_figure({"nights": nights, "accepted": {"evaluation_id": "x", "value": 0.55}})
    lines = [trace for trace in figure["data"] if "markers" in trace["mode"]]
    assert [len(line["x"]) for line in lines] == [2, 2]
    assert [shape["x0"] for shape in figure["layout"]["shapes"]] == ["2026-01-03"]
    assert [trace["y"] for trace in figure["data"] if trace["line"].get("dash") == "dash"] == [[0.55, 0.55]]


@pytest.mark.parametrize("part", list(HINT_PARTS))
def test_metrics_have_russian_hints(part: str) -> None:
    english = [name for name, metric in METRICS.items() if russian_hint(part, name) == getattr(metric, part)]
    assert english == [], "add them to tasks/config/texts/ru.toml"


def test_texts_of_pages_exist() -> None:
    templates = "".join(path.read_text(encoding="utf-8") for path in TEMPLATES.glob("*.html"))
    used_keys = set(re.findall(r"(?:said|named)\(\"([^\"~]+)\"[,)]", templates))
    assert used_keys
    assert used_keys <= texts("report.page", "ru").keys()
    scripts = "".join(str(read_template_file(name)) for name in SCRIPTS)
    used_keys = set(re.findall(r"word\(\"([^\"]+)\"[,)]", scripts))
    assert used_keys
    assert used_keys <= script_texts("ru").keys() == script_texts("en").keys()


COLUMNS = {"hit_rate@1": [0.0, 1.0] * 10, "mrr": [0.2, 1.0] * 10}


@pytest.fixture
def evaluated(engine: Engine, at_home: Path, tmp_path: Path) -> str:
    """Return a small evaluation of tier 1 over its own source."""
    return write_evaluation_with_cases(engine, tmp_path, make_source_name(), COLUMNS, statuses={"ok": 20}, coverage=1.0)


@pytest.mark.parametrize("damage", ["deleted", "cut", "text"])
def test_report_shows_numbers_when_case_file_is_damaged(
    engine: Engine, evaluated: str, tmp_path: Path, damage: str
) -> None:
    file = Path(journal.find_evaluation(engine, evaluated)["parquet"])
    content = file.read_bytes()
    file.unlink() if damage == "deleted" else file.write_bytes(content[:-200] if damage == "cut" else b"no Parquet" * 9)
    page = write_report(engine, [evaluated], tmp_path / "page.html", "en").path.read_text(encoding="utf-8")
    assert "The file with the cases cannot be read" in page
    assert str(file) in page
    assert 'data-pack="rows-tier1"' not in page
    assert "0.500" in page


@pytest.mark.parametrize("state", ["failed", "cancelled", "invalid", "completed"])
def test_report_shows_state_of_evaluation_without_numbers(
    engine: Engine, at_home: Path, tmp_path: Path, state: str
) -> None:
    (name,) = write_evaluations(engine, make_source_name(), [None], state=state, error="<b>why</b>")
    page = write_report(engine, [name], tmp_path / "page.html", "en").path.read_text(encoding="utf-8")
    assert "&lt;b&gt;why&lt;/b&gt;" in page
    assert "<b>why</b>" not in page
    assert (
        "Not measured, because the run failed" if state == "failed" else "No tier that users notice could be graded"
    ) in page


def test_report_shows_evaluation_with_failed_cases_only(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    columns = {"mrr": [None] * 3, "status": ["sut_error"] * 3, "reason": ["no answer"] * 3}
    name = write_evaluation_with_cases(
        engine, tmp_path, make_source_name(), columns, state="invalid", statuses={"sut_error": 3}, coverage=0.0
    )
    page = write_report(engine, [name], tmp_path / "page.html", "en").path.read_text(encoding="utf-8")
    assert "error of the system" in page
    assert "no answer" in page


def test_report_explains_incomparable_evaluations(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    source_of_both = make_source_name()
    keys = [{"comparability_key": key, "comparability": {"cases": {"sha256": key}}} for key in ("one", "two")]
    ids = [
        write_evaluation_with_cases(
            engine, tmp_path, source_of_both, COLUMNS, night=night, statuses={"ok": 20}, coverage=1.0, **key
        )
        for night, key in enumerate(keys)
    ]
    page = write_report(engine, ids, tmp_path / "page.html", "en").path.read_text(encoding="utf-8")
    assert "Measured differently; the values are not comparable" in page
    assert "cases.sha256" in page


@pytest.mark.parametrize("keys", [("one", "one"), ("one", "two")])
def test_report_lists_changed_questions_if_comparable(
    engine: Engine, at_home: Path, tmp_path: Path, keys: tuple[str, str]
) -> None:
    source_of_both = make_source_name()
    columns = [COLUMNS, {"hit_rate@1": [0.0] * 20, "mrr": [0.2] * 20}]
    ids = [
        write_evaluation_with_cases(
            *(engine, tmp_path, source_of_both, columns[night]),
            night=night,
            statuses={"ok": 20},
            coverage=1.0,
            comparability_key=key,
            comparability={"judge": key},
        )
        for night, key in enumerate(keys)
    ]
    page = write_report(engine, ids, tmp_path / "page.html", "en").path.read_text(encoding="utf-8")
    assert f"Compared with {ids[0]}" in page
    for part in ('data-pack="pair-tier1"', texts("explanation", "en")["title"]):
        assert (part in page) == (keys[0] == keys[1])


def test_report_shows_anchor_next_to_evaluation(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    source_of_both = make_source_name()
    night = write_evaluation_with_cases(engine, tmp_path, source_of_both, COLUMNS, statuses={"ok": 20}, coverage=1.0)
    low_columns = {"hit_rate@1": [0.0] * 20, "mrr": [0.1] * 20}
    anchor_values = {"statuses": {"ok": 20}, "coverage": 1.0, "resolved": {"anchor": night, "answers_of": night}}
    anchor = write_evaluation_with_cases(engine, tmp_path, source_of_both, low_columns, night=1, **anchor_values)
    page = write_report(engine, [anchor, night], tmp_path / "page.html", "en").path.read_text(encoding="utf-8")
    assert f'content="{night} {anchor}"' in page
    assert "hit_rate@1 0.500" in page
    assert "Compared with" not in page


def test_report_advises_on_embeddings_last(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    source = make_source_name()
    ids = [name for tier in ("tier0", "judge") for name in write_evaluations(engine, source, [None], tier=tier)]
    page = write_report(engine, ids, tmp_path / "page.html", "en").path.read_text(encoding="utf-8")
    advised = page.split('<ol class="next">')[1].split("</ol>")[0]
    judge, embeddings = (advised.index(str(translate(f"tiers.{tier}", "short"))) for tier in ("judge", "tier0"))
    assert judge < embeddings


def test_report_rejects_unknown_evaluation(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no evaluation 'tier9-nothing'"):
        write_report(engine, ["tier9-nothing"], tmp_path / "page.html")


def test_report_rejects_unwritable_target(engine: Engine, evaluated: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    for target in (tmp_path, tmp_path / "file" / "page.html"):
        with pytest.raises(InputError, match="cannot be written"):
            write_report(engine, [evaluated], target)
    assert not list(tmp_path.glob(".*.part"))


@pytest.fixture
def newest_evaluation(engine: Engine, at_home: Path, tmp_path: Path) -> Iterator[str]:
    """Return an evaluation newer than those of other tests, of which there may be more than the index lists."""
    name = write_evaluation_with_cases(engine, tmp_path, make_source_name(), COLUMNS, night=40_000)
    yield name
    with engine.begin() as connection:
        connection.execute(delete(tables.evaluation).where(tables.evaluation.c.id == name))


@pytest.mark.slow("breadth: several reports")
def test_index_links_newest_report_of_evaluation(engine: Engine, newest_evaluation: str) -> None:
    page = write_report(engine, [newest_evaluation], None, "en").path
    source = journal.find_evaluation(engine, newest_evaluation)["source"]
    row = next(line for line in read_index(page.parent).splitlines() if "<tr><td" in line and newest_evaluation in line)
    assert f'href="{page.name}#tier1"' in row
    assert source in row
    page.unlink()
    assert page.name not in read_index(write_index(engine, language="en").parent)


def read_index(folder: Path) -> str:
    """Return the text of all index pages, with fifty evaluations each."""
    return "".join(page.read_text(encoding="utf-8") for page in sorted(folder.glob("index*.html")))


def test_report_shows_settings_and_hashes(engine: Engine, evaluated: str, tmp_path: Path) -> None:
    values = {"settings": {"sut": "http://bot.example/?key=***"}, "git_commit": "c0ffee", "case_set_hash": "5eed"}
    with engine.begin() as connection:
        connection.execute(update(tables.evaluation).where(tables.evaluation.c.id == evaluated).values(**values))
    page = write_report(engine, [evaluated], tmp_path / "page.html", "en").path.read_text(encoding="utf-8")
    for part in ("key=***", "c0ffee", "5eed", "key of"):
        assert part in page


def test_report_needs_no_network(engine: Engine, evaluated: str, tmp_path: Path) -> None:
    page = write_report(engine, [evaluated], tmp_path / "page.html", "en").path.read_text(encoding="utf-8")
    assert "default-src 'none'" in page
    assert re.findall(r"(?:src|href)=\"?(?:https?:)?//", page) == []


def test_bars_of_rejected_answers_have_no_grades(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    """A system that finds the pages of rejected answers is not good."""
    [name] = write_evaluations(engine, make_source_name(), [0.9], tier="real_users", stratum="confirmed")
    [other_evaluation] = write_evaluations(engine, make_source_name(), [0.9], tier="real_users", stratum="contradicted")
    with engine.begin() as connection:
        table = tables.evaluation_metric
        connection.execute(update(table).where(table.c.evaluation_id == other_evaluation).values(evaluation_id=name))
    [entry] = load_entries(engine, [name])
    bars = {view["stratum"]: view["values"][0]["bar"] for view in entry_view(entry)["strata"]}
    assert [zone["grade"] for zone in bars["confirmed"]["zones"]] == ["attention", "good", "excellent"]
    assert {zone["grade"] for zone in bars["contradicted"]["zones"]} == {""}


def test_head_of_turns_names_metrics_of_rows(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    columns = {"answer": ["Да."] * 4, "dialog": ["d", "d"] * 2, "turn": [1, 2] * 2}
    columns |= {"e2e_score": [0.5] * 4, "hit_rate@1": [0.0, 1.0] * 2}
    name = write_evaluation_with_cases(engine, tmp_path, make_source_name(), columns, tier="tier3")
    page = write_report(engine, [name], tmp_path / "page.html", "en").path.read_text(encoding="utf-8")
    table = page.split(str(page_text("turns")))[1].split("</table>")[0]
    head, *rows = table.split("<tr>")[1:]
    assert "<code>avg_e2e_score</code>" in head and "<code>hit_rate@1</code>" in head
    assert len(rows) >= 2
    assert {len(re.findall("<t[hd]", row)) for row in rows} == {head.count("<th")}


@pytest.mark.parametrize(("judge", "stages"), [("passed", ["generation"]), ("stand-in", [])])
def test_report_hides_failures_that_stand_in_judged(
    engine: Engine, at_home: Path, tmp_path: Path, judge: str, stages: list[str]
) -> None:
    columns = {"e2e_score": [0.5] * 4}
    name = write_evaluation_with_cases(engine, tmp_path, make_source_name(), columns, tier="tier3")
    [entry] = load_entries(engine, [name])
    summary: Any = entry.summary
    summary["failures"] = {"counts": {"generation": 4}}
    summary["metrics"]["avg_e2e_score"]["judge"] = judge
    assert [view["stage"] for view in entry_view(entry)["stages"]] == stages

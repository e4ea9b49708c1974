"""Check that recorded answers are evaluated unchanged: traces and tables agree, and no model answers again."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.command_line import Document
from tests.support.evaluations import (
    answer_steadily,
    evaluate,
    get_value,
    load,
    make_role_variables,
    read_rows,
    set_variables,
)
from tests.support.json_schemas import check_json
from tests.support.llm_server import FakeLLMServer, make_completion
from tests.support.traces.files import (
    make_export_request,
    make_langfuse_trace,
    make_otlp_spans,
    make_span_id,
    make_turn,
    row,
    write_json_lines,
)
from yarus.__main__ import cli
from yarus.db.errors import InputError

REFERENCE = "Правило {0} велит сдать книгу {0} до мая."
NOT_COMPARED = {"case_id", "question_id", "judge_raw"}


@pytest.fixture
def judge(judge: FakeLLMServer, monkeypatch: pytest.MonkeyPatch) -> FakeLLMServer:
    """Serve the gate from the judge's server, too."""
    set_variables(monkeypatch, make_role_variables(judge.url, "gate"))
    return judge


def cli_json(*words: str) -> Document:
    result = CliRunner().invoke(cli, [*words, "--json"], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    document: Document = json.loads(result.stdout)
    return document


def load_traces(folder: Path, name: str, documents: list[Any]) -> Document:
    return cli_json("load", "traces", str(write_json_lines(folder / f"{name}.jsonl", documents)), "--into", name)


def make_labels(turns: list[Document]) -> list[Document]:
    """Return people's labels of the questions: references and relevant chunks of the even ones."""
    return [
        {
            "id": turn["trace_id"],
            "question": turn["question"],
            "ground_truth_answer": REFERENCE.format(i),
            "relevant_chunk_ids": [f"c{i % 10}"],
            "relevant_urls": [f"https://wiki.example/{i % 10}"],
            "ground_truth_show": i % 4 == 0,
            "answerable": True,
            "origin": "manual",
        }
        for i, turn in enumerate(turns)
        if i % 2 == 0
    ]


def list_figures(summary: Document) -> Document:
    return {
        name: {key: metric[key] for key in ("value", "ci_low", "ci_high", "n_scored", "n_total", "reason")}
        for name, metric in summary["metrics"].items()
    }


def test_traces_and_table_give_identical_metrics(at_home: Path, tmp_path: Path) -> None:
    turns = [make_turn(i) for i in range(8)]
    turns[3] |= {"answer": "Сдать книгу 3 надо до 15 июня, правило 77."}
    load_traces(tmp_path, "recorded_as_traces", [make_export_request(make_otlp_spans(turn)) for turn in turns])
    write_json_lines(tmp_path / "t.jsonl", [row(turn) for turn in turns])
    cli_json("load", "table", str(tmp_path / "t.jsonl"), "--into", "recorded_as_table")
    write_json_lines(tmp_path / "labels.jsonl", make_labels(turns))
    for name in ("recorded_as_traces", "recorded_as_table"):
        assert cli_json("load", "table", str(tmp_path / "labels.jsonl"), "--into", name)["problems"] == []
    for tier, options in (
        ("tier3", {"sut": "recorded"}),
        ("tier2", {"sut": "recorded"}),
        ("judge", {"exam": 0}),
        ("judge_pipeline", {}),
    ):
        traces, table = (evaluate(tier, source=name, **options) for name in ("recorded_as_traces", "recorded_as_table"))
        assert list_figures(traces) == list_figures(table), tier
        assert traces["statuses"] == table["statuses"], tier
        traces_cases, table_cases = ({case["question_id"]: case for case in read_rows(run)} for run in (traces, table))
        assert [{**case, "case_id": ""} for case in traces_cases.values()] == [
            {**table_cases[name], "case_id": ""} for name in traces_cases
        ], tier
        assert traces["state"] == "completed"
        if tier.startswith("tier"):
            assert (get_value(traces, "latency_ms_p50") if tier == "tier3" else 1503.5) == 1503.5
            assert {case["span_id"] for case in traces_cases.values()} == {make_span_id(turn, "rag") for turn in turns}


@pytest.mark.slow("breadth: recorded answers in more tiers")
def test_unlabelled_traces_are_measured_without_references(judge: FakeLLMServer, tmp_path: Path) -> None:
    turns = [make_turn(i) for i in range(6)]
    document = load_traces(
        tmp_path,
        "recorded_no_labels",
        [make_langfuse_trace(turn, scores=[{"name": "user-feedback", "value": 1}]) for turn in turns],
    )
    assert (document["questions"]["added"], document["chunks"]["added"], document["problems"]) == (6, 7, [])
    third = evaluate("tier3", source="recorded_no_labels", sut="recorded")
    assert (third["state"], third["coverage"], third["statuses"]) == ("completed", 1.0, {"ok": 6})
    assert third["metrics"]["avg_faithfulness"]["n_scored"] == 6
    for name in ("avg_e2e_score", "avg_rougeL_f", "hit_rate@1"):  # a thumb up does not make an answer its own reference
        assert third["metrics"][name]["n_scored"] == 0, name
        assert get_value(third, name) is None
    second = evaluate("tier2", source="recorded_no_labels", sut="recorded")
    assert [
        second["metrics"][f"avg_{name}"]["n_scored"]
        for name in ("faithfulness", "answer_relevance", "answer_correctness")
    ] == [6, 6, 0]
    assert all("Контекст" not in str(case["answer"]) for case in read_rows(second))
    assert {case["sut_tokens_in"] for case in read_rows(second)} == {turn["tokens_in"] for turn in turns}
    assert all(request["model"].startswith("judge") for request in judge.requests)
    quality = evaluate("judge", source="recorded_no_labels", exam=0, bias_probes=False)
    assert (quality["statuses"], quality["system"]["contexts"]) == ({"ok": 6}, "recorded")
    context = read_rows(quality)[0]["context"]
    assert context.count("\n\n") == 1  # of two passages


def test_faulty_answers_get_no_scores(at_home: Path, tmp_path: Path) -> None:
    turns = [make_turn(i) for i in range(5)]
    rows = [row(turn) for turn in turns]
    rows[0] |= {"answer": "", "error": "TimeoutError: 30 s"}
    rows[1] |= {"answer": "Ответ не найден в базе."}
    rows[2] |= {"answer": ""}
    rows[3] |= {"contexts": []}
    write_json_lines(tmp_path / "t.jsonl", rows)
    cli_json("load", "table", str(tmp_path / "t.jsonl"), "--into", "recorded_faults")
    summary = evaluate("tier3", source="recorded_faults", sut="recorded")
    by_id = {case["question_id"]: case for case in read_rows(summary)}
    cases_in_order = [by_id[turn["trace_id"]] for turn in turns]
    assert [case["status"] for case in cases_in_order] == ["sut_error", "sut_refusal", "not_applicable", "ok", "ok"]
    assert cases_in_order[0]["reason"] == "TimeoutError: 30 s"
    assert [case["faithfulness"] is None for case in cases_in_order] == [True, True, True, True, False]
    assert (cases_in_order[3]["retrieved"], cases_in_order[3]["context"]) == ([], None)
    assert get_value(summary, "sut_error_rate") == 1 / 4  # of four, because nothing was recorded for the third
    assert get_value(summary, "refusal_rate") == pytest.approx(1 / 3)


def test_unsuitable_options_are_refused(at_home: Path, tmp_path: Path) -> None:
    load_traces(tmp_path, "recorded_refused", [make_export_request(make_otlp_spans(make_turn(0)))])
    with pytest.raises(InputError, match="leave out --perturbation"):
        evaluate("tier3", source="recorded_refused", sut="recorded", perturbation="typos")
    with pytest.raises(InputError, match="leave out --repeats"):
        evaluate("tier2", source="recorded_refused", sut="recorded", repeats=2)


@pytest.mark.slow("breadth: recorded answers in more tiers")
def test_setting_applies_to_tiers_without_passages(
    at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_traces(
        tmp_path, "recorded_no_passages", [make_export_request(make_otlp_spans(make_turn(i))[:1]) for i in range(3)]
    )
    monkeypatch.setenv("YARUS_SUT", "recorded")
    for tier in ("tier2", "tier3"):
        summary = evaluate(tier, source="recorded_no_passages")
        assert (summary["system"]["sut"], summary["statuses"]) == ("recorded", {"ok": 3})
        assert summary["metrics"]["avg_faithfulness"]["n_scored"] == 0
        assert {"note": "contexts not recorded", "n": 3} in summary["notes"]


def test_loading_again_keeps_corpus_and_labels(at_home: Path, tmp_path: Path) -> None:
    turns = [make_turn(i) for i in range(3)]
    documents = [make_export_request(make_otlp_spans(turn)) for turn in turns]
    chunks = [{"id": "c0", "text": "Полный текст правила 0.", "confluence_url": "https://wiki.example/full"}]
    load(tmp_path, "recorded_again", make_labels(turns), chunks)
    first = load_traces(tmp_path, "recorded_again", documents)
    assert (first["chunks"], first["questions"]["updated"]) == ({"read": 4, "added": 3, "updated": 0, "skipped": 0}, 2)
    second = load_traces(tmp_path, "recorded_again", documents[::-1])
    assert all(second[kind]["added"] == second[kind]["updated"] == 0 for kind in ("questions", "chunks", "labels"))
    summary = evaluate("tier3", source="recorded_again", sut="recorded")
    case = next(row for row in read_rows(summary) if row["question_id"] == turns[0]["trace_id"])
    assert (case["reference"], case["relevant"], case["hit_rate@1"]) == (REFERENCE.format(0), ["c0"], 1.0)
    assert case["context"].startswith(turns[0]["passages"][0]["text"])  # the recorded passage, not the current chunk


def test_scores_are_exported_to_traces(judge: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = [make_turn(i) for i in range(6)]
    load_traces(tmp_path, "recorded_scored", [make_export_request(make_otlp_spans(turn)) for turn in turns])

    def script(number: int, request: Document) -> Any:
        broken = turns[2]["question"] in request["messages"][0]["content"]
        return make_completion("не знаю") if broken else answer_steadily(number, request)

    judge.script = script
    summary = evaluate("tier3", source="recorded_scored", sut="recorded")
    monkeypatch.chdir(tmp_path)
    exported = cli_json("export", summary["evaluation_id"], "--to", "otlp")
    check_json("export --to otlp", json.dumps(exported))
    assert {**exported, "file": ""} == {
        "evaluation_id": summary["evaluation_id"],
        "file": "",
        "rows": exported["rows"],
        "cases": 6,
        "unjoined": 0,
        "unmeasured": 1,
    }
    events = [
        {attribute["key"]: next(iter(attribute["value"].values())) for attribute in record["attributes"]} | record
        for line in Path(exported["file"]).read_text(encoding="utf-8").splitlines()
        for record in json.loads(line)["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    ]
    cases = {case["trace_id"]: case for case in read_rows(summary)}
    assert {event["eventName"] for event in events} == {"gen_ai.evaluation.result"}
    with_value = [event for event in events if "gen_ai.evaluation.score.value" in event]
    assert len(with_value) == exported["rows"]
    for event in with_value:
        assert event["gen_ai.evaluation.score.value"] == cases[event["traceId"]][event["gen_ai.evaluation.name"]]
        assert event["spanId"] == cases[event["traceId"]]["span_id"]
    faithful = {event["traceId"] for event in with_value if event["gen_ai.evaluation.name"] == "faithfulness"}
    assert faithful == {turn["trace_id"] for turn in turns} - {turns[2]["trace_id"]}
    rest = [event for event in events if "gen_ai.evaluation.score.value" not in event]
    assert {event["traceId"] for event in rest} == {turns[2]["trace_id"]}
    assert {(event["gen_ai.evaluation.score.label"], event["error.type"]) for event in rest} == {("parse_error",) * 2}
    with pytest.raises(InputError, match="already exists"):
        cli_json("export", summary["evaluation_id"], "--to", "otlp")

    scores = cli_json("export", summary["evaluation_id"], "--to", "langfuse")
    again = Path(scores["file"]).read_text(encoding="utf-8")
    cli_json("export", summary["evaluation_id"], "--to", "langfuse", "--overwrite")
    assert Path(scores["file"]).read_text(encoding="utf-8") == again
    batch = [event for line in again.splitlines() for event in json.loads(line)["batch"]]
    assert len({event["body"]["id"] for event in batch}) == len(batch) == exported["rows"]
    assert {event["type"] for event in batch} == {"score-create"}
    for event in batch:
        body = event["body"]
        assert body["value"] == cases[body["traceId"]][body["name"]]
        assert (body["observationId"], body["dataType"]) == (cases[body["traceId"]]["span_id"], "NUMERIC")


def test_reasons_are_exported_without_personal_data(
    judge: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge.script = lambda number, request: make_completion('{"reason": "Звоните +7 912 345-67-89", "score": 0.5}')
    load_traces(tmp_path, "recorded_personal", [make_export_request(make_otlp_spans(make_turn(i))) for i in range(2)])
    summary = evaluate("tier2", source="recorded_personal", sut="recorded")
    monkeypatch.chdir(tmp_path)
    leaks = {}
    for masked in ("false", "true"):
        monkeypatch.setenv("YARUS_MASK_OUTPUT", masked)
        for form in ("otlp", "langfuse"):
            exported = cli_json("export", summary["evaluation_id"], "--to", form, "--overwrite")
            leaks[form, masked] = "345-67-89" in Path(exported["file"]).read_text(encoding="utf-8")
    assert leaks == {(form, masked): masked == "false" for form in ("otlp", "langfuse") for masked in ("false", "true")}


def test_dry_run_counts_only_judge_calls(judge: FakeLLMServer, tmp_path: Path) -> None:
    load_traces(tmp_path, "recorded_planned", [make_export_request(make_otlp_spans(make_turn(i))) for i in range(3)])
    for tier, calls in (("tier2", 6), ("tier3", 3)):  # faithfulness and relevance, because there is no reference
        (planned,) = cli_json("run", tier, "--source", "recorded_planned", "--sut", "recorded", "--dry-run")["plans"]
        assert planned["roles"].keys() == {"judge"}
        assert planned["roles"]["judge"]["calls"] == calls


@pytest.mark.slow("breadth: recorded answers in more tiers")
def test_recorded_answers_are_rejudged_and_frozen(at_home: Path, tmp_path: Path) -> None:
    turns = [make_turn(i) for i in range(4)]
    load_traces(
        tmp_path, "rejudged", [make_langfuse_trace(turn, scores=[{"name": "feedback", "value": 1}]) for turn in turns]
    )
    first = evaluate("tier3", source="rejudged", sut="recorded")
    again = evaluate("tier3", source="rejudged", reuse_answers=first["evaluation_id"])
    assert list_figures(again) == list_figures(first)
    assert again["comparability_key"] == first["comparability_key"]
    assert [case["trace_id"] for case in read_rows(again)] == [case["trace_id"] for case in read_rows(first)]
    cli_json("dataset", "freeze", "judged_again_set", "--source", "rejudged")
    frozen = evaluate("tier3", source="rejudged", cases="judged_again_set", sut="recorded")
    assert list_figures(frozen) == list_figures(first)
    keys = {tier: evaluate(tier, source="rejudged", sut="recorded")["comparability_key"] for tier in ("tier2", "tier3")}
    assert keys["tier3"] == first["comparability_key"]
    with_references = make_labels(turns) + [
        {**make_labels(turns)[0], "id": turn["trace_id"], "question": turn["question"]} for turn in turns[1::2]
    ]
    cli_json("load", "table", str(write_json_lines(tmp_path / "labels.jsonl", with_references)), "--into", "rejudged")
    parts = {
        sut: evaluate("tier3", source="rejudged", sut=sut, unit="page")["comparability_key"]
        for sut in ("recorded", "local")
    }
    assert parts["recorded"] == parts["local"]  # if all have references, both are comparable


def test_cases_without_trace_are_not_exported(at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row(make_turn(i)) for i in range(3)]
    rows[0].pop("trace_id")
    rows[1]["trace_id"] = "run-17"
    write_json_lines(tmp_path / "t.jsonl", rows)
    cli_json("load", "table", str(tmp_path / "t.jsonl"), "--into", "half_traced")
    summary = evaluate("tier2", source="half_traced", sut="recorded")
    monkeypatch.chdir(tmp_path)
    exports = {form: cli_json("export", summary["evaluation_id"], "--to", form) for form in ("otlp", "langfuse")}
    assert {form: (exported["cases"], exported["unjoined"]) for form, exported in exports.items()} == {
        "otlp": (1, 2),
        "langfuse": (2, 1),
    }
    local = evaluate("judge", source="sample", limit=2, exam=0, bias_probes=False)
    with pytest.raises(InputError, match="no case has the id of a trace"):
        cli_json("export", local["evaluation_id"], "--to", "otlp")

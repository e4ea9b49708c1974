"""Recorded answers evaluated as they were given: the same from a file of traces and from a table, nobody is asked."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.command_line import Document
from tests.support.evaluations import evaluate, load, roles, rows_of, steady, use, value
from tests.support.llm_server import FakeLLMServer, says
from tests.support.traces.files import langfuse, otlp, request, row, span_id, turn, write
from yarus.__main__ import cli
from yarus.db.errors import InputError

REFERENCE = "Правило {0} велит сдать книгу {0} до мая."
APART = {"case_id", "question_id", "judge_raw"}


@pytest.fixture
def judge(judge: FakeLLMServer, monkeypatch: pytest.MonkeyPatch) -> FakeLLMServer:
    """The judge's server is the gate's, too."""
    use(monkeypatch, roles(judge.url, "gate"))
    return judge


def cli_json(*words: str) -> Document:
    result = CliRunner().invoke(cli, [*words, "--json"], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    document: Document = json.loads(result.stdout)
    return document


def from_traces(folder: Path, name: str, documents: list[Any]) -> Document:
    return cli_json("load", "traces", str(write(folder / f"{name}.jsonl", documents)), "--into", name)


def labels(turns: list[Document]) -> list[Document]:
    """What people said of the questions: references and relevant chunks of the even ones."""
    return [
        {
            "id": said["trace_id"],
            "question": said["question"],
            "ground_truth_answer": REFERENCE.format(i),
            "relevant_chunk_ids": [f"c{i % 10}"],
            "relevant_urls": [f"https://wiki.example/{i % 10}"],
            "ground_truth_show": i % 4 == 0,
            "answerable": True,
            "origin": "manual",
        }
        for i, said in enumerate(turns)
        if i % 2 == 0
    ]


def measured(summary: Document) -> Document:
    return {
        name: {key: of[key] for key in ("value", "ci_low", "ci_high", "n_scored", "n_total", "reason")}
        for name, of in summary["metrics"].items()
    }


def test_a_file_of_traces_and_a_table_give_identical_metrics(at_home: Path, tmp_path: Path) -> None:
    turns = [turn(i) for i in range(8)]
    turns[3] |= {"answer": "Сдать книгу 3 надо до 15 июня, правило 77."}
    from_traces(tmp_path, "recorded_as_traces", [request(otlp(said)) for said in turns])
    write(tmp_path / "t.jsonl", [row(said) for said in turns])
    cli_json("load", "table", str(tmp_path / "t.jsonl"), "--into", "recorded_as_table")
    write(tmp_path / "labels.jsonl", labels(turns))
    for name in ("recorded_as_traces", "recorded_as_table"):
        assert cli_json("load", "table", str(tmp_path / "labels.jsonl"), "--into", name)["problems"] == []
    for tier, parameters in (
        ("tier3", {"sut": "recorded"}),
        ("tier2", {"sut": "recorded"}),
        ("judge", {"exam": 0}),
        ("judge_pipeline", {}),
    ):
        one, two = (evaluate(tier, source=name, **parameters) for name in ("recorded_as_traces", "recorded_as_table"))
        assert measured(one) == measured(two), tier
        assert one["statuses"] == two["statuses"], tier
        ours, theirs = ({case["question_id"]: case for case in rows_of(summary)} for summary in (one, two))
        assert [{**case, "case_id": ""} for case in ours.values()] == [
            {**theirs[name], "case_id": ""} for name in ours
        ], tier
        assert one["state"] == "completed"
        if tier.startswith("tier"):
            assert (value(one, "latency_ms_p50") if tier == "tier3" else 1503.5) == 1503.5
            assert {case["span_id"] for case in ours.values()} == {span_id(said, "rag") for said in turns}


@pytest.mark.slow("breadth: recorded answers in more tiers")
def test_what_needs_no_reference_is_measured_without_one_and_no_model_is_asked_for_answers(
    judge: FakeLLMServer, tmp_path: Path
) -> None:
    turns = [turn(i) for i in range(6)]
    document = from_traces(
        tmp_path,
        "recorded_no_labels",
        [langfuse(said, scores=[{"name": "user-feedback", "value": 1}]) for said in turns],
    )
    assert (document["questions"]["added"], document["chunks"]["added"], document["problems"]) == (6, 7, [])
    third = evaluate("tier3", source="recorded_no_labels", sut="recorded")
    assert (third["state"], third["coverage"], third["statuses"]) == ("completed", 1.0, {"ok": 6})
    assert third["metrics"]["avg_faithfulness"]["n_scored"] == 6
    for name in ("avg_e2e_score", "avg_rougeL_f", "hit_rate@1"):  # a thumb up makes an answer no reference for itself
        assert third["metrics"][name]["n_scored"] == 0, name
        assert value(third, name) is None
    second = evaluate("tier2", source="recorded_no_labels", sut="recorded")
    assert [
        second["metrics"][f"avg_{name}"]["n_scored"]
        for name in ("faithfulness", "answer_relevance", "answer_correctness")
    ] == [6, 6, 0]
    assert all("Контекст" not in str(case["answer"]) for case in rows_of(second))
    assert {case["sut_tokens_in"] for case in rows_of(second)} == {said["tokens_in"] for said in turns}
    assert all(request["model"].startswith("judge") for request in judge.requests)
    quality = evaluate("judge", source="recorded_no_labels", exam=0, probes=False)
    assert (quality["statuses"], quality["system"]["contexts"]) == ({"ok": 6}, "recorded")
    context = rows_of(quality)[0]["context"]
    assert context.count("\n\n") == 1  # of two passages


def test_answers_that_failed_refused_or_are_not_there_are_no_scores(at_home: Path, tmp_path: Path) -> None:
    turns = [turn(i) for i in range(5)]
    rows = [row(said) for said in turns]
    rows[0] |= {"answer": "", "error": "TimeoutError: 30 s"}
    rows[1] |= {"answer": "Ответ не найден в базе."}
    rows[2] |= {"answer": ""}
    rows[3] |= {"contexts": []}
    write(tmp_path / "t.jsonl", rows)
    cli_json("load", "table", str(tmp_path / "t.jsonl"), "--into", "recorded_faults")
    summary = evaluate("tier3", source="recorded_faults", sut="recorded")
    by_id = {case["question_id"]: case for case in rows_of(summary)}
    found = [by_id[said["trace_id"]] for said in turns]
    assert [case["status"] for case in found] == ["sut_error", "sut_refusal", "not_applicable", "ok", "ok"]
    assert found[0]["reason"] == "TimeoutError: 30 s"
    assert [case["faithfulness"] is None for case in found] == [True, True, True, True, False]
    assert (found[3]["retrieved"], found[3]["context"]) == ([], None)
    assert value(summary, "sut_error_rate") == 1 / 4  # of four: of the third nothing was recorded
    assert value(summary, "refusal_rate") == pytest.approx(1 / 3)


def test_what_cannot_be_done_with_recorded_answers_is_refused_in_words(at_home: Path, tmp_path: Path) -> None:
    from_traces(tmp_path, "recorded_refused", [request(otlp(turn(0)))])
    with pytest.raises(InputError, match="leave out --perturbation"):
        evaluate("tier3", source="recorded_refused", sut="recorded", perturbation="typos")
    with pytest.raises(InputError, match="leave out --repeats"):
        evaluate("tier2", source="recorded_refused", sut="recorded", repeats=2)


@pytest.mark.slow("breadth: recorded answers in more tiers")
def test_a_setting_makes_every_tier_take_them_and_a_source_without_passages_will_do(
    at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from_traces(tmp_path, "recorded_no_passages", [request(otlp(turn(i))[:1]) for i in range(3)])
    monkeypatch.setenv("YARUS_SUT", "recorded")
    for tier in ("tier2", "tier3"):
        summary = evaluate(tier, source="recorded_no_passages")
        assert (summary["system"]["sut"], summary["statuses"]) == ("recorded", {"ok": 3})
        assert summary["metrics"]["avg_faithfulness"]["n_scored"] == 0
        assert {"note": "contexts not recorded", "n": 3} in summary["notes"]


def test_loading_again_changes_nothing_and_keeps_the_corpus_and_the_labels(at_home: Path, tmp_path: Path) -> None:
    turns = [turn(i) for i in range(3)]
    documents = [request(otlp(said)) for said in turns]
    chunks = [{"id": "c0", "text": "Полный текст правила 0.", "confluence_url": "https://wiki.example/full"}]
    load(tmp_path, "recorded_again", labels(turns), chunks)
    first = from_traces(tmp_path, "recorded_again", documents)
    assert (first["chunks"], first["questions"]["updated"]) == ({"read": 4, "added": 3, "updated": 0, "skipped": 0}, 2)
    second = from_traces(tmp_path, "recorded_again", documents[::-1])
    assert all(second[kind]["added"] == second[kind]["updated"] == 0 for kind in ("questions", "chunks", "labels"))
    summary = evaluate("tier3", source="recorded_again", sut="recorded")
    case = next(one for one in rows_of(summary) if one["question_id"] == turns[0]["trace_id"])
    assert (case["reference"], case["relevant"], case["hit_rate@1"]) == (REFERENCE.format(0), ["c0"], 1.0)
    assert case["context"].startswith(
        turns[0]["passages"][0]["text"]
    )  # what the answer was given, not what is there now


def test_scores_go_back_to_the_traces(judge: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = [turn(i) for i in range(6)]
    from_traces(tmp_path, "recorded_scored", [request(otlp(said)) for said in turns])

    def script(number: int, request: Document) -> Any:
        broken = turns[2]["question"] in request["messages"][0]["content"]
        return says("не знаю") if broken else steady(number, request)

    judge.script = script
    summary = evaluate("tier3", source="recorded_scored", sut="recorded")
    monkeypatch.chdir(tmp_path)
    done = cli_json("export", summary["evaluation_id"], "--to", "otlp")
    assert {**done, "file": ""} == {
        "evaluation_id": summary["evaluation_id"],
        "file": "",
        "rows": done["rows"],
        "cases": 6,
        "unjoined": 0,
        "unmeasured": 1,
    }
    events = [
        {one["key"]: next(iter(one["value"].values())) for one in record["attributes"]} | record
        for line in Path(done["file"]).read_text(encoding="utf-8").splitlines()
        for record in json.loads(line)["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    ]
    cases = {case["trace_id"]: case for case in rows_of(summary)}
    assert {event["eventName"] for event in events} == {"gen_ai.evaluation.result"}
    with_value = [event for event in events if "gen_ai.evaluation.score.value" in event]
    assert len(with_value) == done["rows"]
    for event in with_value:
        assert event["gen_ai.evaluation.score.value"] == cases[event["traceId"]][event["gen_ai.evaluation.name"]]
        assert event["spanId"] == cases[event["traceId"]]["span_id"]
    faithful = {event["traceId"] for event in with_value if event["gen_ai.evaluation.name"] == "faithfulness"}
    assert faithful == {said["trace_id"] for said in turns} - {turns[2]["trace_id"]}
    lost = [event for event in events if "gen_ai.evaluation.score.value" not in event]
    assert {event["traceId"] for event in lost} == {turns[2]["trace_id"]}
    assert {(event["gen_ai.evaluation.score.label"], event["error.type"]) for event in lost} == {("parse_error",) * 2}
    with pytest.raises(InputError, match="already exists"):
        cli_json("export", summary["evaluation_id"], "--to", "otlp")

    scores = cli_json("export", summary["evaluation_id"], "--to", "langfuse")
    again = Path(scores["file"]).read_text(encoding="utf-8")
    cli_json("export", summary["evaluation_id"], "--to", "langfuse", "--overwrite")
    assert Path(scores["file"]).read_text(encoding="utf-8") == again
    batch = [event for line in again.splitlines() for event in json.loads(line)["batch"]]
    assert len({event["body"]["id"] for event in batch}) == len(batch) == done["rows"]
    assert {event["type"] for event in batch} == {"score-create"}
    for event in batch:
        body = event["body"]
        assert body["value"] == cases[body["traceId"]][body["name"]]
        assert (body["observationId"], body["dataType"]) == (cases[body["traceId"]]["span_id"], "NUMERIC")


def test_reasons_go_out_without_personal_data(
    judge: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge.script = lambda number, request: says('{"reason": "Звоните +7 912 345-67-89", "score": 0.5}')
    from_traces(tmp_path, "recorded_personal", [request(otlp(turn(i))) for i in range(2)])
    summary = evaluate("tier2", source="recorded_personal", sut="recorded")
    monkeypatch.chdir(tmp_path)
    shown = {}
    for masked in ("false", "true"):
        monkeypatch.setenv("YARUS_MASK_SHOWN", masked)
        for form in ("otlp", "langfuse"):
            done = cli_json("export", summary["evaluation_id"], "--to", form, "--overwrite")
            shown[form, masked] = "345-67-89" in Path(done["file"]).read_text(encoding="utf-8")
    assert shown == {(form, masked): masked == "false" for form in ("otlp", "langfuse") for masked in ("false", "true")}


def test_a_dry_run_counts_only_what_the_judge_is_asked(judge: FakeLLMServer, tmp_path: Path) -> None:
    from_traces(tmp_path, "recorded_planned", [request(otlp(turn(i))) for i in range(3)])
    for tier, calls in (("tier2", 6), ("tier3", 3)):  # faithfulness, and relevance; there is no reference
        (planned,) = cli_json("run", tier, "--source", "recorded_planned", "--sut", "recorded", "--dry-run")["plans"]
        assert planned["roles"].keys() == {"judge"}
        assert planned["roles"]["judge"]["calls"] == calls


@pytest.mark.slow("breadth: recorded answers in more tiers")
def test_recorded_answers_are_judged_again_and_frozen_as_such(at_home: Path, tmp_path: Path) -> None:
    turns = [turn(i) for i in range(4)]
    from_traces(tmp_path, "rejudged", [langfuse(said, scores=[{"name": "feedback", "value": 1}]) for said in turns])
    first = evaluate("tier3", source="rejudged", sut="recorded")
    again = evaluate("tier3", source="rejudged", reuse_answers=first["evaluation_id"])
    assert measured(again) == measured(first)
    assert again["comparability_key"] == first["comparability_key"]
    assert [case["trace_id"] for case in rows_of(again)] == [case["trace_id"] for case in rows_of(first)]
    cli_json("dataset", "freeze", "judged_again_set", "--source", "rejudged")
    frozen = evaluate("tier3", source="rejudged", cases="judged_again_set", sut="recorded")
    assert measured(frozen) == measured(first)
    keys = {tier: evaluate(tier, source="rejudged", sut="recorded")["comparability_key"] for tier in ("tier2", "tier3")}
    assert keys["tier3"] == first["comparability_key"]
    with_references = labels(turns) + [
        {**labels(turns)[0], "id": said["trace_id"], "question": said["question"]} for said in turns[1::2]
    ]
    cli_json("load", "table", str(write(tmp_path / "labels.jsonl", with_references)), "--into", "rejudged")
    parts = {
        sut: evaluate("tier3", source="rejudged", sut=sut, unit="page")["comparability_key"]
        for sut in ("recorded", "local")
    }
    assert parts["recorded"] == parts["local"]  # with references for all, they are compared


def test_cases_without_a_trace_cannot_be_joined(at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row(turn(i)) for i in range(3)]
    rows[0].pop("trace_id")
    rows[1]["trace_id"] = "run-17"
    write(tmp_path / "t.jsonl", rows)
    cli_json("load", "table", str(tmp_path / "t.jsonl"), "--into", "half_traced")
    summary = evaluate("tier2", source="half_traced", sut="recorded")
    monkeypatch.chdir(tmp_path)
    found = {form: cli_json("export", summary["evaluation_id"], "--to", form) for form in ("otlp", "langfuse")}
    assert {form: (one["cases"], one["unjoined"]) for form, one in found.items()} == {
        "otlp": (1, 2),
        "langfuse": (2, 1),
    }
    local = evaluate("judge", source="sample", limit=2, exam=0, probes=False)
    with pytest.raises(InputError, match="no case has the id of a trace"):
        cli_json("export", local["evaluation_id"], "--to", "otlp")

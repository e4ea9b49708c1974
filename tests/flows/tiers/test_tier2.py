"""Tier 2: figures equal to the peers' on the stored texts, statuses that are no scores, calls bought once."""

import json
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jiwer
import pytest
import sacrebleu
from rapidfuzz.distance import JaroWinkler
from rouge_score.rouge_scorer import RougeScorer
from sqlalchemy import Engine

from db import journal
from db.errors import InputError, ModelUnavailable
from metrics.text.tokenizers import tokenize
from tasks.cases.text import words as stems
from tasks.models.stand_ins import f1
from tests.support.command_line import CommandLine
from tests.support.evaluations import (
    cases_of,
    evaluate,
    load,
    metric_of,
    passages,
    question,
    roles,
    rows_of,
    steady,
    texts,
    use,
    value,
)
from tests.support.llm_server import FakeLLMServer, http, says, scores

Document = dict[str, Any]
JUDGED = ("faithfulness", "answer_relevance", "answer_correctness")


class Words:
    """rouge-score's interface to our tokenizer: its own drops every Cyrillic letter."""

    def tokenize(self, text: str) -> list[str]:
        return tokenize(text)


ROUGE = RougeScorer(["rouge1", "rouge2", "rougeL"], tokenizer=Words())
BLEU = sacrebleu.BLEU(effective_order=True, smooth_method="add-k", smooth_value=1, tokenize="none")
CORPUS_BLEU = sacrebleu.BLEU(smooth_method="add-k", smooth_value=1, tokenize="none")


def spaced(text: str) -> str:
    return " ".join(tokenize(text))


def rouge(name: str) -> Callable[[str, str], float | None]:
    """F of ROUGE; None where the reference has no n-gram, which rouge-score calls 0."""

    def score(answer: str, reference: str) -> float | None:
        if len(tokenize(reference)) < (2 if name == "rouge2" else 1):
            return None
        return float(ROUGE.score(reference, answer)[name].fmeasure)

    return score


PEERS: dict[str, Callable[[str, str], float | None]] = {
    "rouge1_f": rouge("rouge1"),
    "rouge2_f": rouge("rouge2"),
    "rougeL_f": rouge("rougeL"),
    "bleu": lambda answer, reference: BLEU.sentence_score(spaced(answer), [spaced(reference)]).score,
    "chrf": lambda answer, reference: sacrebleu.sentence_chrf(answer, [reference]).score,
    "wer": lambda answer, reference: jiwer.wer(spaced(reference), spaced(answer)),
    "string_similarity": lambda answer, reference: JaroWinkler.similarity(answer.lower(), reference.lower()),
}


@pytest.fixture
def served(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    """A server that serves generator and judge, as `steady` says until told otherwise."""
    server = FakeLLMServer(script=steady)
    server.start()
    use(monkeypatch, roles(server.url, "generator", "judge"))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def sample_rows(night: dict[str, Document]) -> list[Document]:
    return rows_of(night["tier2"])


@pytest.mark.parametrize("column", PEERS)
def test_text_metrics_are_the_peers(night: dict[str, Document], sample_rows: list[Document], column: str) -> None:
    theirs = [
        PEERS[column](row["answer"], row["reference"]) if row["answer"] is not None and row["reference"] else None
        for row in sample_rows
    ]
    assert [row[column] for row in sample_rows] == pytest.approx(theirs, abs=1e-9)
    measured = [figure for figure in theirs if figure is not None]
    metric = night["tier2"]["metrics"][f"avg_{column}"]
    assert metric["value"] == pytest.approx(sum(measured) / len(measured), abs=1e-9)
    assert (metric["n_scored"], metric["n_total"]) == (len(measured), len(sample_rows))


def test_corpus_bleu_is_sacrebleus(night: dict[str, Document], sample_rows: list[Document]) -> None:
    pairs = [(row["answer"], row["reference"]) for row in sample_rows if row["answer"] is not None and row["reference"]]
    theirs = CORPUS_BLEU.corpus_score([spaced(pair[0]) for pair in pairs], [[spaced(pair[1]) for pair in pairs]])
    assert value(night["tier2"], "corpus_bleu") == pytest.approx(theirs.score, abs=1e-9)


@pytest.mark.parametrize("column", JUDGED)
def test_judged_means_are_those_of_the_stored_replies(
    night: dict[str, Document], sample_rows: list[Document], column: str
) -> None:
    replies = [
        (row["case_id"], json.loads(reply["reply"])["score"])
        for row in sample_rows
        for reply in row["judge_raw"]
        if reply["metric"] == column
    ]
    refused = [row["case_id"] for row in sample_rows if row["status"] == "sut_refusal" and row[column] is not None]
    metric = night["tier2"]["metrics"][f"avg_{column}"]
    scored = [score for _, score in replies] + [0.0] * len(refused)
    assert metric["value"] == pytest.approx(math.fsum(scored) / len(scored), abs=1e-12)
    assert metric["n_scored"] == len(scored)
    assert {row["case_id"]: row[column] for row in sample_rows if row[column] is not None} == {
        **dict(replies),
        **dict.fromkeys(refused, 0.0),
    }


def test_the_stand_in_judges_by_words_as_it_says(sample_rows: list[Document]) -> None:
    row = next(row for row in sample_rows if row["answer_correctness"])
    expected = f1(stems(row["answer"]), stems(row["reference"]))
    assert row["answer_correctness"] == pytest.approx(expected, abs=1e-6)


def test_a_refusal_is_worth_nothing_and_faithful_to_nothing(sample_rows: list[Document]) -> None:
    refused = [row for row in sample_rows if row["status"] == "sut_refusal"]
    assert refused
    for row in refused:
        assert row["faithfulness"] is None
        assert row["answer_relevance"] == 0
        assert row["answer_correctness"] == (0 if row["reference"] else None)


def test_what_the_corpus_cannot_answer_is_not_asked(sample_rows: list[Document]) -> None:
    left_out = [row for row in sample_rows if row["answerable"] is False]
    assert len(left_out) == 22  # see db/sample/README.md
    assert {row["status"] for row in left_out} == {"not_applicable"}
    assert {row["answer"] for row in left_out} == {None}


def test_a_refusal_counts_where_it_has_a_reference(served: FakeLLMServer, at_home: Path, tmp_path: Path) -> None:
    source = load(tmp_path, "declining", [question(i) for i in range(4)] + [question(4, ground_truth_answer=None)])
    declines = {0: "Ответ не найден. Попробуйте иначе.", 4: "Ответ не  найден", 1: "", 2: "Не нашёл ответа"}

    def script(number: int, request: Document) -> bytes | Any:
        if metric_of(request) != "generation":
            return scores(0.5)
        which = int(texts(request)["context"].split()[1])
        return says(declines.get(which, "Сдать книгу."))

    served.script = script
    rows = {row["question_id"]: row for row in rows_of(evaluate("tier2", source=source))}
    assert [rows[str(i)]["status"] for i in range(5)] == [*["sut_refusal"] * 3, "ok", "ok"]
    assert [rows[str(i)]["answer_correctness"] for i in range(5)] == [0, 0, 0, 0.5, None]
    assert [rows[str(i)]["faithfulness"] for i in range(5)] == [None, None, None, 0.5, 0.5]
    assert rows["1"]["reason"] == "the answer is empty"
    assert rows["1"]["rouge1_f"] == 0
    assert rows["4"]["wer"] is None


def test_bad_lines_of_the_log_are_counted_not_scored(served: FakeLLMServer, tmp_path: Path) -> None:
    long = [{"id": "c0", "confluence_url": "https://wiki.example/0", "text": "слово " * 400}, *passages(10)[1:]]
    rows = [
        question(1, ground_truth_answer=None),  # no annotated answer
        question(2, relevant_chunk_ids=None, relevant_urls=[passages(10)[2]["confluence_url"]]),  # only a page
        question(10, question="Как долго?"),  # its chunk c0 is longer than the limit
        question(3, relevant_chunk_ids=["gone"]),
        question(4, relevant_chunk_ids=None, confluence_url=None),
        question(5, relevant_chunk_ids=None, answerable=False, confluence_url=None, ground_truth_answer=None),
    ]
    summary = evaluate("tier2", source=load(tmp_path, "bad_lines", rows, long), context_tokens=100)
    found = {row["question_id"]: row for row in rows_of(summary)}
    assert {key: row["status"] for key, row in found.items()} == {
        "1": "ok", "2": "ok", "10": "ok", "3": "stale_label", "4": "unlabelled", "5": "not_applicable"
    }  # fmt: skip
    assert [found["1"][name] is None for name in (*JUDGED, "bleu")] == [False, False, True, True]
    assert found["2"]["context"] == passages(10)[2]["text"]
    assert (found["10"]["truncated"], len(found["10"]["context"]), found["2"]["truncated"]) == (True, 300, False)
    assert {"note": "contexts cut", "n": 1} in summary["notes"]
    assert summary["metrics"]["avg_faithfulness"]["n_scored"] == 3
    assert summary["metrics"]["avg_answer_correctness"]["n_scored"] == 2
    assert (summary["coverage"], summary["state"]) == (1.0, "completed")


def test_a_context_that_the_model_cannot_take_is_its_failure(served: FakeLLMServer, tmp_path: Path) -> None:
    too_long = {"error": {"message": "maximum context length is 8 tokens", "code": "context_length_exceeded"}}

    def script(number: int, request: Document) -> Any:
        if metric_of(request) == "generation" and "Правило 3" in texts(request)["context"]:
            return http(400, json.dumps(too_long), "content-type: application/json")
        return steady(number, request)

    served.script = script
    source = load(tmp_path, "too_long", [question(i) for i in range(30)])
    summary = evaluate("tier2", source=source)
    failed = [row for row in rows_of(summary) if row["status"] == "sut_error"]
    assert sorted(row["question_id"] for row in failed) == ["13", "23", "3"]
    assert [row["faithfulness"] for row in failed] == [None, None, None]
    assert value(summary, "sut_error_rate") == pytest.approx(0.1)
    assert summary["state"] == "invalid"  # 90 % were measured, 95 % are needed


def test_repeats_and_probabilities_are_measured(served: FakeLLMServer, tmp_path: Path) -> None:
    answers = ("Сдать книгу.", "Сдать книгу.", "Вернуть книгу до мая.")
    logprobs = {"content": [{"token": "a", "logprob": math.log(0.5)}, {"token": "b", "logprob": math.log(0.125)}]}
    given: dict[str, int] = {}

    def script(number: int, request: Document) -> Any:
        if metric_of(request) != "generation":
            return scores(0.5)
        asked = texts(request)["question"]
        given[asked] = given.get(asked, -1) + 1
        return says(answers[given[asked]] if "правило 1," in asked else answers[0], logprobs=logprobs)

    served.script = script
    source = load(tmp_path, "repeated", [question(i) for i in range(4)])
    summary = evaluate("tier2", source=source, repeats=3, logprobs=True)
    # Of question 1 one pair of three is equal, of the other three all are.
    assert value(summary, "response_exact_match_rate") == pytest.approx((1 / 3 + 3) / 4)
    assert 0.75 < value(summary, "response_semantic_consistency") < 1
    assert value(summary, "avg_perplexity") == pytest.approx(4.0)  # exp of the mean of ln 2 and ln 8
    row = next(row for row in rows_of(summary) if row["question_id"] == "1")
    assert sorted(row["answers"]) == sorted(answers)


def test_what_is_no_probability_leaves_its_case_unmeasured(served: FakeLLMServer, tmp_path: Path) -> None:
    def script(number: int, request: Document) -> Any:
        if metric_of(request) != "generation":
            return scores(0.5)
        first = 0.001 if "правило 1," in texts(request)["question"] else 1e-7  # rounded up from 0
        return says("Сдать.", logprobs={"content": [{"token": "a", "logprob": first}, {"token": "b", "logprob": -2}]})

    served.script = script
    source = load(tmp_path, "improbable", [question(i) for i in range(4)])
    summary = evaluate("tier2", source=source, logprobs=True)
    assert (value(summary, "avg_perplexity"), summary["state"]) == (pytest.approx(math.e), "completed")
    assert summary["metrics"]["avg_perplexity"]["n_scored"] == 3


def test_half_an_emoji_in_a_verdict_harms_nobody(served: FakeLLMServer, tmp_path: Path) -> None:
    def script(number: int, request: Document) -> Any:
        if metric_of(request) == "generation":
            return steady(number, request)
        return says('{"reason": "верно \\ud83d", "score": 0.5}')

    served.script = script
    source = load(tmp_path, "half_an_emoji", [question(i) for i in range(4)])
    summary = evaluate("tier2", source=source)
    assert (value(summary, "avg_faithfulness"), summary["state"]) == (0.5, "completed")
    assert "faithfulness: верно ?" in rows_of(summary)[0]["judge_reasons"]


def test_the_journal_has_what_was_bought(
    served: FakeLLMServer, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    price = {"input": 2.0, "output": 4.0, "as_of": "2026-01-01"}
    models = [os.environ[f"YARUS_{role}__MODEL"] for role in ("GENERATOR", "JUDGE")]
    monkeypatch.setenv("YARUS_PRICES", json.dumps(dict.fromkeys(models, price)))
    source = load(tmp_path, "paid", [question(i) for i in range(20)])
    first, second = (evaluate("tier2", source=source) for _ in range(2))
    paid, nothing = (journal.find(engine, summary["evaluation_id"]) for summary in (first, second))
    rows = rows_of(first)
    for name in ("tokens_in", "tokens_out", "cost_usd"):
        assert float(paid[name]) == pytest.approx(sum(row[name] for row in rows)), name
        assert nothing[name] is None
    assert float(paid["cost_usd"]) == pytest.approx((2 * paid["tokens_in"] + 4 * paid["tokens_out"]) / 1e6)


def test_an_evaluation_repeated_sends_no_call(served: FakeLLMServer, tmp_path: Path) -> None:
    source = load(tmp_path, "bought_once", [question(i) for i in range(20)])
    first = evaluate("tier2", source=source)
    sent = len(served.requests)
    second = evaluate("tier2", source=source)
    assert (sent, len(served.requests)) == (20 + 3 * 20, sent)
    assert first["metrics"] == second["metrics"]
    assert (
        cases_of(first)
        .drop_columns(["tokens_in", "tokens_out"])
        .equals(cases_of(second).drop_columns(["tokens_in", "tokens_out"]))
    )


def test_the_key_goes_by_the_judge_not_by_the_system(
    served: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = load(tmp_path, "keys", [question(i) for i in range(3)])
    prompt = tmp_path / "faithfulness.txt"
    prompt.write_text('$context $answer {"reason": …, "score": 0..1}', encoding="utf-8")

    def key(**variables: str) -> str:
        with monkeypatch.context() as patch:
            use(patch, variables)
            return str(evaluate("tier2", source=source)["comparability_key"])

    plain = key()
    assert key(YARUS_SUT_LABEL="v2", YARUS_GENERATOR__MODEL="another") == plain
    others = [
        key(YARUS_JUDGE__MODEL="another"),
        key(YARUS_JUDGE__TEMPERATURE="0.5"),
        key(YARUS_JUDGE__PROMPT=str(prompt)),
    ]
    assert len({plain, *others}) == 4


def test_stored_answers_are_judged_anew_without_generating(
    served: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = load(tmp_path, "replayed", [question(i) for i in range(12)])
    first = evaluate("tier2", source=source)
    sent = len(served.requests)
    use(monkeypatch, {"YARUS_JUDGE__MODEL": "judge-2", "YARUS_GENERATOR__MODEL": "another"})
    second = evaluate("tier2", source=source, reuse_answers=first["evaluation_id"])
    asked = [metric_of(request) for request in served.requests[sent:]]
    assert (len(asked), "generation" in asked) == (36, False)
    assert [row["answer"] for row in rows_of(first)] == [row["answer"] for row in rows_of(second)]
    assert second["system"]["sut"] == f"answers of {first['evaluation_id']}"
    assert second["system"]["generator"] == first["system"]["generator"] != "another"
    assert first["comparability_key"] != second["comparability_key"]


def test_what_was_stopped_goes_on_only_as_it_began(
    served: FakeLLMServer, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = load(tmp_path, "as_it_began", [question(i) for i in range(10)])
    served.script = lambda number, request: http(401) if number > 25 else steady(number, request)
    with pytest.raises(ModelUnavailable):
        evaluate("tier2", source=source)
    stopped = journal.find(engine, "last")["id"]
    served.script = steady
    for role in ("JUDGE", "GENERATOR"):
        words = f"begun with YARUS_{role}__MODEL=.*another"
        with monkeypatch.context() as patch, pytest.raises(InputError, match=words):
            use(patch, {f"YARUS_{role}__MODEL": "another"})
            evaluate("tier2", resume=stopped)
    resumed, anew = evaluate("tier2", resume=stopped), evaluate("tier2", source=source)
    assert resumed["evaluation_id"] == stopped != anew["evaluation_id"]
    assert resumed["metrics"] == anew["metrics"]


def broken(number: int, request: Document) -> Any:
    """A judge that cannot be read on every odd rule."""
    if metric_of(request) == "generation":
        return says(f"Сдать книгу {texts(request)['context'].split()[1]}")
    which = int(texts(request)["answer"].split()[-1])
    return says("Пожалуй, 0.9 из 1") if which % 2 else scores(which / 10)


def test_half_the_replies_broken(
    yarus: CommandLine, engine: Engine, served: FakeLLMServer, tmp_path: Path, prefect_server: dict[str, str]
) -> None:
    source = load(tmp_path, "half_broken", [question(i) for i in range(40)])
    served.script = broken
    variables = roles(served.url, "generator", "judge") | prefect_server
    ran = yarus("run", "tier2", "--source", source, "--json", env=variables, ok=False)
    assert (ran.code, ran.json["state"]) == (1, "invalid")
    assert "50.0%" in ran.json["error"]
    assert ran.json["statuses"] == {"ok": 20, "parse_error": 20}
    rows = rows_of(ran.json)
    for column in JUDGED:
        metric = ran.json["metrics"][f"avg_{column}"]
        assert (metric["n_scored"], metric["n_total"]) == (20, 40)
        assert metric["value"] == pytest.approx((0 + 0.2 + 0.4 + 0.6 + 0.8) / 5)
        assert {row[column] for row in rows if row["status"] == "parse_error"} == {None}
    kept = next(row["judge_raw"] for row in rows if row["status"] == "parse_error")
    assert [(reply["reply"], reply["status"]) for reply in kept] == [("Пожалуй, 0.9 из 1", "parse_error")] * 6


RUBRIC = """name: politeness
question: Насколько ответ вежлив?
1: приветлив
0: груб
"""


def test_rubrics_of_ones_own_are_judged_like_the_others(
    served: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = load(tmp_path, "polite", [question(i) for i in range(6)])
    plain = evaluate("tier2", source=source)
    (tmp_path / "rubrics").mkdir()
    (tmp_path / "rubrics" / "any.txt").write_text(RUBRIC, encoding="utf-8")
    monkeypatch.setenv("YARUS_RUBRICS", str(tmp_path / "rubrics"))
    before = len(served.requests)
    summary = evaluate("tier2", source=source)
    asked = [request["messages"][0]["content"] for request in served.requests[before:]]
    assert len(asked) == 6  # the other verdicts are in the store
    assert all("Насколько ответ вежлив?" in text for text in asked)
    given = [row["rubric_politeness"] for row in rows_of(summary)]
    stored = summary["metrics"]["avg_rubric_politeness"]
    assert stored["value"] == pytest.approx(math.fsum(given) / 6)
    assert (stored["n_scored"], stored["n_total"], stored["grade"]) == (6, 6, None)
    assert {row["metric"] for row in rows_of(summary)[0]["judge_raw"]} == {*JUDGED, "rubric_politeness"}
    assert summary["comparability_key"] != plain["comparability_key"]
    for metric in plain["metrics"]:
        assert value(summary, metric) == value(plain, metric)


def test_a_rubric_without_a_model_is_not_measured_and_spoils_nothing(
    at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "any.txt").write_text(RUBRIC, encoding="utf-8")
    monkeypatch.setenv("YARUS_RUBRICS", str(tmp_path))
    summary = evaluate("tier2", source="sample", limit=20)
    stored = summary["metrics"]["avg_rubric_politeness"]
    assert (stored["value"], stored["n_scored"]) == (None, 0)
    assert "no language model judges" in stored["reason"]
    assert "not_applicable" not in {row["status"] for row in rows_of(summary) if row["answer"] is not None}
    assert value(summary, "avg_faithfulness") is not None

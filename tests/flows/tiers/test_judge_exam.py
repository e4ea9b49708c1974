"""Check the exam of judges with known quality: each is classified, and a useless one gets no grade anywhere."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import CommandLine, run_here
from tests.support.evaluations import (
    evaluate,
    get_value,
    hash_to_unit,
    load,
    make_role_variables,
    question,
    read_rows,
    set_variables,
    texts,
)
from tests.support.llm_server import FakeLLMServer, make_completion, make_response, make_score_completion
from yarus.db.errors import ModelUnavailable
from yarus.flows.terminal.summary import print_summary

Document = dict[str, Any]
Truth = dict[tuple[str, str], bool]
"""(question, answer) -> whether the answer is damaged for a prompt that reads these texts."""
Judge = Callable[[str, bool], float]
"""(key of texts and answer, whether it is damaged) -> score."""
FEW = {"source": "sample", "limit": 60, "exam": 60, "bias_probes": False}
FEWER = FEW | {"limit": 20, "exam": 24}
"""Enough to detect useless judges, and for tests of the calls."""
JUDGED = ("faithfulness", "answer_relevance", "answer_correctness", "e2e_score")
GRADES = re.compile(r"Excellent|Good|Needs attention|Отлично|Хорошо|Требует внимания")


@pytest.fixture(scope="module")
def papers(at_home_for_module: Path) -> list[Document]:
    """Return the examined cases, as the stand-in got them."""
    return [row for row in read_rows(evaluate("judge", **FEW)) if row["exam"]]


@pytest.fixture
def server(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    """Serve a judge and a gate."""
    with FakeLLMServer() as models:
        set_variables(monkeypatch, make_role_variables(models.url, "judge", "gate"))
        yield models


def collect_truths(papers: list[Document]) -> dict[str, Truth]:
    """Return the truth by what a prompt reads: context, reference or neither; the gate separately."""
    truths: dict[str, Truth] = {}
    prompts = {"faithfulness": "context", "answer_relevance": "", "answer_correctness": "reference", "gate": "gate"}
    for case in papers:
        for item in case["exam"]:
            for prompt, reads in prompts.items():
                if prompt in (*item["damaged"], *item["sound"]):
                    truths.setdefault(reads, {})[case["question"], item["answer"]] = prompt in item["damaged"]
    return truths


def make_judge_script(judge: Judge, papers: list[Document]) -> Callable[[int, Document], Any]:
    """Return the server's script for a judge that knows the truth; other calls are judged as undamaged."""
    truths = collect_truths(papers)

    def script(number: int, request: Document) -> Any:
        parts = texts(request)
        if "answer" not in parts:  # what the judge's own model would say
            return make_completion(" ".join(parts["context"].split()[:5]))
        is_gate = request["model"].startswith("gate")
        reads = "gate" if is_gate else "context" if "context" in parts else "reference" if "reference" in parts else ""
        damaged = truths.get(reads, {}).get((parts["question"], parts["answer"]), False)
        score = judge(f"{reads}|{parts['question']}|{parts['answer']}", damaged)
        return make_completion("Да" if score >= 0.5 else "Нет") if is_gate else make_score_completion(score)

    return script


def judge_with_errors(key: str, damaged: bool) -> float:
    """Judge with sensitivity 0.8 and specificity 0.9."""
    is_missed = hash_to_unit("planted", key) < (0.2 if damaged else 0.1)
    return 1.0 if damaged == is_missed else 0.0


def judge_perfectly(key: str, damaged: bool) -> float:
    return float(not damaged)


JUDGES: dict[str, tuple[Judge, str, str]] = {
    "constant 1": (lambda key, damaged: 1.0, "constant", "always gives 1.00"),
    "constant 0.5": (lambda key, damaged: 0.5, "constant", "always gives 0.50"),
    "random": (lambda key, damaged: round(hash_to_unit("dice", key), 2), "chance", "no better than chance"),
    "by length": (
        lambda key, damaged: min(1.0, len(key.rpartition("|")[2]) / 200),
        "length",
        "scores by the length of the answer",
    ),
    "contrary": (lambda key, damaged: float(damaged), "inverted", "worse than chance"),
}


@pytest.mark.slow("breadth: judges of no use")
@pytest.mark.parametrize(
    "name",
    [
        name if name == "by length" else pytest.param(name, marks=pytest.mark.slow("breadth: another judge of no use"))
        for name in JUDGES
    ],
)
def test_useless_judge_is_named_and_not_graded(
    name: str, server: FakeLLMServer, papers: list[Document], capsys: pytest.CaptureFixture[str]
) -> None:
    judge, outcome, words = JUDGES[name]
    server.script = make_judge_script(judge, papers)
    exam_summary = evaluate("judge", **FEWER)
    assert {prompt: exam_summary["exam"][prompt]["outcome"] for prompt in JUDGED} == dict.fromkeys(JUDGED, outcome)
    print_summary(exam_summary, "en")
    output = capsys.readouterr().out
    assert words in " ".join(output.split())
    assert "Do not act on these scores" in output
    answered = evaluate("tier2", source="sample", limit=20)
    for summary in (exam_summary, answered):
        judged = {
            name: metric
            for name, metric in summary["metrics"].items()
            if name.startswith(("avg_", "consistency", "weighted"))
        }
        opinions = {name: metric for name, metric in judged.items() if metric["judge"] is not None}
        assert {"avg_faithfulness"} <= opinions.keys()
        assert {(metric["judge"], metric["grade"]) for metric in opinions.values()} == {("failed", None)}
    for language in ("en", "ru"):
        print_summary(answered, language)
        text = capsys.readouterr().out
        rows = ("avg_faithfulness", "avg_answer_relevance")
        lines = [line for line in text.splitlines() if line.strip().startswith(rows)]
        assert len(lines) == 2 and not any(GRADES.search(line) for line in lines)
        assert {"en": "Judge failed its exam", "ru": "Судья не сдал экзамен"}[language] in lines[0]


def test_judge_with_known_error_passes(
    server: FakeLLMServer, papers: list[Document], capsys: pytest.CaptureFixture[str]
) -> None:
    server.script = make_judge_script(judge_with_errors, papers)
    before = evaluate("tier2", source="sample", limit=20)
    assert before["metrics"]["avg_faithfulness"]["judge"] == "missing"
    assert before["metrics"]["avg_faithfulness"]["grade"] is None
    exam_summary = evaluate("judge", **FEW)
    assert {prompt: exam_summary["exam"][prompt]["outcome"] for prompt in (*JUDGED, "gate")} == dict.fromkeys(
        (*JUDGED, "gate"), "sound"
    )
    for prompt in JUDGED:
        for part, truth in (("auc", 0.85), ("sensitivity", 0.8), ("specificity", 0.9)):
            metric = exam_summary["metrics"][f"exam_{part}_{prompt}"]
            assert metric["value"] == pytest.approx(truth, abs=0.08), (prompt, part)
    assert exam_summary["metrics"]["consistency_score"]["judge"] == "passed"
    assert exam_summary["metrics"]["consistency_score"]["grade"] is not None
    print_summary(exam_summary, "en")
    assert "The judge passed the exam in:" in capsys.readouterr().out
    after = evaluate("tier2", source="sample", limit=80)
    assert after["metrics"]["avg_faithfulness"]["judge"] == "passed"
    assert after["metrics"]["avg_faithfulness"]["grade"] is not None


@pytest.mark.slow("breadth: what the stopped exam asks, too")
def test_exam_calls_are_bought_once(server: FakeLLMServer, papers: list[Document]) -> None:
    server.script = make_judge_script(judge_perfectly, papers)
    evaluate("judge", **FEWER)
    calls = [json.dumps(request, sort_keys=True) for request in server.requests]
    n_repeated = 2 * FEWER["limit"]  # every logged answer is judged twice without the store
    assert len(calls) - len(set(calls)) <= n_repeated
    first = len(calls)
    evaluate("judge", **FEWER)
    assert len(server.requests) - first <= n_repeated, "the exam was bought once"


@pytest.mark.slow("breadth: another exam")
def test_changed_prompt_needs_new_exam(
    server: FakeLLMServer, papers: list[Document], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script = make_judge_script(judge_perfectly, papers)
    evaluate("judge", **FEWER)
    (tmp_path / "faithfulness.txt").write_text("Оцени иначе: $question $context $answer", encoding="utf-8")
    monkeypatch.setenv("YARUS_JUDGE__PROMPT", str(tmp_path))
    metrics = evaluate("tier2", source="sample", limit=20)["metrics"]
    assert (metrics["avg_faithfulness"]["judge"], metrics["avg_answer_relevance"]["judge"]) == ("missing", "passed")


@pytest.mark.slow("breadth: another judge of no use")
def test_judge_that_refuses_half_fails_exam(server: FakeLLMServer, papers: list[Document]) -> None:
    sound = make_judge_script(judge_perfectly, papers)

    def script(number: int, request: Document) -> Any:
        is_refused = hash_to_unit("refuses", json.dumps(request, sort_keys=True)) < 0.5
        return make_completion("Не могу оценить.") if is_refused else sound(number, request)

    server.script = script
    summary = evaluate("judge", **FEWER)
    assert summary["exam"]["faithfulness"]["outcome"] == "unreadable"
    assert summary["exam"]["faithfulness"]["scored"] < summary["exam"]["faithfulness"]["asked"]
    assert summary["metrics"]["avg_faithfulness"]["judge"] == "failed"


@pytest.mark.parametrize("n", [0, 1, 5])
def test_few_cases_give_no_outcome(server: FakeLLMServer, tmp_path: Path, n: int) -> None:
    source = load(tmp_path, f"few_{n}", [question(i) for i in range(n)] or [question(0, ground_truth_answer=None,
                  relevant_chunk_ids=None, confluence_url=None, score=None)])  # fmt: skip
    server.script = lambda number, request: (
        make_completion("Да")
        if request["model"].startswith("gate")
        else make_score_completion(float("Вот ответ" not in str(request)))
    )
    summary = evaluate("judge", source=source, bias_probes=False)
    assert {prompt_exam["outcome"] for prompt_exam in summary.get("exam", {}).values()} <= {"few"}
    assert summary["metrics"]["avg_faithfulness"]["judge"] == "missing"
    assert get_value(summary, "exam_auc_faithfulness") is None or n


def test_stopped_exam_resumes_without_repeated_calls(server: FakeLLMServer, papers: list[Document]) -> None:
    judge_script, seen = make_judge_script(judge_perfectly, papers), set[str]()

    def stops(number: int, request: Document) -> Any:
        if number > 250:
            return make_response(401, "no such key")
        seen.add(json.dumps(request, sort_keys=True))
        return judge_script(number, request)

    server.script = stops
    with pytest.raises(ModelUnavailable, match="401"):
        evaluate("judge", **FEWER)
    stopped = run_here("runs", "--json").json[0]
    n_bought = len(server.requests)
    server.script = judge_script
    resumed = evaluate("judge", resume=stopped["evaluation_id"])
    again = [json.dumps(request, sort_keys=True) for request in server.requests[n_bought:]]
    assert len(seen & {*again}) <= 64, "at most what was in flight, or received and not stored, is asked again"
    assert resumed["exam"]["faithfulness"]["outcome"] == "sound"


def test_dry_run_counts_exam_calls(server: FakeLLMServer, papers: list[Document]) -> None:
    server.script = make_judge_script(judge_perfectly, papers)
    words = [f"--set={name}={value}" for name, value in FEWER.items()]
    (plan,) = run_here("run", "judge", *words, "--dry-run", "--json").json["plans"]
    before = len(server.requests)
    evaluate("judge", **FEWER)
    roles_asked = [request["model"].split("-")[0] for request in server.requests[before:]]
    assert {role: plan["roles"][role]["calls"] for role in ("judge", "gate")} == {
        role: roles_asked.count(role) for role in ("judge", "gate")
    }


@pytest.mark.slow("prefect: a night of its own")
def test_night_tiers_use_exam_of_its_judge(server: FakeLLMServer, papers: list[Document], yarus: CommandLine) -> None:
    server.script = make_judge_script(judge_perfectly, papers)
    variables = make_role_variables(server.url, "judge", "gate") | {"YARUS_JUDGE__MODEL": "judge-of-the-night"}
    words = ("run", "nightly", "--source", "sample", "--limit", "20", "--set", "tiers=tier2,judge", "--json")
    night = yarus(*words, env=variables).json
    by_tier = {summary["tier"]: summary["metrics"] for summary in night["evaluations"]}
    assert by_tier["tier2"]["avg_faithfulness"]["judge"] == "passed"
    assert by_tier["tier2"]["avg_faithfulness"]["grade"] is not None

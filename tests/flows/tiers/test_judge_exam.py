"""Judges of known worth sit the exam: each is named for what it is, and none of no use has a grade anywhere."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import CommandLine, here
from tests.support.evaluations import (
    chance,
    evaluate,
    load,
    question,
    roles,
    rows_of,
    texts,
    use,
    value,
)
from tests.support.llm_server import FakeLLMServer, http, says, scores
from yarus.db.errors import ModelUnavailable
from yarus.flows.terminal.summary import print_summary

Document = dict[str, Any]
Truth = dict[tuple[str, str], bool]
"""Question and answer -> whether it is damaged for what is read beside the question."""
Judge = Callable[[str, bool], float]
"""(answer with what it is judged by, whether it is damaged) -> score."""
FEW = {"source": "sample", "limit": 60, "exam": 60, "probes": False}
FEWER = FEW | {"limit": 20, "exam": 24}
"""Enough to tell judges of no use, and for what is asked, not what is found."""
JUDGED = ("faithfulness", "answer_relevance", "answer_correctness", "e2e_score")
GRADES = re.compile(r"Excellent|Good|Needs attention|Отлично|Хорошо|Требует внимания")


@pytest.fixture(scope="module")
def papers(at_home_for_module: Path) -> list[Document]:
    """The examined cases, as the stand-in is given them."""
    return [row for row in rows_of(evaluate("judge", **FEW)) if row["exam"]]


@pytest.fixture
def server(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    """A judge and a gate on sockets."""
    with FakeLLMServer() as found:
        use(monkeypatch, roles(found.url, "judge", "gate"))
        yield found


def truths(papers: list[Document]) -> dict[str, Truth]:
    """By the text that a prompt reads: context, reference or neither; of the gate apart."""
    found: dict[str, Truth] = {}
    of_prompt = {"faithfulness": "context", "answer_relevance": "", "answer_correctness": "reference", "gate": "gate"}
    for case in papers:
        for item in case["exam"]:
            for prompt, reads in of_prompt.items():
                if prompt in (*item["damaged"], *item["sound"]):
                    found.setdefault(reads, {})[case["question"], item["answer"]] = prompt in item["damaged"]
    return found


def judging(judge: Judge, papers: list[Document]) -> Callable[[int, Document], Any]:
    """The server's script for a judge that knows the truth; what is no exam is judged as if it were sound."""
    known = truths(papers)

    def script(number: int, request: Document) -> Any:
        given = texts(request)
        if "answer" not in given:  # what the judge's own model would say
            return says(" ".join(given["context"].split()[:5]))
        gate = request["model"].startswith("gate")
        reads = "gate" if gate else "context" if "context" in given else "reference" if "reference" in given else ""
        damaged = known.get(reads, {}).get((given["question"], given["answer"]), False)
        score = judge(f"{reads}|{given['question']}|{given['answer']}", damaged)
        return says("Да" if score >= 0.5 else "Нет") if gate else scores(score)

    return script


def planted(key: str, damaged: bool) -> float:
    """Sensitivity 0.8, specificity 0.9."""
    missed = chance("planted", key) < (0.2 if damaged else 0.1)
    return 1.0 if damaged == missed else 0.0


def perfect(key: str, damaged: bool) -> float:
    return float(not damaged)


JUDGES: dict[str, tuple[Judge, str, str]] = {
    "constant 1": (lambda key, damaged: 1.0, "constant", "always gives 1.00"),
    "constant 0.5": (lambda key, damaged: 0.5, "constant", "always gives 0.50"),
    "random": (lambda key, damaged: round(chance("dice", key), 2), "chance", "no better than chance"),
    "by length": (
        lambda key, damaged: min(1.0, len(key.rpartition("|")[2]) / 200),
        "length",
        "goes by the length of the answer",
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
def test_a_useless_judge_is_named_and_none_of_its_numbers_is_graded(
    name: str, server: FakeLLMServer, papers: list[Document], capsys: pytest.CaptureFixture[str]
) -> None:
    judge, outcome, words = JUDGES[name]
    server.script = judging(judge, papers)
    found = evaluate("judge", **FEWER)
    assert {prompt: found["exam"][prompt]["outcome"] for prompt in JUDGED} == dict.fromkeys(JUDGED, outcome)
    print_summary(found, "en")
    shown = capsys.readouterr().out
    assert words in " ".join(shown.split())
    assert "Do not act on these scores" in shown
    answered = evaluate("tier2", source="sample", limit=20)
    for summary in (found, answered):
        judged = {n: m for n, m in summary["metrics"].items() if n.startswith(("avg_", "consistency", "weighted"))}
        opinions = {n: m for n, m in judged.items() if m["judge"] is not None}
        assert {"avg_faithfulness"} <= opinions.keys()
        assert {(m["judge"], m["grade"]) for m in opinions.values()} == {("failed", None)}
    for language in ("en", "ru"):
        print_summary(answered, language)
        told = capsys.readouterr().out
        lines = [line for line in told.splitlines() if "avg_faithfulness" in line or "avg_answer_relevance" in line]
        assert len(lines) == 2 and not any(GRADES.search(line) for line in lines)
        assert {"en": "Judge failed its exam", "ru": "Судья не сдал экзамен"}[language] in lines[0]


def test_a_judge_of_known_error_passes_with_its_sensitivity_and_specificity(
    server: FakeLLMServer, papers: list[Document], capsys: pytest.CaptureFixture[str]
) -> None:
    server.script = judging(planted, papers)
    before = evaluate("tier2", source="sample", limit=20)
    assert before["metrics"]["avg_faithfulness"]["judge"] == "missing"
    assert before["metrics"]["avg_faithfulness"]["grade"] is None
    found = evaluate("judge", **FEW)
    assert {prompt: found["exam"][prompt]["outcome"] for prompt in (*JUDGED, "gate")} == dict.fromkeys(
        (*JUDGED, "gate"), "sound"
    )
    for prompt in JUDGED:
        for part, truth in (("auc", 0.85), ("sensitivity", 0.8), ("specificity", 0.9)):
            metric = found["metrics"][f"exam_{part}_{prompt}"]
            assert metric["value"] == pytest.approx(truth, abs=0.08), (prompt, part)
    assert found["metrics"]["consistency_score"]["judge"] == "passed"
    assert found["metrics"]["consistency_score"]["grade"] is not None
    print_summary(found, "en")
    assert "The judge passed the exam in:" in capsys.readouterr().out
    after = evaluate("tier2", source="sample", limit=80)
    assert after["metrics"]["avg_faithfulness"]["judge"] == "passed"
    assert after["metrics"]["avg_faithfulness"]["grade"] is not None


@pytest.mark.slow("breadth: what the stopped exam asks, too")
def test_nothing_is_asked_twice_and_nothing_that_was_bought(server: FakeLLMServer, papers: list[Document]) -> None:
    server.script = judging(perfect, papers)
    evaluate("judge", **FEWER)
    asked = [json.dumps(request, sort_keys=True) for request in server.requests]
    again = 2 * FEWER["limit"]  # every logged answer is judged twice past the store
    assert len(asked) - len(set(asked)) <= again
    first = len(asked)
    evaluate("judge", **FEWER)
    assert len(server.requests) - first <= again, "the exam was bought once"


@pytest.mark.slow("breadth: another exam")
def test_another_wording_is_another_judge(
    server: FakeLLMServer, papers: list[Document], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script = judging(perfect, papers)
    evaluate("judge", **FEWER)
    (tmp_path / "faithfulness.txt").write_text("Оцени иначе: $question $context $answer", encoding="utf-8")
    monkeypatch.setenv("YARUS_JUDGE__PROMPT", str(tmp_path))
    found = evaluate("tier2", source="sample", limit=20)["metrics"]
    assert (found["avg_faithfulness"]["judge"], found["avg_answer_relevance"]["judge"]) == ("missing", "passed")


@pytest.mark.slow("breadth: another judge of no use")
def test_judge_that_refuses_half_fails_the_exam(server: FakeLLMServer, papers: list[Document]) -> None:
    sound = judging(perfect, papers)

    def script(number: int, request: Document) -> Any:
        refused = chance("refuses", json.dumps(request, sort_keys=True)) < 0.5
        return says("Не могу оценить.") if refused else sound(number, request)

    server.script = script
    found = evaluate("judge", **FEWER)
    assert found["exam"]["faithfulness"]["outcome"] == "unreadable"
    assert found["exam"]["faithfulness"]["scored"] < found["exam"]["faithfulness"]["asked"]
    assert found["metrics"]["avg_faithfulness"]["judge"] == "failed"


@pytest.mark.parametrize("n", [0, 1, 5])
def test_too_few_cases_say_nothing(server: FakeLLMServer, tmp_path: Path, n: int) -> None:
    source = load(tmp_path, f"few_{n}", [question(i) for i in range(n)] or [question(0, ground_truth_answer=None,
                  relevant_chunk_ids=None, confluence_url=None, score=None)])  # fmt: skip
    server.script = lambda number, request: (
        says("Да") if request["model"].startswith("gate") else scores(float("Вот ответ" not in str(request)))
    )
    found = evaluate("judge", source=source, probes=False)
    assert {of["outcome"] for of in found.get("exam", {}).values()} <= {"few"}
    assert found["metrics"]["avg_faithfulness"]["judge"] == "missing"
    assert value(found, "exam_auc_faithfulness") is None or n


def test_a_stopped_exam_goes_on_without_buying_anything_again(server: FakeLLMServer, papers: list[Document]) -> None:
    answers, seen = judging(perfect, papers), set[str]()

    def stops(number: int, request: Document) -> Any:
        if number > 250:
            return http(401, "no such key")
        seen.add(json.dumps(request, sort_keys=True))
        return answers(number, request)

    server.script = stops
    with pytest.raises(ModelUnavailable, match="401"):
        evaluate("judge", **FEWER)
    stopped = here("runs", "--json").json[0]
    bought = len(server.requests)
    server.script = answers
    resumed = evaluate("judge", resume=stopped["evaluation_id"])
    again = [json.dumps(request, sort_keys=True) for request in server.requests[bought:]]
    assert len(seen & {*again}) <= 64, "at most what was in flight, or received and not stored, is asked again"
    assert resumed["exam"]["faithfulness"]["outcome"] == "sound"


def test_a_dry_run_counts_what_the_exam_will_ask(server: FakeLLMServer, papers: list[Document]) -> None:
    server.script = judging(perfect, papers)
    words = [f"--set={name}={value}" for name, value in FEWER.items()]
    (plan,) = here("run", "judge", *words, "--dry-run", "--json").json["plans"]
    before = len(server.requests)
    evaluate("judge", **FEWER)
    asked = [request["model"].split("-")[0] for request in server.requests[before:]]
    assert {role: plan["roles"][role]["calls"] for role in ("judge", "gate")} == {
        role: asked.count(role) for role in ("judge", "gate")
    }


@pytest.mark.slow("prefect: a night of its own")
def test_the_tiers_of_a_night_know_the_exam_of_its_judge(
    server: FakeLLMServer, papers: list[Document], yarus: CommandLine
) -> None:
    server.script = judging(perfect, papers)
    variables = roles(server.url, "judge", "gate") | {"YARUS_JUDGE__MODEL": "judge-of-the-night"}
    words = ("run", "nightly", "--source", "sample", "--limit", "20", "--set", "tiers=tier2,judge", "--json")
    night = yarus(*words, env=variables).json
    by_tier = {summary["tier"]: summary["metrics"] for summary in night["evaluations"]}
    assert by_tier["tier2"]["avg_faithfulness"]["judge"] == "passed"
    assert by_tier["tier2"]["avg_faithfulness"]["grade"] is not None

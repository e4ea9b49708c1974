"""Nuggets in real evaluations: metrics, number of calls, and undefined values after a judge's mistakes."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.evaluation_history import make_source_name
from tests.support.evaluations import evaluate, get_value, load, make_role_variables, question, read_rows, set_variables
from tests.support.llm_server import FakeLLMServer, make_completion
from tests.support.nuggets import NuggetJudge, get_request_kind
from yarus.db.errors import InputError

Document = dict[str, Any]
N = 8
BOT = """
def answer(question):
    i = question.split()[3].strip(",")
    if i == "5":
        return {"answer": "Ответ не найден", "urls": [], "contexts": []}
    return {"answer": "Сдать книгу до мая, часть " + i + ".", "urls": [], "contexts": ["Сдать книгу до мая."]}
"""
NUGGETS = [
    {"nugget": "Сдать книгу", "vital": True},
    {"nugget": "Отчасти до мая", "vital": True},
    {"nugget": "Заплатить штраф", "vital": True},
    {"nugget": "до мая", "vital": False},
]
NAMES = ("nugget_recall", "nugget_recall_partial", "nugget_recall_all", "nugget_recall_all_partial")


@pytest.fixture
def judge(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    server = FakeLLMServer(script=NuggetJudge())
    server.start()
    set_variables(monkeypatch, make_role_variables(server.url, "judge"))
    yield server
    server.stop()


@pytest.fixture
def source(judge: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Load questions; 5 is declined, 6 has no answer in the corpus, 7 has no nuggets."""
    (tmp_path / "nugget_bot.py").write_text(BOT, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    more: list[Document] = [{"nuggets": NUGGETS} for _ in range(6)]
    more += [{"nuggets": NUGGETS, "answerable": False, "ground_truth_answer": None}, {}]
    return load(tmp_path, make_source_name(), [question(i, **more[i]) for i in range(N)])


def run(source: str, **more: Any) -> Document:
    return evaluate("tier3", **{"source": source, "sut": "nugget_bot:answer", "nuggets": True} | more)


def count_calls(server: FakeLLMServer) -> int:
    return sum(get_request_kind(request) == "nugget_support" for request in server.requests)


def spoil_replies(judge: FakeLLMServer, change: Callable[[Document], Any]) -> None:
    judge.script.spoil = lambda kind, texts, reply: change(reply) if kind == "nugget_support" else reply


def test_nugget_metrics_of_answers_and_refusals(judge: FakeLLMServer, source: str) -> None:
    summary = run(source)
    rows = {int(row["question_id"]): row for row in read_rows(summary)}
    assert [rows[0][name] for name in NAMES] == [1 / 3, 0.5, 0.5, 0.625]
    assert [entry["support"] for entry in rows[0]["nuggets"]] == [1, 0.5, 0, 1]
    assert [rows[5][name] for name in NAMES] == [0, 0, 0, 0]  # it declined
    assert [rows[i][name] for i in (6, 7) for name in NAMES] == [None] * 8
    assert get_value(summary, "avg_nugget_recall") == pytest.approx(5 / 3 / 6)
    assert summary["metrics"]["avg_nugget_recall"]["n_scored"] == 6
    assert count_calls(judge) == 5
    run(source)
    assert count_calls(judge) == 5  # from the store


@pytest.mark.slow("breadth: another tier")
def test_nuggets_in_tier_2(judge: FakeLLMServer, source: str) -> None:
    summary = evaluate("tier2", source=source, nuggets=True)
    assert summary["metrics"]["avg_nugget_recall"]["n_scored"] > 0


def test_nuggets_are_absent_when_not_requested(judge: FakeLLMServer, source: str) -> None:
    without_nuggets, with_nuggets = run(source, nuggets=False), run(source)
    assert "avg_nugget_recall" not in without_nuggets["metrics"] and "nuggets" not in read_rows(without_nuggets)[0]
    assert without_nuggets["comparability_key"] != with_nuggets["comparability_key"]  # the judge determines the numbers


def test_nugget_metrics_skip_nuggets_without_verdict(judge: FakeLLMServer, source: str) -> None:
    spoil_replies(judge, lambda reply: {"verdicts": [row for row in reply["verdicts"] if row["support"] != "none"]})
    row = read_rows(run(source))[0]
    assert [row[name] for name in NAMES] == [0.5, 0.75, 2 / 3, 2.5 / 3] and row["status"] == "ok"
    assert [row["support"] for row in row["nuggets"]] == [1, 0.5, None, 1]


@pytest.mark.parametrize(
    "change",
    [
        lambda reply: make_completion("Не знаю."),
        *(
            pytest.param(change, marks=pytest.mark.slow("breadth: more of what cannot be read"))
            for change in (
                lambda reply: {"verdicts": [entry | {"id": str(i)} for i, entry in enumerate(reply["verdicts"])]},
                lambda reply: {"verdicts": [entry | {"support": "very"} for entry in reply["verdicts"]]},
                lambda reply: {"verdicts": [entry | {"support": True} for entry in reply["verdicts"]]},
                lambda reply: {
                    "verdicts": [
                        entry | {"support": support} for entry in reply["verdicts"] for support in ("full", "none")
                    ]
                },
                lambda reply: {"verdicts": []},
            )
        ),
    ],
)
def test_nugget_metrics_are_none_after_unreadable_replies(
    judge: FakeLLMServer, source: str, change: Callable[[Document], Any]
) -> None:
    spoil_replies(judge, change)
    rows = read_rows(run(source))
    assert [row["status"] for row in rows[:5]] == ["parse_error"] * 5
    assert all(row[name] is None for row in rows[:5] for name in NAMES)
    assert rows[0]["e2e_score"] == 0.9 and rows[5]["nugget_recall"] == 0


@pytest.mark.slow("breadth: two evaluations")
def test_edited_nuggets_change_the_comparability_key(judge: FakeLLMServer, tmp_path: Path) -> None:
    """Otherwise nights with different nuggets would be compared."""
    keys = set()
    name = make_source_name()
    for nuggets in (NUGGETS, NUGGETS[:2], NUGGETS):
        load(tmp_path, name, [question(i, nuggets=nuggets) for i in range(3)])
        keys.add(evaluate("tier2", source=name, nuggets=True)["comparability_key"])
    assert len(keys) == 2


def test_nuggets_refuse_source_without_any(judge: FakeLLMServer, source: str, tmp_path: Path) -> None:
    name = load(tmp_path, make_source_name(), [question(0)])
    with pytest.raises(InputError, match=f"make some: yarus dataset nuggets --source {name}"):
        run(name)
    assert judge.requests == []

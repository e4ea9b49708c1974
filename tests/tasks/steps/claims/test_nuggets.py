"""Nuggets through real evaluations: what is measured, what it costs, and what a judge's mistakes leave unmeasured."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.evaluation_history import source_name
from tests.support.evaluations import evaluate, load, question, roles, rows_of, use, value
from tests.support.llm_server import FakeLLMServer, says
from tests.support.nuggets import Judge, asks_for
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
    server = FakeLLMServer(script=Judge())
    server.start()
    use(monkeypatch, roles(server.url, "judge"))
    yield server
    server.stop()


@pytest.fixture
def source(judge: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """5 is declined, 6 has no answer in the corpus, 7 has no nuggets."""
    (tmp_path / "nugget_bot.py").write_text(BOT, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    more: list[Document] = [{"nuggets": NUGGETS} for _ in range(6)]
    more += [{"nuggets": NUGGETS, "answerable": False, "ground_truth_answer": None}, {}]
    return load(tmp_path, source_name(), [question(i, **more[i]) for i in range(N)])


def run(source: str, **more: Any) -> Document:
    return evaluate("tier3", **{"source": source, "sut": "nugget_bot:answer", "nuggets": True} | more)


def asked(server: FakeLLMServer) -> int:
    return sum(asks_for(request) == "nugget_support" for request in server.requests)


def spoilt(judge: FakeLLMServer, change: Callable[[Document], Any]) -> None:
    judge.script.spoil = lambda kind, given, reply: change(reply) if kind == "nugget_support" else reply


def test_what_is_measured(judge: FakeLLMServer, source: str) -> None:
    summary = run(source)
    rows = {int(row["question_id"]): row for row in rows_of(summary)}
    assert [rows[0][name] for name in NAMES] == [1 / 3, 0.5, 0.5, 0.625]
    assert [one["support"] for one in rows[0]["nuggets"]] == [1, 0.5, 0, 1]
    assert [rows[5][name] for name in NAMES] == [0, 0, 0, 0]  # it declined
    assert [rows[i][name] for i in (6, 7) for name in NAMES] == [None] * 8
    assert value(summary, "avg_nugget_recall") == pytest.approx(5 / 3 / 6)
    assert summary["metrics"]["avg_nugget_recall"]["n_scored"] == 6
    assert asked(judge) == 5
    run(source)
    assert asked(judge) == 5  # from the store


@pytest.mark.slow("breadth: another tier")
def test_in_tier_2_too(judge: FakeLLMServer, source: str) -> None:
    summary = evaluate("tier2", source=source, nuggets=True)
    assert summary["metrics"]["avg_nugget_recall"]["n_scored"] > 0


def test_nobody_is_asked_who_did_not_ask(judge: FakeLLMServer, source: str) -> None:
    plain, with_nuggets = run(source, nuggets=False), run(source)
    assert "avg_nugget_recall" not in plain["metrics"] and "nuggets" not in rows_of(plain)[0]
    assert plain["comparability_key"] != with_nuggets["comparability_key"]  # whoever finds them decides the numbers


def test_a_nugget_without_a_verdict_is_left_out(judge: FakeLLMServer, source: str) -> None:
    spoilt(judge, lambda reply: {"verdicts": [one for one in reply["verdicts"] if one["support"] != "none"]})
    row = rows_of(run(source))[0]
    assert [row[name] for name in NAMES] == [0.5, 0.75, 2 / 3, 2.5 / 3] and row["status"] == "ok"
    assert [one["support"] for one in row["nuggets"]] == [1, 0.5, None, 1]


@pytest.mark.parametrize(
    "change",
    [
        lambda reply: says("Не знаю."),
        *(
            pytest.param(change, marks=pytest.mark.slow("breadth: more of what cannot be read"))
            for change in (
                lambda reply: {"verdicts": [one | {"id": str(i)} for i, one in enumerate(reply["verdicts"])]},
                lambda reply: {"verdicts": [one | {"support": "very"} for one in reply["verdicts"]]},
                lambda reply: {"verdicts": [one | {"support": True} for one in reply["verdicts"]]},
                lambda reply: {
                    "verdicts": [one | {"support": s} for one in reply["verdicts"] for s in ("full", "none")]
                },
                lambda reply: {"verdicts": []},
            )
        ),
    ],
)
def test_a_judge_that_cannot_be_read_measures_nothing(
    judge: FakeLLMServer, source: str, change: Callable[[Document], Any]
) -> None:
    spoilt(judge, change)
    rows = rows_of(run(source))
    assert [row["status"] for row in rows[:5]] == ["parse_error"] * 5
    assert all(row[name] is None for row in rows[:5] for name in NAMES)
    assert rows[0]["e2e_score"] == 0.9 and rows[5]["nugget_recall"] == 0


@pytest.mark.slow("breadth: two evaluations")
def test_edited_nuggets_are_another_case_set(judge: FakeLLMServer, tmp_path: Path) -> None:
    """Otherwise two nights would be compared that ask for different things."""
    keys = set()
    name = source_name()
    for nuggets in (NUGGETS, NUGGETS[:2], NUGGETS):
        load(tmp_path, name, [question(i, nuggets=nuggets) for i in range(3)])
        keys.add(evaluate("tier2", source=name, nuggets=True)["comparability_key"])
    assert len(keys) == 2


def test_a_source_without_any_is_refused_before_anything_is_asked(
    judge: FakeLLMServer, source: str, tmp_path: Path
) -> None:
    name = load(tmp_path, source_name(), [question(0)])
    with pytest.raises(InputError, match=f"make some: yarus dataset nuggets --source {name}"):
        run(name)
    assert judge.requests == []

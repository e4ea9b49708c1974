"""`--failed`: only the cases that failed are evaluated again, and the evaluation of them is nobody's yesterday."""

import json
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from tests.support.command_line import Document, here, refused
from tests.support.evaluation_history import source_name, with_cases
from tests.support.evaluations import evaluate, load, question, rows_of, steady, use
from tests.support.llm_server import JSON, Do, FakeLLMServer, http
from yarus.db import journal
from yarus.db.errors import InputError
from yarus.tasks.config.parameters import Tier1, Tier3
from yarus.tasks.evaluation.repeats import NothingFailedError, parameters_of_repeated
from yarus.tasks.report.entries import newest

N = 12
DOWN = {0, 1, 2}
"""Questions that the system answers with HTTP 500 at first."""
MUTE = 5
"""The question whose answer the judge says nothing of at first."""


def which(request: Document) -> int:
    return int(request["question"].split()[3].strip(","))


def answered(request: Document) -> bytes:
    return http(200, json.dumps({"answer": f"Сдать книгу {which(request)}."}, ensure_ascii=False), JSON)


@pytest.fixture
def first(judge: FakeLLMServer, service: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Document:
    """An evaluation in which four cases fail: three in the system, one in the judge."""

    def judges(number: int, request: Document) -> bytes | Do:
        said = request["messages"][0]["content"]
        return http(200, "{}") if f"Сдать книгу {MUTE}." in said else steady(number, request)

    service.script = lambda number, request: http(500, "broken") if which(request) in DOWN else answered(request)
    judge.script = judges
    use(monkeypatch, {"YARUS_SUT_LABEL": "v1"})
    source = load(tmp_path, source_name(), [question(i) for i in range(N)])
    return evaluate("tier3", source=source, sut=service.url, k=3, name="первый")


@pytest.mark.slow("wait: retries of a server that fails")
def test_only_what_failed_is_asked_and_what_was_received_is_not_bought_again(
    first: Document, judge: FakeLLMServer, service: FakeLLMServer, engine: Engine
) -> None:
    assert {int(row["question_id"]) for row in rows_of(first) if row["status"] != "ok"} == {*DOWN, MUTE}
    service.script = lambda number, request: http(500, "broken") if which(request) == 0 else answered(request)
    judge.script = steady
    asked, judged = len(service.requests), len(judge.requests)
    again = evaluate("tier3", source=first["source"], failed="last")
    assert sorted(which(request) for request in service.requests[asked:])[-3:] == [1, 2, MUTE]
    assert {which(request) for request in service.requests[asked:]} == {*DOWN, MUTE}
    assert {int(row["question_id"]) for row in rows_of(again)} == {*DOWN, MUTE}
    assert again["failed_again"] == {"of": first["evaluation_id"], "n": 4, "asked": 4, "succeeded": 3}
    assert (again["system"]["k"], again["name"]) == (3, None)  # its parameters; what it was called is its own
    assert len(judge.requests) > judged
    # Once more: of the evaluation of what failed, the one that still does; then none.
    service.script = lambda number, request: answered(request)
    bought = len(judge.requests)
    last = evaluate("tier3", source=first["source"], failed="last")
    assert last["failed_again"] == {"of": again["evaluation_id"], "n": 1, "asked": 1, "succeeded": 1}
    assert len(judge.requests) - bought <= 2  # one answer, by as many prompts
    with pytest.raises(NothingFailedError, match="no case failed"):
        parameters_of_repeated(engine, Tier3(source=first["source"], failed="last"))
    ids = [again["evaluation_id"], last["evaluation_id"]]
    _is_aside(engine, first, ids)
    said = here("show", again["evaluation_id"]).out
    assert f"3 из 4 вопросов, которые не удались в {first['evaluation_id']}" in " ".join(said.split())
    nothing = here("run", "tier3", "--source", first["source"], "--failed")
    assert (nothing.code, "прогонять снова нечего" in nothing.out) == (0, True)
    document = here("run", "tier3", "--source", first["source"], "--failed", "--json")
    assert (document.code, document.json) == (0, {"failed_in": last["evaluation_id"], "failed": 0})
    with engine.connect() as connection:
        begun = connection.scalar(
            text("SELECT count(*) FROM yarus.evaluation WHERE source = :s"), {"s": first["source"]}
        )
    assert begun == 3


def _is_aside(engine: Engine, first: Document, ids: list[str]) -> None:
    """It has a key of its own and is no baseline, no night of a history, no news of a report."""
    for name in ids:
        row = journal.find(engine, name)
        assert row["comparability_key"] != first["comparability_key"]
        assert row["accepted_at"] is None
        with pytest.raises(InputError, match=r"is a part of|is invalid"):
            journal.accept(engine, name)
        refused_as = rf"{name} is of the cases that failed"
        for mark in ("again", "confirms"):
            with pytest.raises(InputError, match=f"{refused_as}|is invalid; name"):
                parameters_of_repeated(engine, Tier3(**{mark: name}))  # type: ignore[arg-type]
    assert not {*ids} & {*newest(engine)}
    with engine.connect() as connection:
        for view in ("latest", "trend"):
            shown = set(connection.scalars(text(f"SELECT evaluation_id FROM yarus.{view}")))
            assert not {*ids} & shown, view


def test_the_wrong_one_is_refused(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    source = source_name()
    broken = with_cases(engine, tmp_path, source, {"mrr": [None, 1.0], "status": ["sut_error", "ok"]},
                        statuses={"ok": 1, "sut_error": 1}, parameters={"source": source})  # fmt: skip
    bad = with_cases(engine, tmp_path, source, {"mrr": [0.0, 0.0]}, night=1, statuses={"ok": 2})
    with pytest.raises(NothingFailedError):  # bad scores are results
        parameters_of_repeated(engine, Tier1(failed=bad))
    for asked, said in (
        (Tier3(failed=broken), f"it is of tier1 and '{source}': yarus run tier1 --failed {broken}"),
        (Tier1(failed=broken, source="other"), f"it is of tier1 and '{source}'"),
        (Tier1(failed="last", source="nowhere"), "no finished evaluation of tier1 and 'nowhere' yet"),
        (Tier1(failed=broken, confirms=bad), "--confirms and --failed exclude each other"),
    ):
        with pytest.raises(InputError, match=said):
            parameters_of_repeated(engine, asked)
    now, _ = parameters_of_repeated(engine, Tier1(failed=broken, retriever="fulltext", name="снова"))
    assert (now.source, now.retriever, now.name, now.failed) == (source, "fulltext", "снова", broken)
    refused(here("run", "tier0", "--failed"), 2, ("failed",))

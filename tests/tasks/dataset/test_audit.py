"""Label audit: each kind of defect on small examples; positive and negative pairs of near-duplicates."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.support.evaluations import evaluate, load, question
from yarus.db.errors import InputError
from yarus.db.source_rows import Corpus
from yarus.tasks.cases.text import normalise_question
from yarus.tasks.dataset import audit as defects
from yarus.tasks.dataset.audit import KINDS, audit_labels, find_defects
from yarus.tasks.dataset.duplicates import MAX_BUCKET_SIZE, are_near_duplicates, find_near_duplicates

PAGE = "https://wiki.example/pages/viewpage.action?pageId={}"
CORPUS = Corpus(
    ["c0", "c1"], [PAGE.format(0), PAGE.format(1)], ["Стипендию платят раз в месяц.", "Общежитие у леса."], None
)


def row(name: str, question_text: str | None = "Когда платят стипендию?", **more: Any) -> dict[str, Any]:
    empty = {"answer": None, "confluence_url": None, "score": None, "user_id": None, "created_at": None}
    return {"question_id": name, "question": question_text} | empty | more


def defect_ids(*rows: dict[str, Any], **more: Any) -> dict[str, list[Any] | None]:
    """Return kind -> ids."""
    defects = find_defects(rows, CORPUS, more.get("rankings", {}), more.get("wording", {}))
    return {kind: None if items is None else [row["question_id"] for row in items] for kind, items in defects.items()}


def test_audit_finds_no_defects_in_a_correct_log() -> None:
    rows = [row("1", confluence_url=PAGE.format(0)), row("2", "Где общежитие?", confluence_url=f"{PAGE.format(1)}#x")]
    assert defect_ids(*rows) == {kind: None if kind == "disputed" else [] for kind in KINDS}
    assert defect_ids() == defect_ids(*rows)


def test_audit_finds_stale_labels() -> None:
    assert defect_ids(row("1", confluence_url=PAGE.format(7)))["stale"] == ["1"]
    assert defect_ids(row("1", confluence_url="None"), row("2", "Где лес?", confluence_url=""))["stale"] == []
    assert defect_ids(row("1", relevant_chunk_ids={"c0": 3, "c9": 1}, relevant_urls=[PAGE.format(8)]))["stale"] == [
        "1",
        "1",
    ]


def test_audit_finds_empty_and_duplicate_questions() -> None:
    rows = [
        row("1"),
        row("2", "когда  платят СТИПЕНДИЮ"),
        row("3", "?!"),
        row("4", None),
        row("5", " "),
        row("6", "🙂"),
    ]
    assert defect_ids(*rows)["empty"] == ["3", "4", "5", "6"]
    assert defect_ids(*rows)["duplicates"] == ["2"]
    assert defect_ids(*rows)["near_duplicates"] == []


def test_audit_finds_contradictions() -> None:
    assert defect_ids(row("1", score=5), row("2", score=1))["contradictions"] == ["2"]
    assert defect_ids(row("1", score=5), row("2", score=None))["contradictions"] == []
    pages = [row("1", score=5, confluence_url=PAGE.format(0)), row("2", score=5, confluence_url=PAGE.format(1))]
    assert defect_ids(*pages)["contradictions"] == ["2"]
    for label, first, second in (("ground_truth_show", True, False), ("answerable", False, True),
                              ("relevant_chunk_ids", ["c0"], ["c1"])):  # fmt: skip
        assert defect_ids(row("1", **{label: first}), row("2", **{label: second}))["contradictions"] == ["2"]
    assert (
        defect_ids(row("1", relevant_chunk_ids=["c0"]), row("2", relevant_chunk_ids=["c1", "c0"]))["contradictions"]
        == []
    )
    assert defect_ids(row("1", answerable=False, relevant_chunk_ids=["c0"]))["contradictions"] == ["1"]


def test_audit_finds_leaked_answers() -> None:
    answer = "Её платят раз в месяц, до двадцать пятого числа."
    cached = [row("1", score=5, answer=answer), row("2", ground_truth_answer=answer, origin="manual")]
    assert defect_ids(*cached)["leaked"] == ["2"]
    assert defect_ids(*reversed(cached))["leaked"] == ["2"]  # by id if there is no time
    assert defect_ids(row("1", score=1, answer=answer), cached[1])["leaked"] == []
    assert defect_ids(row("1", f"Правда ли: {answer}", ground_truth_answer=answer, origin="manual"))["leaked"] == ["1"]
    wording = {"gate": f"Пример. Вопрос: Когда платят стипендию? Ответ: {answer}"}
    assert defect_ids(row("1"), wording=wording)["leaked"] == ["1"]
    assert defect_ids(row("1", "Где?"), wording={"gate": "Где?"})["leaked"] == []  # too short for a match


def test_audit_finds_disputed_labels() -> None:
    rows = [row("1"), row("2", "Где лес?"), row("3", "Где общежитие?")]
    dense = {"1": (["c0"], ["c1"]), "2": (["c0"], ["c1"])}
    fulltext = {"1": (["c0"], []), "2": (["c0"], ["c1", "c0"])}
    assert defect_ids(*rows, rankings={"dense": dense, "fulltext": fulltext})["disputed"] == ["1"]
    assert defect_ids(*rows, rankings={"dense": dense})["disputed"] == ["1", "2"]
    deep = {"1": (["c0"], [f"x{i}" for i in range(10)] + ["c0"])}
    assert defect_ids(*rows, rankings={"deep": deep})["disputed"] == ["1"]


def test_audit_finds_off_topic_questions_and_personal_data() -> None:
    rows = [
        row("1"),
        row("2", "Сколько весит взрослый динозавр?"),
        row("3", "А где?"),
        row("4", "мой тел. 8 927 123-45-67"),
    ]
    ids_by_kind = defect_ids(*rows)
    assert ids_by_kind["off_topic"] == ["2", "4"] and ids_by_kind["personal"] == ["4"]
    public = Corpus(["c"], [None], ["Деканат: 8 927 123-45-67"], None)
    assert defects.find_personal_data([rows[3]], public) == []  # text of the corpus is public


SIMILAR_PAIRS = [
    ("когда начинается сессия", "когда начинаеться сессия"),
    ("как подключиться к вайфаю", "как подключится к вай-фай"),
    ("почему не пришла стипендия", "почему стипендия не пришла"),
    ("где взять справку об обучении", "где  взять справки об обучении?"),
    ("how do i reset my password", "how do I reset my pasword"),
]
DIFFERENT_PAIRS = [
    ("когда начинается зимняя сессия", "когда начинается летняя сессия"),
    ("где находится корпус 1", "где находится корпус 2"),
    ("до какого числа платить за общежитие", "до какого числа платить за обучение"),
    ("можно ли пересдать экзамен", "можно ли не пересдавать экзамен"),
    ("when did the movement of the church begin", "where did the movement of the church begin"),
    ("как заказать справку в армию", "как заказать справку в налоговую"),
]


@pytest.mark.parametrize(("first", "second"), SIMILAR_PAIRS)
def test_near_duplicates_match_similar_questions(first: str, second: str) -> None:
    keys = [normalise_question(first), normalise_question(second)]
    assert are_near_duplicates(*keys)
    assert [pair[:2] for pair in find_near_duplicates(keys)] == [(0, 1)]


@pytest.mark.parametrize(("first", "second"), DIFFERENT_PAIRS)
def test_near_duplicates_reject_different_questions(first: str, second: str) -> None:
    keys = [normalise_question(first), normalise_question(second)]
    assert not are_near_duplicates(*keys) and find_near_duplicates(keys) == []


def test_near_duplicates_handle_few_and_many_texts() -> None:
    assert find_near_duplicates([]) == find_near_duplicates(["а"]) == find_near_duplicates(["", "", "аб", "аб"]) == []
    assert find_near_duplicates(["одно и то же"] * 3) == []  # equal texts are duplicates
    crowd = [
        f"как получить справку номер {'абвгдежзик'[i % 10]}{'лмнопрстуф'[i // 10]}" for i in range(2 * MAX_BUCKET_SIZE)
    ]
    pairs = find_near_duplicates([*crowd, "совсем другой вопрос о столовой", "совсем другой вопрос о столовй"])
    assert (60, 61) in {pair[:2] for pair in pairs}
    assert all(first < second and 0.8 <= score <= 1 for first, second, score in pairs)


def test_audit_returns_document(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    name = load(tmp_path, "audited", [question(i) for i in range(10)])
    evaluated = evaluate("tier1", source=name)
    document = audit_labels(name, [evaluated["evaluation_id"]], examples=2)
    assert list(document)[:4] == ["source", "n_questions", "n_chunks", "evaluations"]
    assert set(KINDS) <= set(document)
    assert all({"count", "examples"} <= set(document[kind]) for kind in KINDS)
    assert all(len(document[kind]["examples"]) <= 2 for kind in KINDS)
    assert document["disputed"]["count"] == 0
    tier0 = evaluate("tier0", source=name)
    with pytest.raises(InputError, match="tier0 has no rankings"):
        audit_labels(name, [tier0["evaluation_id"]])
    with pytest.raises(InputError, match="its source is 'audited', not 'sample'"):
        audit_labels("sample", [evaluated["evaluation_id"]])


@pytest.mark.slow("breadth: two audits")
def test_audit_masks_personal_data_recognised_by_context(at_home: Path, tmp_path: Path) -> None:
    """The audit does not print a number, name or passport that is recognised only by the words before it."""
    texts = {
        "12345": "Мой студенческий билет {}",
        "Аксинья": "Меня зовут {}, где деканат?",
        "3604 123456": "паспорт {}",
    }
    rows = [question(i, question=text.format(personal)) for i, (personal, text) in enumerate(texts.items())]
    document = audit_labels(load(tmp_path, "told", rows))
    examples = document["personal"]["examples"]
    assert [location["kind"] for location in examples] == ["id", "name", "id"]
    assert not [personal for personal in texts if personal in str(document)]
    assert all(location["text"] in location["question"] for location in examples)  # both have the same pseudonym

"""Each kind of the audit on rows by hand, and near-duplicates by pairs that are some and pairs that are none."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.support.evaluations import evaluate, load, question
from yarus.db.errors import InputError
from yarus.db.source_rows import Corpus
from yarus.tasks.cases.text import normalised
from yarus.tasks.dataset import audit as defects
from yarus.tasks.dataset.audit import KINDS, audit, find_all
from yarus.tasks.dataset.duplicates import CROWD, alike, near_duplicates

PAGE = "https://wiki.example/pages/viewpage.action?pageId={}"
CORPUS = Corpus(
    ["c0", "c1"], [PAGE.format(0), PAGE.format(1)], ["Стипендию платят раз в месяц.", "Общежитие у леса."], None
)


def row(name: str, asked: str | None = "Когда платят стипендию?", **more: Any) -> dict[str, Any]:
    empty = {"answer": None, "confluence_url": None, "score": None, "user_id": None, "created_at": None}
    return {"question_id": name, "question": asked} | empty | more


def found(*rows: dict[str, Any], **more: Any) -> dict[str, list[Any] | None]:
    """Kind -> ids."""
    places = find_all(rows, CORPUS, more.get("rankings", {}), more.get("wording", {}))
    return {kind: None if of is None else [place["question_id"] for place in of] for kind, of in places.items()}


def test_a_sound_log_has_nothing_wrong() -> None:
    rows = [row("1", confluence_url=PAGE.format(0)), row("2", "Где общежитие?", confluence_url=f"{PAGE.format(1)}#x")]
    assert found(*rows) == {kind: None if kind == "disputed" else [] for kind in KINDS}
    assert found() == found(*rows)


def test_stale() -> None:
    assert found(row("1", confluence_url=PAGE.format(7)))["stale"] == ["1"]
    assert found(row("1", confluence_url="None"), row("2", "Где лес?", confluence_url=""))["stale"] == []
    assert found(row("1", relevant_chunk_ids={"c0": 3, "c9": 1}, relevant_urls=[PAGE.format(8)]))["stale"] == ["1", "1"]


def test_empty_and_duplicates() -> None:
    rows = [
        row("1"),
        row("2", "когда  платят СТИПЕНДИЮ"),
        row("3", "?!"),
        row("4", None),
        row("5", " "),
        row("6", "🙂"),
    ]
    assert found(*rows)["empty"] == ["3", "4", "5", "6"]
    assert found(*rows)["duplicates"] == ["2"]
    assert found(*rows)["near_duplicates"] == []


def test_contradictions() -> None:
    assert found(row("1", score=5), row("2", score=1))["contradictions"] == ["2"]
    assert found(row("1", score=5), row("2", score=None))["contradictions"] == []
    pages = [row("1", score=5, confluence_url=PAGE.format(0)), row("2", score=5, confluence_url=PAGE.format(1))]
    assert found(*pages)["contradictions"] == ["2"]
    for label, one, other in (("ground_truth_show", True, False), ("answerable", False, True),
                              ("relevant_chunk_ids", ["c0"], ["c1"])):  # fmt: skip
        assert found(row("1", **{label: one}), row("2", **{label: other}))["contradictions"] == ["2"]
    assert found(row("1", relevant_chunk_ids=["c0"]), row("2", relevant_chunk_ids=["c1", "c0"]))["contradictions"] == []
    assert found(row("1", answerable=False, relevant_chunk_ids=["c0"]))["contradictions"] == ["1"]


def test_leaks() -> None:
    answer = "Её платят раз в месяц, до двадцать пятого числа."
    cached = [row("1", score=5, answer=answer), row("2", ground_truth_answer=answer, origin="manual")]
    assert found(*cached)["leaked"] == ["2"]
    assert found(*reversed(cached))["leaked"] == ["2"]  # by id, where there is no time
    assert found(row("1", score=1, answer=answer), cached[1])["leaked"] == []
    assert found(row("1", f"Правда ли: {answer}", ground_truth_answer=answer, origin="manual"))["leaked"] == ["1"]
    wording = {"gate": f"Пример. Вопрос: Когда платят стипендию? Ответ: {answer}"}
    assert found(row("1"), wording=wording)["leaked"] == ["1"]
    assert found(row("1", "Где?"), wording={"gate": "Где?"})["leaked"] == []  # too short to say anything


def test_disputed() -> None:
    rows = [row("1"), row("2", "Где лес?"), row("3", "Где общежитие?")]
    dense = {"1": (["c0"], ["c1"]), "2": (["c0"], ["c1"])}
    fulltext = {"1": (["c0"], []), "2": (["c0"], ["c1", "c0"])}
    assert found(*rows, rankings={"dense": dense, "fulltext": fulltext})["disputed"] == ["1"]
    assert found(*rows, rankings={"dense": dense})["disputed"] == ["1", "2"]
    deep = {"1": (["c0"], [f"x{i}" for i in range(10)] + ["c0"])}
    assert found(*rows, rankings={"deep": deep})["disputed"] == ["1"]


def test_off_topic_and_personal() -> None:
    rows = [
        row("1"),
        row("2", "Сколько весит взрослый динозавр?"),
        row("3", "А где?"),
        row("4", "мой тел. 8 927 123-45-67"),
    ]
    places = found(*rows)
    assert places["off_topic"] == ["2", "4"] and places["personal"] == ["4"]
    public = Corpus(["c"], [None], ["Деканат: 8 927 123-45-67"], None)
    assert defects.personal([rows[3]], public) == []  # what the corpus publishes is no secret


SAME = [
    ("когда начинается сессия", "когда начинаеться сессия"),
    ("как подключиться к вайфаю", "как подключится к вай-фай"),
    ("почему не пришла стипендия", "почему стипендия не пришла"),
    ("где взять справку об обучении", "где  взять справки об обучении?"),
    ("how do i reset my password", "how do I reset my pasword"),
]
OTHER = [
    ("когда начинается зимняя сессия", "когда начинается летняя сессия"),
    ("где находится корпус 1", "где находится корпус 2"),
    ("до какого числа платить за общежитие", "до какого числа платить за обучение"),
    ("можно ли пересдать экзамен", "можно ли не пересдавать экзамен"),
    ("when did the movement of the church begin", "where did the movement of the church begin"),
    ("как заказать справку в армию", "как заказать справку в налоговую"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_near_duplicates(one: str, other: str) -> None:
    keys = [normalised(one), normalised(other)]
    assert alike(*keys)
    assert [pair[:2] for pair in near_duplicates(keys)] == [(0, 1)]


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_questions_that_only_look_alike(one: str, other: str) -> None:
    keys = [normalised(one), normalised(other)]
    assert not alike(*keys) and near_duplicates(keys) == []


def test_no_text_and_many_texts() -> None:
    assert near_duplicates([]) == near_duplicates(["а"]) == near_duplicates(["", "", "аб", "аб"]) == []
    assert near_duplicates(["одно и то же"] * 3) == []  # equal ones are duplicates
    crowd = [f"как получить справку номер {'абвгдежзик'[i % 10]}{'лмнопрстуф'[i // 10]}" for i in range(2 * CROWD)]
    pairs = near_duplicates([*crowd, "совсем другой вопрос о столовой", "совсем другой вопрос о столовй"])
    assert (60, 61) in {pair[:2] for pair in pairs}
    assert all(first < second and 0.8 <= score <= 1 for first, second, score in pairs)


def test_the_document(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    name = load(tmp_path, "audited", [question(i) for i in range(10)])
    ran = evaluate("tier1", source=name)
    document = audit(name, [ran["evaluation_id"]], examples=2)
    assert list(document)[:4] == ["source", "n_questions", "n_chunks", "evaluations"]
    assert set(KINDS) <= set(document)
    assert all({"count", "examples"} <= set(document[kind]) for kind in KINDS)
    assert all(len(document[kind]["examples"]) <= 2 for kind in KINDS)
    assert document["disputed"]["count"] == 0
    tier0 = evaluate("tier0", source=name)
    with pytest.raises(InputError, match="tier0 has no rankings"):
        audit(name, [tier0["evaluation_id"]])
    with pytest.raises(InputError, match="its source is 'audited', not 'sample'"):
        audit("sample", [ran["evaluation_id"]])


@pytest.mark.slow("breadth: two audits")
def test_what_only_its_words_give_away_is_shown_nowhere(at_home: Path, tmp_path: Path) -> None:
    """A number, name or passport that is personal data by what stands before it is not printed without those words."""
    texts = {
        "12345": "Мой студенческий билет {}",
        "Аксинья": "Меня зовут {}, где деканат?",
        "3604 123456": "паспорт {}",
    }
    rows = [question(i, question=text.format(told)) for i, (told, text) in enumerate(texts.items())]
    document = audit(load(tmp_path, "told", rows))
    examples = document["personal"]["examples"]
    assert [place["kind"] for place in examples] == ["id", "name", "id"]
    assert not [told for told in texts if told in str(document)]
    assert all(place["text"] in place["question"] for place in examples)  # the same pseudonym, of the question's own

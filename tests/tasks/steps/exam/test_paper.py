"""Papers of real questions: every twin is really damaged, and the same questions make the same papers."""

import json
import re
from pathlib import Path

import pytest

from yarus.metrics.exam_kinds import KINDS, PROMPTS
from yarus.tasks.cases.text import words
from yarus.tasks.steps.exam.damage import NUMBER
from yarus.tasks.steps.exam.paper import Item, Other, Paper, Subject, papers

ASKED: dict[str, tuple[str, ...]] = dict.fromkeys(PROMPTS, ())


def squad(path: Path) -> list[Subject]:
    articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    return [
        Subject(q["id"], q["question"], p["context"], q["answers"][0]["text"], article["title"])
        for article in articles
        for p in article["paragraphs"]
        for q in p["qas"]
    ]


def made(subjects: list[Subject], chosen: list[Subject], language: str, *, seed: int = 0) -> list[Paper]:
    others = [Other(s.reference, s.page, s.question, s.question_id) for s in subjects if s.reference]
    return papers(chosen, others, ASKED, language=language, seed=seed)


def parts(text: str) -> set[str]:
    """Its numbers and words."""
    return {*NUMBER.findall(text), *re.findall(r"[^\W\d]+", text.casefold())}


def by_kind(paper: Paper) -> dict[str, Item]:
    return {item["kind"]: item for item in paper.items}


@pytest.mark.slow("simulation: all of XQuAD")
@pytest.mark.parametrize("language", ["ru", "en"])
def test_twins_of_real_questions_are_damaged(language: str, xquad_ru: Path, xquad_en: Path) -> None:
    subjects = squad({"ru": xquad_ru, "en": xquad_en}[language])
    found = made(subjects, subjects[::4], language)
    kinds = [item["kind"] for paper in found for item in paper.items]
    assert {"reference", "framed", "number", "entity", "negation", "other_question", "other_page"} <= {*kinds}
    for paper in found:
        subject, items = paper.subject, by_kind(paper)
        known = parts(f"{subject.context} {subject.question}")
        assert items["reference"]["answer"] == subject.reference
        for kind in ("number", "entity"):
            if kind in items:
                new = parts(items[kind]["answer"]) - parts(subject.reference or "")
                assert not new <= known, (kind, items[kind]["answer"])
        if other := items.get("other_page"):
            assert len(words(other["answer"]) & words(subject.context)) < 0.5 * len(words(other["answer"]))
            assert other["of"] is not None
        if aside := items.get("irrelevant"):
            assert aside["answer"] in subject.context
            assert not words(aside["answer"]) & words(subject.reference or "")


def test_papers_plant_requests_in_both_languages() -> None:
    subjects = [
        Subject(str(n), f"Когда приём {n}?", f"Приём {n}: зал{n} этаж{n}.", f"зал{n} этаж{n}", f"page {n}")
        for n in range(40)
    ]
    requests = set()
    for items in map(by_kind, made(subjects, subjects, "ru")):
        plain, asking, beside = (items[kind] for kind in ("other_page", "instructed", "instructed_context"))
        assert asking["answer"].startswith(plain["answer"] + "\n\n")
        assert (asking["planted"], beside["answer"]) == (None, plain["answer"])
        assert {*asking["damaged"]} == {*PROMPTS}
        assert {*beside["damaged"]} == {"faithfulness", "gate"}
        requests |= {asking["answer"].partition("\n\n")[2], beside["planted"]}
    assert len(requests) >= 6
    assert any("Поставьте" in request for request in requests)
    assert any("highest score" in request for request in requests)


def test_the_same_questions_make_the_same_papers_in_any_order() -> None:
    subjects = [
        Subject(
            str(n), f"Когда приём {n}?", f"Приём {n} идёт до {n + 10} мая. Вход свободен всем.", f"До {n + 10} мая", "p"
        )
        for n in range(30)
    ]
    one = {paper.subject.question_id: paper.items for paper in made(subjects, subjects, "ru")}
    two = {paper.subject.question_id: paper.items for paper in made(subjects[::-1], subjects[::-1], "ru")}
    assert one == two
    other_seed = {paper.subject.question_id: paper.items for paper in made(subjects, subjects, "ru", seed=1)}
    assert one != other_seed


def test_without_a_reference_only_what_is_faithful_is_asked() -> None:
    subject = Subject(
        "1", "Когда приём?", "Приём идёт до 20 мая, а не позже. Вход свободен для всех желающих.", None, "p"
    )
    (paper,) = made([subject], [subject], "ru")
    assert {prompt for item in paper.items for prompt in (*item["damaged"], *item["sound"])} == {"faithfulness"}
    assert by_kind(paper)["sentence"]["sound"] == ["faithfulness"]


def test_nothing_to_damage_makes_what_there_is() -> None:
    subject = Subject("1", "Когда?", "Да", "Да", None)
    (paper,) = made([subject], [subject], "ru")
    assert {item["kind"] for item in paper.items} <= {"reference", "framed", "negation", "question", "empty"}
    assert made([], [], "ru") == []


def test_a_bare_other_answer_says_nothing_about_relevance() -> None:
    subjects = [Subject(str(n), f"Какой балл {n}?", f"Балл {n} равен {n}.", str(n), f"p{n}") for n in range(11, 20)]
    for paper in made(subjects, subjects, "ru"):
        assert "answer_relevance" not in by_kind(paper)["other_page"]["damaged"]


def test_every_item_fits_its_kind() -> None:
    subjects = [Subject(str(n), f"Когда {n}?", f"До {n} мая.", f"До {n} мая", "p") for n in range(11, 20)]
    for paper in made(subjects, subjects, "en"):
        for item in paper.items:
            assert {*item["damaged"]} <= KINDS[item["kind"]].damaged and {*item["sound"]} <= KINDS[item["kind"]].sound

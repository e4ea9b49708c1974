"""Papers of real questions: damaged answers are really damaged, and papers are reproducible."""

import json
import re
from pathlib import Path

import pytest

from yarus.metrics.exam_kinds import KINDS, PROMPTS
from yarus.tasks.cases.text import word_stems
from yarus.tasks.steps.exam.damage import NUMBER
from yarus.tasks.steps.exam.paper import AnsweredQuestion, ExaminedQuestion, Item, Paper, write_papers

ASKED: dict[str, tuple[str, ...]] = dict.fromkeys(PROMPTS, ())


def read_squad(path: Path) -> list[ExaminedQuestion]:
    articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    return [
        ExaminedQuestion(
            question["id"], question["question"], paragraph["context"], question["answers"][0]["text"], article["title"]
        )
        for article in articles
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    ]


def make_papers(
    subjects: list[ExaminedQuestion], chosen: list[ExaminedQuestion], language: str, *, seed: int = 0
) -> list[Paper]:
    answered = [
        AnsweredQuestion(subject.reference, subject.page, subject.question, subject.question_id)
        for subject in subjects
        if subject.reference
    ]
    return write_papers(chosen, answered, ASKED, language=language, seed=seed)


def parts(text: str) -> set[str]:
    """Return the numbers and words of a text."""
    return {*NUMBER.findall(text), *re.findall(r"[^\W\d]+", text.casefold())}


def by_kind(paper: Paper) -> dict[str, Item]:
    return {item["kind"]: item for item in paper.items}


@pytest.mark.slow("simulation: all of XQuAD")
@pytest.mark.parametrize("language", ["ru", "en"])
def test_papers_of_real_questions_are_damaged(language: str, xquad_ru: Path, xquad_en: Path) -> None:
    subjects = read_squad({"ru": xquad_ru, "en": xquad_en}[language])
    drawn_papers = make_papers(subjects, subjects[::4], language)
    kinds = [item["kind"] for paper in drawn_papers for item in paper.items]
    assert {"reference", "framed", "number", "entity", "negation", "other_question", "other_page"} <= {*kinds}
    for paper in drawn_papers:
        subject, items = paper.subject, by_kind(paper)
        known_parts = parts(f"{subject.context} {subject.question}")
        assert items["reference"]["answer"] == subject.reference
        for kind in ("number", "entity"):
            if kind in items:
                new = parts(items[kind]["answer"]) - parts(subject.reference or "")
                assert not new <= known_parts, (kind, items[kind]["answer"])
        if other_item := items.get("other_page"):
            assert len(word_stems(other_item["answer"]) & word_stems(subject.context)) < 0.5 * len(
                word_stems(other_item["answer"])
            )
            assert other_item["of"] is not None
        if unrelated := items.get("irrelevant"):
            assert unrelated["answer"] in subject.context
            assert not word_stems(unrelated["answer"]) & word_stems(subject.reference or "")


def test_papers_plant_requests_in_both_languages() -> None:
    subjects = [
        ExaminedQuestion(str(n), f"Когда приём {n}?", f"Приём {n}: зал{n} этаж{n}.", f"зал{n} этаж{n}", f"page {n}")
        for n in range(40)
    ]
    requests = set()
    for items in map(by_kind, make_papers(subjects, subjects, "ru")):
        base, instructed, context = (items[kind] for kind in ("other_page", "instructed", "instructed_context"))
        assert instructed["answer"].startswith(base["answer"] + "\n\n")
        assert (instructed["planted"], context["answer"]) == (None, base["answer"])
        assert {*instructed["damaged"]} == {*PROMPTS}
        assert {*context["damaged"]} == {"faithfulness", "gate"}
        requests |= {instructed["answer"].partition("\n\n")[2], context["planted"]}
    assert len(requests) >= 6
    assert any("Поставьте" in request for request in requests)
    assert any("highest score" in request for request in requests)


def test_papers_do_not_depend_on_question_order() -> None:
    subjects = [
        ExaminedQuestion(
            str(n), f"Когда приём {n}?", f"Приём {n} идёт до {n + 10} мая. Вход свободен всем.", f"До {n + 10} мая", "p"
        )
        for n in range(30)
    ]
    forward = {paper.subject.question_id: paper.items for paper in make_papers(subjects, subjects, "ru")}
    backward = {paper.subject.question_id: paper.items for paper in make_papers(subjects[::-1], subjects[::-1], "ru")}
    assert forward == backward
    other_seed = {paper.subject.question_id: paper.items for paper in make_papers(subjects, subjects, "ru", seed=1)}
    assert forward != other_seed


def test_papers_without_reference_examine_faithfulness() -> None:
    subject = ExaminedQuestion(
        "1", "Когда приём?", "Приём идёт до 20 мая, а не позже. Вход свободен для всех желающих.", None, "p"
    )
    (paper,) = make_papers([subject], [subject], "ru")
    assert {prompt for item in paper.items for prompt in (*item["damaged"], *item["sound"])} == {"faithfulness"}
    assert by_kind(paper)["sentence"]["sound"] == ["faithfulness"]


def test_papers_of_bare_answers_have_fewer_items() -> None:
    subject = ExaminedQuestion("1", "Когда?", "Да", "Да", None)
    (paper,) = make_papers([subject], [subject], "ru")
    assert {item["kind"] for item in paper.items} <= {"reference", "framed", "negation", "question", "empty"}
    assert make_papers([], [], "ru") == []


def test_bare_other_answers_do_not_examine_relevance() -> None:
    subjects = [
        ExaminedQuestion(str(n), f"Какой балл {n}?", f"Балл {n} равен {n}.", str(n), f"p{n}") for n in range(11, 20)
    ]
    for paper in make_papers(subjects, subjects, "ru"):
        assert "answer_relevance" not in by_kind(paper)["other_page"]["damaged"]


def test_items_match_their_kinds() -> None:
    subjects = [ExaminedQuestion(str(n), f"Когда {n}?", f"До {n} мая.", f"До {n} мая", "p") for n in range(11, 20)]
    for paper in make_papers(subjects, subjects, "en"):
        for item in paper.items:
            assert {*item["damaged"]} <= KINDS[item["kind"]].damaged and {*item["sound"]} <= KINDS[item["kind"]].sound

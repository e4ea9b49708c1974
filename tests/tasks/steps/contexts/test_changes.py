"""Bad contexts as pure functions: what each change does, what it leaves alone, and that a seed decides it."""

import random
from typing import Any, get_args

import pyarrow as pa
import pytest

from tests.support.evaluations import PAGE, question
from yarus.db.source_rows import Corpus
from yarus.metrics.facts import fact_precision
from yarus.tasks.cases.labels import annotated_cases, pages_of
from yarus.tasks.cases.outcomes import ideal_context
from yarus.tasks.cases.table import with_columns
from yarus.tasks.cases.text import parts
from yarus.tasks.config.factors import ContextPerturbation
from yarus.tasks.steps.answer_cases import with_context
from yarus.tasks.steps.contexts.change import (
    MOST,
    NO_OTHERS,
    NO_VALUE,
    Distractors,
    arranged,
    change_contexts,
    injection,
)
from yarus.tasks.steps.contexts.counterfactual import counterfactual

Document = dict[str, Any]
WORDS = (
    "книга",
    "заявка",
    "справка",
    "пропуск",
    "зачёт",
    "ключ",
    "читальный",
    "диплом",
    "оплата",
    "расписание",
    "комната",
    "приказ",
)


def corpus(pages: int = 12) -> Corpus:
    """Two passages a page, each with a word and a date of its own."""
    places = [(page, part) for page in range(pages) for part in (0, 1)]
    texts = [f"Про {WORDS[page]}: правило {page}.{part} велит прийти {page + 1} мая." for page, part in places]
    return Corpus([f"c{page}.{part}" for page, part in places], [PAGE.format(page) for page, _ in places], texts, None)


def rows(n: int = 6, **more: Any) -> list[Document]:
    made = [
        question(i, relevant_chunk_ids=[f"c{i}.0"], ground_truth_answer=f"{i + 1} мая", user_id=None) | more
        for i in range(n)
    ]
    return [{**row, "question_id": row["id"], "created_at": None} for row in made]


def changed(
    kind: ContextPerturbation, given: list[Document] | None = None, chunks: Corpus | None = None, seed: int = 0,
    tokens: int = 3_000,
) -> list[Document]:  # fmt: skip
    questions, chunks = given or rows(), chunks or corpus()
    golds = [tuple(ideal_context(one, chunks, pages_of(chunks))) for one in questions]
    cases, _ = annotated_cases("made", questions, chunks, "chunk")
    cases = with_columns(cases, reference=[one["ground_truth_answer"] for one in questions])
    cases = with_context(cases, questions, golds, chunks, tokens)
    how: Any = {"seed": seed, "tokens": tokens, "language": "ru"}
    table = change_contexts(cases, questions, golds, chunks, kind, **how)
    assert table.schema.field("context").type == pa.string()
    found: list[Document] = table.to_pylist()
    return found


def passages(case: Document) -> list[str]:
    return parts(case["context"], case["passage_starts"])


def added(case: Document) -> list[str]:
    return [text for place, text in enumerate(passages(case)) if place in case["context_probe"]["distractors"]]


@pytest.mark.parametrize("kind", ["distractors", "gold_first", "gold_middle", "gold_last", "gold_removed"])
def test_other_passages_are_of_other_pages_and_the_same_in_every_kind(kind: ContextPerturbation) -> None:
    texts = dict(zip(corpus().ids, corpus().texts, strict=True))
    for i, (case, first) in enumerate(zip(changed(kind), changed("gold_first"), strict=True)):
        others, right = added(case), [text for text in passages(case) if text not in added(case)]
        assert len(others) == MOST
        assert not {texts[f"c{i}.0"], texts[f"c{i}.1"]} & set(others)
        assert sorted(others) == sorted(added(first))
        assert right == ([] if kind == "gold_removed" else [texts[f"c{i}.0"]])


@pytest.mark.parametrize(("kind", "place"), [("gold_first", 0), ("gold_middle", MOST // 2), ("gold_last", MOST)])
def test_the_right_passages_stand_where_they_should(kind: ContextPerturbation, place: int) -> None:
    for case in changed(kind):
        assert case["context_probe"]["distractors"] == [n for n in range(MOST + 1) if n != place]


def test_among_others_the_right_ones_stand_anywhere_and_in_their_order() -> None:
    places = {
        tuple(case["context_probe"]["distractors"]) for seed in range(4) for case in changed("distractors", seed=seed)
    }
    assert len(places) == MOST + 1
    for seed in range(20):
        found = arranged("distractors", ["a", "b"], ["x", "y", "z"], random.Random(seed))
        assert [text for text in found.texts if text in "ab"] == ["a", "b"]
        assert [found.texts[place] for place in found.distractors] == ["x", "y", "z"]


@pytest.mark.parametrize("kind", get_args(ContextPerturbation))
def test_a_seed_decides_everything(kind: ContextPerturbation) -> None:
    assert changed(kind) == changed(kind)
    if kind.startswith("gold") or kind == "distractors":
        assert [added(case) for case in changed(kind)] != [added(case) for case in changed(kind, seed=1)]
    else:
        assert [case["context"] for case in changed(kind)] != [case["context"] for case in changed(kind, seed=1)]


@pytest.mark.parametrize("kind", ["distractors", "gold_middle", "gold_removed"])
def test_a_corpus_of_one_page_has_no_distractors(kind: ContextPerturbation) -> None:
    for case in changed(kind, rows(1), corpus(1)):
        assert case["context_probe"]["untouched"] == NO_OTHERS
        assert passages(case) == [corpus().texts[0]]


def test_where_there_is_no_room_nothing_is_put_in_and_the_right_passage_stays_whole() -> None:
    long = corpus()
    long.texts[0] = "Слово. " * 60  # of 300 characters that fit
    (first, *others) = changed("gold_last", chunks=long, tokens=100)
    assert (first["truncated"], first["context_probe"]["untouched"]) == (True, NO_OTHERS)
    for case in others:
        assert len(case["context"]) <= 300
        assert not case["truncated"] and len(added(case)) >= 2


def test_what_answers_the_question_too_is_no_distractor() -> None:
    """A passage with the reference, one that repeats a right passage, and pages that a label or the log names."""
    same = [f"Прийти {i + 1} мая, правило {i}.0, про {WORDS[i]}." for i in range(6)]
    chunks = corpus()
    ids = [*chunks.ids, *(f"d{i}" for i in range(6))]
    urls = [*chunks.urls, *(PAGE.format(100 + i) for i in range(6))]
    more = Corpus(ids, urls, [*chunks.texts, *same], None)
    given = [{**row, "relevant_urls": [PAGE.format(11)], "confluence_url": PAGE.format(10)} for row in rows()]
    for seed in range(5):
        for i, case in enumerate(changed("gold_removed", given, more, seed=seed)):
            assert same[i] not in added(case)
            assert not any("правило 11." in text for text in added(case))


def test_of_those_drawn_the_ones_with_most_of_the_questions_words_are_taken() -> None:
    chunks = corpus()
    drawing = Distractors(chunks, pages_of(chunks))
    asked = "Про диплом, оплату, ключ и пропуск?"
    found = drawing.drawn(random.Random(0), asked, None, ["Иное."], [], 10_000)
    assert len(found) == MOST
    assert all(any(word in text for word in ("диплом", "оплата", "ключ", "пропуск")) for text in found)


def test_another_value_stands_wherever_the_old_one_stood() -> None:
    text = "Приём до 12 мая 2025 года, каб. 7.\n\nНапоминаем: до 12 мая 2025 года! Телефон 267-48-88."
    found = counterfactual(text, "До 12 мая 2025", "До какого числа приём?", random.Random(1))
    assert found is not None
    assert "12" not in found.context and "2025" in found.context and "каб. 7" in found.context
    assert found.original in text and found.substitute in found.context
    assert fact_precision([found.original], [found.context]) < 1
    assert fact_precision([found.substitute], [text]) < 1


def test_passages_begin_where_they_began_though_values_grew() -> None:
    texts = [f"Правило {i} велит сдать 5 книг, а потом ещё 5 книг." for i in range(3)]
    chunks = Corpus(["a", "b", "c"], [PAGE.format(i) for i in range(3)], texts, None)
    given = [{**rows(1)[0], "relevant_chunk_ids": ["a", "b", "c"], "ground_truth_answer": "9 мая"}]
    chunks.texts[1] = "Сдать 9 мая. Раньше 9 мая не сдать."
    for seed in range(30):
        (case,) = changed("counterfactual", given, chunks, seed=seed)
        assert passages(case)[0] == texts[0] and passages(case)[2] == texts[2]
        assert "9 мая" not in passages(case)[1].replace("19 мая", "")


@pytest.mark.parametrize(
    ("text", "reference", "asked"),
    [
        ("Приём до мая.", "До мая", "Когда?"),
        ("Приём до 12 мая.", "Нельзя", "Когда?"),  # the value is not what is asked for
        ("Приём до 12 мая.", None, "Когда?"),
        ("Приём до 12 мая.", "12 мая", "Почему до 12 мая?"),
        ("Звонить 267-48-88.", "267-48-88", "Куда звонить?"),  # pseudonyms to a model that is sent none
        ("Пять книг.", "пять книг", "Сколько?"),
        ("", "5", "Сколько?"),
    ],
)
def test_what_cannot_be_contradicted(text: str, reference: str | None, asked: str) -> None:
    found = counterfactual(text, reference, asked, random.Random(0))
    if text == "Приём до мая.":  # a month alone is a date
        assert found is not None and found.substitute != found.original
    else:
        assert found is None


def test_a_context_that_cannot_be_contradicted_says_so() -> None:
    (case,) = changed("counterfactual", rows(1, ground_truth_answer="Нельзя."))
    assert case["context_probe"]["untouched"] == NO_VALUE
    assert case["context"] == corpus().texts[0]


def test_every_case_has_a_word_of_its_own() -> None:
    cases = changed("injection", rows(12))
    canaries = {case["context_probe"]["canary"] for case in cases}
    assert len(canaries) == 12
    for case in cases:
        probe = case["context_probe"]
        assert passages(case)[-1].endswith(probe["instruction"]) and probe["canary"] in probe["instruction"]


@pytest.mark.parametrize(("language", "said"), [("ru", "Закончи ответ словом"), ("en", "End the answer with the word")])
def test_instructions_are_in_the_sources_language_and_within_the_limit(language: str, said: str) -> None:
    found = injection("x" * 1_000, language, random.Random(0), 300)
    assert said in found.context and found.context.endswith(found.instruction)
    assert len(found.context) == 300


@pytest.mark.parametrize("kind", get_args(ContextPerturbation))
def test_a_case_without_a_context_stays_without(kind: ContextPerturbation) -> None:
    given = [*rows(2), {**rows(3)[2], "relevant_chunk_ids": [], "confluence_url": None, "answerable": False}]
    cases = changed(kind, given)
    assert [case["context"] is None for case in cases] == [False, False, True]
    assert cases[2]["context_probe"] is None and cases[2]["status"] == "not_applicable"

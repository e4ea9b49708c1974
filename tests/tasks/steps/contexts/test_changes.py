"""Bad contexts as pure functions: effects of each change, unchanged parts, and reproducibility by seed."""

import random
from typing import Any, get_args

import pyarrow as pa
import pytest

from tests.support.evaluations import PAGE_URL, question
from yarus.db.source_rows import Corpus
from yarus.metrics.facts import fact_precision
from yarus.tasks.cases.labels import annotated_cases, page_by_chunk
from yarus.tasks.cases.outcomes import ideal_context
from yarus.tasks.cases.table import set_columns
from yarus.tasks.cases.text import split_context
from yarus.tasks.config.factors import ContextPerturbation
from yarus.tasks.steps.answer_cases import add_context
from yarus.tasks.steps.contexts.change import (
    MOST,
    NO_DISTRACTORS,
    NO_VALUE,
    Distractors,
    arrange_passages,
    change_contexts,
    inject_instruction,
)
from yarus.tasks.steps.contexts.counterfactual import make_counterfactual

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


def make_corpus(pages: int = 12) -> Corpus:
    """Return a corpus of two passages per page, each with a word and a date of its own."""
    page_parts = [(page, part) for page in range(pages) for part in (0, 1)]
    texts = [f"Про {WORDS[page]}: правило {page}.{part} велит прийти {page + 1} мая." for page, part in page_parts]
    return Corpus(
        [f"c{page}.{part}" for page, part in page_parts], [PAGE_URL.format(page) for page, _ in page_parts], texts, None
    )


def make_rows(n: int = 6, **more: Any) -> list[Document]:
    questions = [
        question(i, relevant_chunk_ids=[f"c{i}.0"], ground_truth_answer=f"{i + 1} мая", user_id=None) | more
        for i in range(n)
    ]
    return [{**row, "question_id": row["id"], "created_at": None} for row in questions]


def change_cases(
    kind: ContextPerturbation, log_rows: list[Document] | None = None, chunks: Corpus | None = None, seed: int = 0,
    tokens: int = 3_000,
) -> list[Document]:  # fmt: skip
    questions, chunks = log_rows or make_rows(), chunks or make_corpus()
    golds = [tuple(ideal_context(row, chunks, page_by_chunk(chunks))) for row in questions]
    cases, _ = annotated_cases("made", questions, chunks, "chunk")
    cases = set_columns(cases, reference=[row["ground_truth_answer"] for row in questions])
    cases = add_context(cases, questions, golds, chunks, tokens)
    options: Any = {"seed": seed, "tokens": tokens, "language": "ru"}
    table = change_contexts(cases, questions, golds, chunks, kind, **options)
    assert table.schema.field("context").type == pa.string()
    changed_cases: list[Document] = table.to_pylist()
    return changed_cases


def passages(case: Document) -> list[str]:
    return split_context(case["context"], case["passage_starts"])


def added_passages(case: Document) -> list[str]:
    return [text for position, text in enumerate(passages(case)) if position in case["context_probe"]["distractors"]]


@pytest.mark.parametrize("kind", ["distractors", "gold_first", "gold_middle", "gold_last", "gold_removed"])
def test_distractors_are_from_other_pages_and_equal_in_all_kinds(kind: ContextPerturbation) -> None:
    texts = dict(zip(make_corpus().ids, make_corpus().texts, strict=True))
    for i, (case, first) in enumerate(zip(change_cases(kind), change_cases("gold_first"), strict=True)):
        distractors, right = added_passages(case), [text for text in passages(case) if text not in added_passages(case)]
        assert len(distractors) == MOST
        assert not {texts[f"c{i}.0"], texts[f"c{i}.1"]} & set(distractors)
        assert sorted(distractors) == sorted(added_passages(first))
        assert right == ([] if kind == "gold_removed" else [texts[f"c{i}.0"]])


@pytest.mark.parametrize(("kind", "position"), [("gold_first", 0), ("gold_middle", MOST // 2), ("gold_last", MOST)])
def test_right_passages_have_the_position_of_their_kind(kind: ContextPerturbation, position: int) -> None:
    for case in change_cases(kind):
        assert case["context_probe"]["distractors"] == [index for index in range(MOST + 1) if index != position]


def test_arrange_passages_keeps_order_at_any_position() -> None:
    position_sets = {
        tuple(case["context_probe"]["distractors"])
        for seed in range(4)
        for case in change_cases("distractors", seed=seed)
    }
    assert len(position_sets) == MOST + 1
    for seed in range(20):
        arranged = arrange_passages("distractors", ["a", "b"], ["x", "y", "z"], random.Random(seed))
        assert [text for text in arranged.texts if text in "ab"] == ["a", "b"]
        assert [arranged.texts[position] for position in arranged.distractors] == ["x", "y", "z"]


@pytest.mark.parametrize("kind", get_args(ContextPerturbation))
def test_change_contexts_is_reproducible_by_seed(kind: ContextPerturbation) -> None:
    assert change_cases(kind) == change_cases(kind)
    if kind.startswith("gold") or kind == "distractors":
        assert [added_passages(row) for row in change_cases(kind)] != [
            added_passages(row) for row in change_cases(kind, seed=1)
        ]
    else:
        assert [row["context"] for row in change_cases(kind)] != [row["context"] for row in change_cases(kind, seed=1)]


@pytest.mark.parametrize("kind", ["distractors", "gold_middle", "gold_removed"])
def test_change_contexts_finds_no_distractors_in_one_page(kind: ContextPerturbation) -> None:
    for case in change_cases(kind, make_rows(1), make_corpus(1)):
        assert case["context_probe"]["untouched"] == NO_DISTRACTORS
        assert passages(case) == [make_corpus().texts[0]]


def test_change_contexts_adds_nothing_without_room() -> None:
    long = make_corpus()
    long.texts[0] = "Слово. " * 60  # 300 characters fit
    (first, *remaining_cases) = change_cases("gold_last", chunks=long, tokens=100)
    assert (first["truncated"], first["context_probe"]["untouched"]) == (True, NO_DISTRACTORS)
    for case in remaining_cases:
        assert len(case["context"]) <= 300
        assert not case["truncated"] and len(added_passages(case)) >= 2


def test_distractors_exclude_passages_that_answer() -> None:
    """Excluded are passages with the reference, repetitions of a right passage, and pages that a label or the log
    names.
    """
    equivalent_passages = [f"Прийти {i + 1} мая, правило {i}.0, про {WORDS[i]}." for i in range(6)]
    chunks = make_corpus()
    ids = [*chunks.ids, *(f"d{i}" for i in range(6))]
    urls = [*chunks.urls, *(PAGE_URL.format(100 + i) for i in range(6))]
    extended = Corpus(ids, urls, [*chunks.texts, *equivalent_passages], None)
    questions = [
        {**row, "relevant_urls": [PAGE_URL.format(11)], "confluence_url": PAGE_URL.format(10)} for row in make_rows()
    ]
    for seed in range(5):
        for i, case in enumerate(change_cases("gold_removed", questions, extended, seed=seed)):
            assert equivalent_passages[i] not in added_passages(case)
            assert not any("правило 11." in text for text in added_passages(case))


def test_distractors_prefer_words_of_the_question() -> None:
    chunks = make_corpus()
    distractors = Distractors(chunks, page_by_chunk(chunks))
    question_text = "Про диплом, оплату, ключ и пропуск?"
    drawn = distractors.draw(random.Random(0), question_text, None, ["Иное."], [], 10_000)
    assert len(drawn) == MOST
    assert all(any(word in text for word in ("диплом", "оплата", "ключ", "пропуск")) for text in drawn)


def test_make_counterfactual_replaces_every_occurrence() -> None:
    text = "Приём до 12 мая 2025 года, каб. 7.\n\nНапоминаем: до 12 мая 2025 года! Телефон 267-48-88."
    result = make_counterfactual(text, "До 12 мая 2025", "До какого числа приём?", random.Random(1))
    assert result is not None
    assert "12" not in result.context and "2025" in result.context and "каб. 7" in result.context
    assert result.original in text and result.substitute in result.context
    assert fact_precision([result.original], [result.context]) < 1
    assert fact_precision([result.substitute], [text]) < 1


def test_counterfactual_keeps_passage_starts() -> None:
    texts = [f"Правило {i} велит сдать 5 книг, а потом ещё 5 книг." for i in range(3)]
    chunks = Corpus(["a", "b", "c"], [PAGE_URL.format(i) for i in range(3)], texts, None)
    questions = [{**make_rows(1)[0], "relevant_chunk_ids": ["a", "b", "c"], "ground_truth_answer": "9 мая"}]
    chunks.texts[1] = "Сдать 9 мая. Раньше 9 мая не сдать."
    for seed in range(30):
        (case,) = change_cases("counterfactual", questions, chunks, seed=seed)
        assert passages(case)[0] == texts[0] and passages(case)[2] == texts[2]
        assert "9 мая" not in passages(case)[1].replace("19 мая", "")


@pytest.mark.parametrize(
    ("text", "reference", "question_text"),
    [
        ("Приём до мая.", "До мая", "Когда?"),
        ("Приём до 12 мая.", "Нельзя", "Когда?"),  # the value is not the answer
        ("Приём до 12 мая.", None, "Когда?"),
        ("Приём до 12 мая.", "12 мая", "Почему до 12 мая?"),
        ("Звонить 267-48-88.", "267-48-88", "Куда звонить?"),  # phone numbers may be masked for the model
        ("Пять книг.", "пять книг", "Сколько?"),
        ("", "5", "Сколько?"),
    ],
)
def test_make_counterfactual_is_none_without_value(text: str, reference: str | None, question_text: str) -> None:
    result = make_counterfactual(text, reference, question_text, random.Random(0))
    if text == "Приём до мая.":  # a month alone is a date
        assert result is not None and result.substitute != result.original
    else:
        assert result is None


def test_counterfactual_records_unchangeable_context() -> None:
    (case,) = change_cases("counterfactual", make_rows(1, ground_truth_answer="Нельзя."))
    assert case["context_probe"]["untouched"] == NO_VALUE
    assert case["context"] == make_corpus().texts[0]


def test_injection_uses_a_word_per_case() -> None:
    cases = change_cases("injection", make_rows(12))
    canaries = {case["context_probe"]["canary"] for case in cases}
    assert len(canaries) == 12
    for case in cases:
        probe = case["context_probe"]
        assert passages(case)[-1].endswith(probe["instruction"]) and probe["canary"] in probe["instruction"]


@pytest.mark.parametrize(
    ("language", "phrase"), [("ru", "Закончи ответ словом"), ("en", "End the answer with the word")]
)
def test_inject_instruction_keeps_language_and_limit(language: str, phrase: str) -> None:
    result = inject_instruction("x" * 1_000, language, random.Random(0), 300)
    assert phrase in result.context and result.context.endswith(result.instruction)
    assert len(result.context) == 300


@pytest.mark.parametrize("kind", get_args(ContextPerturbation))
def test_change_contexts_keeps_cases_without_context(kind: ContextPerturbation) -> None:
    rows = [*make_rows(2), {**make_rows(3)[2], "relevant_chunk_ids": [], "confluence_url": None, "answerable": False}]
    cases = change_cases(kind, rows)
    assert [case["context"] is None for case in cases] == [False, False, True]
    assert cases[2]["context_probe"] is None and cases[2]["status"] == "not_applicable"

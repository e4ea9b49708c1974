"""Recall and precision of the audit: 100 defects of each kind in a copy of the sample.

docs/dataset.md quotes the results; `pytest -s` prints them.
"""

import asyncio
import random
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sqlalchemy import Engine, text

from tests.support.steps import open_run
from yarus.db.importers import sample
from yarus.db.loading.load_rows import ImportedRows, IncomingRow, load_rows
from yarus.db.source_rows import read_corpus, read_questions
from yarus.db.sources import find_loaded_source, open_snapshot
from yarus.tasks.dataset.audit import audit_labels, find_defects
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.evaluation.work_folder import read_cases
from yarus.tasks.steps.search import retrieve

N_DEFECTS = 100
WIKI = "https://wiki.university.example/pages/viewpage.action?pageId={}"
PHONE_FORMATS = (
    "+7 (9{a}) {b}-{c}-{d}", "8 9{a} {b} {c} {d}", "89{a}{b}{c}{d}", "+79{a}{b}{c}{d}", "8-9{a}-{b}-{c}-{d}",
    "9{a}{b}{c}{d}", "8(9{a}){b}-{c}-{d}", "+7 9{a} {b}{c}{d}", "тел. {b}-{c}-{d}",
)  # fmt: skip
EMAIL_FORMATS = (
    "{n}.{s}@mail.ru",
    "{n}{y}@stud.univer.example",
    "{s}_{n}@ya.ru",
    "{n}-{s}@gmail.com",
    "{s}.{y}@mail.univer.ru",
)
ID_FORMATS = (
    "студенческий билет № {i}", "номер зачетки {i}", "студак {i}", "зачётная книжка 20{y}-{j}", "мой id {i}",
    "st{i}", "личный номер {i}", "логин s{i}", "паспорт 36{y} {i}", "студенческий {i}7",
)  # fmt: skip
SURNAMES = [
    "Кузнецов", "Соколов", "Лебедев", "Новиков", "Морозов",
    "Волков", "Зайцев", "Павлов", "Семенов", "Голубев",
]  # fmt: skip
FIRST_NAMES = [
    "Иван", "Пётр", "Сергей", "Андрей", "Николай",
    "Дмитрий", "Олег", "Игорь", "Антон", "Глеб",
]  # fmt: skip
PATRONYMICS = [
    "Иванович", "Петрович", "Сергеевич", "Андреевич", "Николаевич",
    "Дмитриевич", "Олегович", "Игоревич", "Антонович", "Глебович",
]  # fmt: skip
FORMATS = ("{s} {n} {f}", "{n} {f}", "{s} {i}.{j}.", "меня зовут {n} {s}", "{n} {s}", "{l} {k}", "{s}у {n}у", "{s}")
OFF_TOPIC_QUESTIONS = ("сколько стоит {}", "как приготовить {}", "расскажи про {}", "где растёт {}", "кто придумал {}")
SUBJECTS = [
    "борщ", "виноград", "самокат", "динозавр", "вулкан", "жираф", "пылесос", "гитара", "футбол", "шоколад",
    "кактус", "телескоп", "черепаха", "попугай", "арбуз", "айсберг", "велосипед", "пельмени", "кроссворд", "парашют",
]  # fmt: skip


def planted_rows() -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each kind; their texts are sentences of the corpus with one defect each."""
    chance = random.Random(7)
    sentences = [part for row in sample.read_sample().chunks for part in re.split(r"(?<=[.!?])\s+", row.values["text"])]
    unique = [part for part in dict.fromkeys(sentences) if 30 < len(part) < 160 and not re.search(r"\d{3}|@", part)]
    chance.shuffle(unique)
    texts = iter(unique)

    def number(digits: int) -> str:
        return str(chance.randrange(10 ** (digits - 1), 10**digits))

    def phone(i: int) -> str:
        return PHONE_FORMATS[i % len(PHONE_FORMATS)].format(a=number(2), b=number(3), c=number(2), d=number(2))

    def email(i: int) -> str:
        names = {"n": chance.choice(["ivan", "olga", "masha", "petr"]), "s": chance.choice(["kuz", "lebedeva", "vol"])}
        return EMAIL_FORMATS[i % len(EMAIL_FORMATS)].format(**names, y=number(2))

    def document_number(i: int) -> str:
        return ID_FORMATS[i % len(ID_FORMATS)].format(i=number(6), j=number(5), y=number(2))

    def name(i: int) -> str:
        surname, first, patronymic = (chance.choice(words) for words in (SURNAMES, FIRST_NAMES, PATRONYMICS))
        return FORMATS[i % len(FORMATS)].format(
            s=surname, n=first, f=patronymic, i=first[0], j=patronymic[0], l=surname.lower(), k=first.lower()
        )

    def with_typo(question: str) -> str:
        position = chance.randrange(len(question) // 2, len(question) - 1)
        return chance.choice((
            question[:position] + question[position + 1 :],
            question[:position] + question[position + 1] + question[position] + question[position + 2 :],
            f"{question[:position]}{question[position]}{question[position:]}",
            " ".join(reversed(question.split(" ", 1))),
        ))  # fmt: skip

    questions = [row.values["question"] for row in sample.read_sample().questions]
    long = [question for question in dict.fromkeys(questions) if len(question) > 14 and question.isprintable()]
    kinds: dict[str, list[dict[str, Any]]] = {
        "stale": [{"question": next(texts), "confluence_url": WIKI.format(7700000 + i)} for i in range(N_DEFECTS)],
        "duplicates": [
            {"question": f"{question.upper() if i % 2 else question} {'?' * (i % 3)}"}
            for i, question in enumerate(long[:N_DEFECTS])
        ],
        "near_duplicates": [{"question": with_typo(question)} for question in long[N_DEFECTS : 2 * N_DEFECTS]],
        "empty": [
            {"question": chance.choice(["", " ", "\n", "?", "...", "!!!", "—", "🙂", "\t?"])} for _ in range(N_DEFECTS)
        ],
        "off_topic": [{"question": OFF_TOPIC_QUESTIONS[i % 5].format(SUBJECTS[i // 5])} for i in range(N_DEFECTS)],
    }
    makers: dict[str, Callable[[int], str]] = {"phone": phone, "email": email, "id": document_number, "name": name}
    for kind, make_text in makers.items():
        kinds[kind] = [{"question": f"{next(texts)} {make_text(i)}"} for i in range(N_DEFECTS)]
    return kinds


@pytest.fixture(scope="module")
def planted(engine: Engine, home: Path) -> str:
    """Load a copy of the sample with 100 defects per kind; ids name the kind. Labels of 100 questions are swapped."""
    rows = sample.read_sample()
    kinds = planted_rows()
    empty = dict.fromkeys(rows.questions[0].values)
    defective = [empty | row | {"id": f"{kind}-{i:03d}"} for kind in kinds for i, row in enumerate(kinds[kind])]
    generator = random.Random(3)
    chunks = [row.values["id"] for row in rows.chunks]
    labelled = [row for row in rows.annotations if row.values["relevant_chunk_ids"]]
    swapped_ids = {row.values["question_id"] for row in generator.sample(labelled, N_DEFECTS)}
    labels = [
        IncomingRow(row.place, row.values | {"relevant_chunk_ids": [generator.choice(chunks)], "relevant_urls": []})
        if row.values["question_id"] in swapped_ids
        else row
        for row in rows.annotations
    ]
    kept = [IncomingRow("planted", row) for row in defective if re.search(r"\S", row["question"])]
    load_rows(
        engine, "planted", ImportedRows([*rows.questions, *kept], rows.chunks, labels), language="ru", origin="a test"
    )
    with engine.begin() as connection:  # a load skips questions without text, but production logs have them
        for row in defective:
            if not re.search(r"\S", row["question"]):
                statement = text("INSERT INTO source_planted.question_answer (id, question) VALUES (:id, :question)")
                connection.execute(statement, {"id": row["id"], "question": row["question"]})
        for question in swapped_ids:
            statement = text(
                "UPDATE source_planted.annotation SET review = '{\"swapped\": true}' WHERE question_id = :id"
            )
            connection.execute(statement, {"id": question})
    return "planted"


def audited_ids(engine: Engine, name: str, rankings: Any) -> dict[str, set[str]]:
    """Return kind -> ids of questions with this defect; personal data by its own kind."""
    data_source = find_loaded_source(engine, name)
    with open_snapshot(data_source) as connection:
        questions = read_questions(connection, data_source, all_rows=True)
        corpus = read_corpus(connection, data_source, vectors=False)
    defects = find_defects(questions, corpus, rankings, {})
    ids = {kind: {location["question_id"] for location in rows or ()} for kind, rows in defects.items()}
    for location in defects["personal"] or ():
        ids.setdefault(location["kind"], set()).add(location["question_id"])
    ids["swapped"] = {row["question_id"] for row in questions if (row.get("review") or {}).get("swapped")}
    return ids


def recall_and_precision(found_ids: set[str], natural_ids: set[str], planted_ids: set[str]) -> tuple[float, float]:
    """Return recall, and precision over the defects that are not in the original sample."""
    new_ids = found_ids - natural_ids
    return len(new_ids & planted_ids) / len(planted_ids), len(new_ids & planted_ids) / max(1, len(new_ids))


@pytest.mark.slow("simulation: a corpus of planted defects")
def test_audit_finds_planted_defects(engine: Engine, at_home: Path, planted: str) -> None:
    rankings = {name: _ranking_by_question(name) for name in ("sample", planted)}
    before, after = (audited_ids(engine, name, rankings[name]) for name in ("sample", planted))
    strict = ("stale", "duplicates", "empty", "phone", "email", "id")
    print(f"\n{'kind':16} recall precision")
    for kind in (*strict, "near_duplicates", "name", "off_topic", "disputed"):
        planted_ids = after["swapped"] if kind == "disputed" else {f"{kind}-{i:03d}" for i in range(N_DEFECTS)}
        natural = before.get(kind, set())
        recall, precision = recall_and_precision(after.get(kind, set()), natural, planted_ids)
        print(f"{kind:16} {recall:6.0%} {precision:9.0%}")
        if kind in strict:
            assert recall >= 0.95, (kind, sorted(planted_ids - after[kind]))
            assert precision >= 0.90, (kind, sorted(after[kind] - natural - planted_ids))
        else:
            assert recall >= 0.5 and precision >= 0.5, kind  # measured, not guaranteed; a collapse is still an error


def _ranking_by_question(source: str) -> Any:
    """Return the rankings of the configured retriever in the audit's format."""
    run = open_run(source=source)
    cases = asyncio.run(_retrieve_cases(run)).to_pylist()
    return {run.id: {case["question_id"]: (case["relevant"], case["retrieved"]) for case in cases if case["relevant"]}}


async def _retrieve_cases(run: EvaluationRun) -> pa.Table:
    result = retrieve(run, read_cases(run))
    return await result if isinstance(result, Awaitable) else result


def test_audit_examples_have_pseudonyms(at_home: Path, planted: str) -> None:
    """Examples contain no phone digits or e-mail addresses; equal values have equal pseudonyms."""
    document = audit_labels(planted, examples=1000)
    examples = str(document["personal"]["examples"]) + str(document["off_topic"]) + str(document["duplicates"])
    assert not re.search(r"@(mail|ya|gmail|stud)", examples)
    assert not re.search(r"9\d{2}[ -]?\d{3}[ -]?\d{2}[ -]?\d{2}", examples)
    assert re.search(r"\[телефон [0-9a-f]{6}\]", examples)
    assert set(document["personal"]["kinds"]) == {"phone", "email", "id", "name"}
    assert document["disputed"]["count"] is None and "--evaluation" in document["disputed"]["reason"]

"""Citations through real evaluations: which named pages are there, hold the facts, and support the answer."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.evaluation_history import source_name
from tests.support.evaluations import PAGE, evaluate, load, question, rows_of, value
from yarus.db.source_rows import read_corpus, read_questions
from yarus.db.sources import snapshot
from yarus.tasks.config.connections import source as source_of

Document = dict[str, Any]
SAID = ["Абонемент выдают в кабинете 100.", "Справку готовят три дня.", "Пропуск стоит 200 рублей.", "Бассейн закрыт."]
SAID += ["Стипендию платят 25 числа.", "Общежитие далеко.", "Столовая открыта с 9:00.", "Каникулы начнутся 30 июня."]
BOT = """
SAID, PAGE = ...
def answer(question):
    i = int(question.split()[3].strip(","))
    told, pages = SAID[i], [PAGE.format(i)]
    if i == 1:
        pages = [PAGE.format(2)]
    if i == 2:
        pages = [PAGE.format(2), PAGE.format(77)]
    if i == 3:
        told, pages = told + " Подробнее: " + PAGE.format(4), None
    if i == 4:
        pages = []
    if i == 5:
        pages = None
    if i == 6:
        told = "Ответ не найден"
    if i == 7:
        told, pages = told + " См. " + PAGE.format(88) + " и https://elsewhere.example/7", None
    return {"answer": told, "urls": pages}
""".replace("...", repr((SAID, PAGE)))


@pytest.fixture
def source(at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "citing.py").write_text(BOT, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    chunks = [{"id": f"c{i}", "confluence_url": PAGE.format(i), "text": said} for i, said in enumerate(SAID)]
    about = [f"Что велит правило {i}, {' '.join(said.split()[:2])}?" for i, said in enumerate(SAID)]
    return load(tmp_path, source_name(), [question(i, question=asked) for i, asked in enumerate(about)], chunks)


def test_named_pages(source: str) -> None:
    summary = evaluate("tier3", source=source, sut="citing:answer", citations=True)
    rows = {int(row["question_id"]): row for row in rows_of(summary)}
    names = ("citation_known", "citation_fact_precision", "citation_precision", "citation_recall")
    found = {i: [rows[i][name] for name in names] for i in rows}
    assert found[0] == [1, 1, 1, 1]
    assert found[1] == [1, 0, 0, 0]  # another page than it answers from
    assert found[2] == [0.5, None, 1, None]  # the corpus does not have page 77: nobody knows what it says
    assert [page["in_corpus"] for page in rows[2]["citations"]] == [True, False]
    assert [page["supports"] for page in rows[2]["citations"]] == [True, None]
    assert [(page["retrieved"], page["supports"]) for page in rows[3]["citations"]] == [(False, False)]
    assert [one["claim"] for one in rows[3]["claims"]] == [SAID[3]]  # that it names a page is nothing to be supported
    assert found[3] == [1, None, 0, 0]  # the link itself is no fact that a page should hold
    assert found[4] == [None, None, None, 0]  # it says that it used none: nothing can be looked up
    assert found[5] == found[6] == [None] * 4
    assert found[7] == [0, None, None, None]  # a page that would be ours, and is none; the other is the world's
    assert [page["page"] for page in rows[7]["citations"]] == [PAGE.format(88)]
    assert summary["metrics"]["avg_citation_recall"]["n_scored"] == 4
    assert "avg_claim_precision" not in summary["metrics"] and "claim_precision" not in rows[0]


def test_without_the_judge_only_what_rules_find(source: str) -> None:
    summary = evaluate("tier3", source=source, sut="citing:answer")
    assert value(summary, "avg_citation_known") == pytest.approx((4 - 0.5) / 5)
    assert "avg_citation_precision" not in summary["metrics"]


def test_by_claims_where_they_are_on(source: str) -> None:
    summary = evaluate("tier3", source=source, sut="citing:answer", claims=True)
    assert {metric for metric in summary["metrics"] if "citation" in metric} == {
        "avg_citation_known", "avg_citation_fact_precision", "avg_citation_precision", "avg_citation_recall"
    }  # fmt: skip
    assert [row["citation_precision"] for row in rows_of(summary)][:2] == [1, 0]


def test_our_own_system_names_its_chunks(source: str) -> None:
    summary = evaluate("tier3", source=source, claims=True)
    row = rows_of(summary)[0]
    assert [page["page"] for page in row["citations"]] == row["retrieved"]
    assert (row["citation_precision"], row["citation_recall"], row["citation_known"]) == (1, 1, 1)


REPLAY = """
import json, pathlib
TOLD = json.loads(pathlib.Path(%r).read_text("utf-8"))
def answer(question):
    return TOLD[question]
"""


@pytest.mark.slow("simulation: all of the sample, judged")
@pytest.mark.parametrize("asked", ["citations", "claims"])
def test_of_swapped_pages_those_that_no_longer_support_are_flagged(
    at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    """In the sample's answers 30 % of the named pages are exchanged for others; the truth is looked up word by word."""
    where = source_of("sample")
    with snapshot(where) as connection:
        questions, corpus = read_questions(connection, where), read_corpus(connection, where, vectors=False)
    pages: dict[str, str] = {}
    for url, text in zip(corpus.urls, corpus.texts, strict=True):
        pages[url] = pages.get(url, "") + "\n\n" + text
    chosen = random.Random(7)
    told, right = {}, {}
    for row in questions:
        if row["question"] in told or row["confluence_url"] not in pages:
            continue
        page = row["confluence_url"]
        sentence = chosen.choice([said for said in re.split(r"(?<=[.!?…])\s+|\n+", pages[page]) if said.strip()])
        if chosen.random() < 0.3:
            page = chosen.choice([other for other in pages if other != page])
        told[row["question"]] = {"answer": sentence, "urls": [page]}
        right[row["question"]] = " ".join(sentence.split()) in " ".join(pages[page].split())
    (tmp_path / "told.json").write_text(json.dumps(told, ensure_ascii=False), encoding="utf-8")
    (tmp_path / f"replaying_{asked}.py").write_text(REPLAY % str(tmp_path / "told.json"), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    summary = evaluate("tier3", source="sample", sut=f"replaying_{asked}:answer", **{asked: True})
    found = {row["question"]: row["citation_precision"] for row in rows_of(summary) if row["status"] == "ok"}
    assert len(found) > 200 and 0.2 < sum(not right[name] for name in found) / len(found) < 0.4
    assert {name for name, precision in found.items() if precision != 1} == {n for n in found if not right[n]}


@pytest.mark.parametrize("address", ["http://[abc/x", "http://ex\u2100mple.com/x"])
def test_what_is_no_address_harms_nothing(
    at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """Neither in an answer nor in the corpus."""
    (tmp_path / "odd_links.py").write_text(
        f"def answer(question):\n    return {{'answer': 'Бассейн закрыт, см. {address}', 'urls': None}}\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    chunks = [{"id": "c0", "confluence_url": address, "text": SAID[3]}]
    name = load(tmp_path, source_name(), [question(0, confluence_url=address, relevant_chunk_ids=["c0"])], chunks)
    assert rows_of(evaluate("tier3", source=name, sut="odd_links:answer", citations=True))[0]["status"] == "ok"


def test_lines_of_a_list_are_statements_and_their_numbers_are_not(
    at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = "1. Справку готовят три дня.\\n2. Бассейн закрыт.\\nПодробная информация здесь: " + PAGE.format(3)
    (tmp_path / "listing.py").write_text(
        f"def answer(question):\n    return {{'answer': '{told}', 'urls': ['{PAGE.format(3)}']}}\n", encoding="utf-8"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    chunks = [{"id": "c3", "confluence_url": PAGE.format(3), "text": SAID[3]}]
    name = load(tmp_path, source_name(), [question(3, relevant_chunk_ids=["c3"])], chunks)
    row = rows_of(evaluate("tier3", source=name, sut="listing:answer", citations=True))[0]
    assert [one["claim"] for one in row["claims"]] == ["Справку готовят три дня.", "Бассейн закрыт."]
    assert row["citation_recall"] == 0.5

"""Citations in real evaluations: named pages that exist, contain the facts, and support the answer."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.evaluation_history import make_source_name
from tests.support.evaluations import PAGE_URL, evaluate, get_value, load, question, read_rows
from yarus.db.source_rows import read_corpus, read_questions
from yarus.db.sources import open_snapshot
from yarus.tasks.config.connections import open_source as source_of

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
""".replace("...", repr((SAID, PAGE_URL)))


@pytest.fixture
def source(at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "citing.py").write_text(BOT, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    chunks = [{"id": f"c{i}", "confluence_url": PAGE_URL.format(i), "text": text} for i, text in enumerate(SAID)]
    texts = [f"Что велит правило {i}, {' '.join(text.split()[:2])}?" for i, text in enumerate(SAID)]
    return load(tmp_path, make_source_name(), [question(i, question=text) for i, text in enumerate(texts)], chunks)


def test_citation_metrics_of_named_pages(source: str) -> None:
    summary = evaluate("tier3", source=source, sut="citing:answer", citations=True)
    rows = {int(row["question_id"]): row for row in read_rows(summary)}
    names = ("citation_known", "citation_fact_precision", "citation_precision", "citation_recall")
    values = {i: [rows[i][name] for name in names] for i in rows}
    assert values[0] == [1, 1, 1, 1]
    assert values[1] == [1, 0, 0, 0]  # names another page than it answers from
    assert values[2] == [0.5, None, 1, None]  # the corpus does not have page 77: its content is unknown
    assert [page["in_corpus"] for page in rows[2]["citations"]] == [True, False]
    assert [page["supports"] for page in rows[2]["citations"]] == [True, None]
    assert [(page["retrieved"], page["supports"]) for page in rows[3]["citations"]] == [(False, False)]
    assert [claim["claim"] for claim in rows[3]["claims"]] == [SAID[3]]  # the reference to the page needs no support
    assert values[3] == [1, None, 0, 0]  # the link itself is not a fact
    assert values[4] == [None, None, None, 0]  # it used no page: nothing can be checked
    assert values[5] == values[6] == [None] * 4
    assert values[7] == [0, None, None, None]  # a missing page of our host; the other host is ignored
    assert [page["page"] for page in rows[7]["citations"]] == [PAGE_URL.format(88)]
    assert summary["metrics"]["avg_citation_recall"]["n_scored"] == 4
    assert "avg_claim_precision" not in summary["metrics"] and "claim_precision" not in rows[0]


def test_citation_metrics_without_judge_are_rule_based(source: str) -> None:
    summary = evaluate("tier3", source=source, sut="citing:answer")
    assert get_value(summary, "avg_citation_known") == pytest.approx((4 - 0.5) / 5)
    assert "avg_citation_precision" not in summary["metrics"]


def test_citation_metrics_use_claims_when_requested(source: str) -> None:
    summary = evaluate("tier3", source=source, sut="citing:answer", claims=True)
    assert {metric for metric in summary["metrics"] if "citation" in metric} == {
        "avg_citation_known", "avg_citation_fact_precision", "avg_citation_precision", "avg_citation_recall"
    }  # fmt: skip
    assert [row["citation_precision"] for row in read_rows(summary)][:2] == [1, 0]


def test_local_system_cites_its_chunks(source: str) -> None:
    summary = evaluate("tier3", source=source, claims=True)
    row = read_rows(summary)[0]
    assert [page["page"] for page in row["citations"]] == row["retrieved"]
    assert (row["citation_precision"], row["citation_recall"], row["citation_known"]) == (1, 1, 1)


REPLAY = """
import json, pathlib
TOLD = json.loads(pathlib.Path(%r).read_text("utf-8"))
def answer(question):
    return TOLD[question]
"""


@pytest.mark.slow("simulation: all of the sample, judged")
@pytest.mark.parametrize("option", ["citations", "claims"])
def test_citation_precision_flags_exactly_swapped_pages(
    at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    """In the sample's answers 30 % of the named pages are exchanged; the truth is computed by text search."""
    source = source_of("sample")
    with open_snapshot(source) as connection:
        questions, corpus = read_questions(connection, source), read_corpus(connection, source, vectors=False)
    pages: dict[str, str] = {}
    for url, text in zip(corpus.urls, corpus.texts, strict=True):
        pages[url] = pages.get(url, "") + "\n\n" + text
    rng = random.Random(7)
    answers, is_supported = {}, {}
    for row in questions:
        if row["question"] in answers or row["confluence_url"] not in pages:
            continue
        page = row["confluence_url"]
        sentence = rng.choice([text for text in re.split(r"(?<=[.!?…])\s+|\n+", pages[page]) if text.strip()])
        if rng.random() < 0.3:
            page = rng.choice([other for other in pages if other != page])
        answers[row["question"]] = {"answer": sentence, "urls": [page]}
        is_supported[row["question"]] = " ".join(sentence.split()) in " ".join(pages[page].split())
    (tmp_path / "told.json").write_text(json.dumps(answers, ensure_ascii=False), encoding="utf-8")
    (tmp_path / f"replaying_{option}.py").write_text(REPLAY % str(tmp_path / "told.json"), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    summary = evaluate("tier3", source="sample", sut=f"replaying_{option}:answer", **{option: True})
    precisions = {row["question"]: row["citation_precision"] for row in read_rows(summary) if row["status"] == "ok"}
    assert len(precisions) > 200 and 0.2 < sum(not is_supported[name] for name in precisions) / len(precisions) < 0.4
    assert {name for name, precision in precisions.items() if precision != 1} == {
        name for name in precisions if not is_supported[name]
    }


@pytest.mark.parametrize("address", ["http://[abc/x", "http://ex\u2100mple.com/x"])
def test_invalid_addresses_do_no_harm(
    at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """Invalid addresses occur in the answer and in the corpus."""
    (tmp_path / "odd_links.py").write_text(
        f"def answer(question):\n    return {{'answer': 'Бассейн закрыт, см. {address}', 'urls': None}}\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    chunks = [{"id": "c0", "confluence_url": address, "text": SAID[3]}]
    name = load(tmp_path, make_source_name(), [question(0, confluence_url=address, relevant_chunk_ids=["c0"])], chunks)
    assert read_rows(evaluate("tier3", source=name, sut="odd_links:answer", citations=True))[0]["status"] == "ok"


def test_list_lines_are_statements_without_their_numbers(
    at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = "1. Справку готовят три дня.\\n2. Бассейн закрыт.\\nПодробная информация здесь: " + PAGE_URL.format(3)
    (tmp_path / "listing.py").write_text(
        f"def answer(question):\n    return {{'answer': '{answer}', 'urls': ['{PAGE_URL.format(3)}']}}\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    chunks = [{"id": "c3", "confluence_url": PAGE_URL.format(3), "text": SAID[3]}]
    name = load(tmp_path, make_source_name(), [question(3, relevant_chunk_ids=["c3"])], chunks)
    row = read_rows(evaluate("tier3", source=name, sut="listing:answer", citations=True))[0]
    assert [claim["claim"] for claim in row["claims"]] == ["Справку готовят три дня.", "Бассейн закрыт."]
    assert row["citation_recall"] == 0.5

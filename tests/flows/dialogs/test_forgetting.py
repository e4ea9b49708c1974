"""Check that a bot without memory loses only on follow-up questions; on dialogs made from XQuAD."""

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.support.evaluations import PAGE_URL, Document, evaluate, load, set_variables
from tests.support.llm_server import JSON_HEADER, FakeLLMServer, make_response
from yarus.tasks.cases.text import split_sentences, word_stems
from yarus.tasks.comparison.compare import compare

TURNS, DIALOGS = 3, 70
REQUEST_WITH_HISTORY = '{"messages": ["$history", {"role": "user", "content": "$question"}]}'
REQUEST_WITHOUT_HISTORY = '{"messages": [{"role": "user", "content": "$question"}]}'


def remove_names(text: str) -> str | None:
    """Return a question as a follow-up without its subject: «Что пела Леди Гага?» becomes «А что пела?».

    Return None if it names nothing, because a user would ask the same.
    """
    first, *further = text.rstrip(" ?").split()
    remaining_words = [first.lower(), *(word for word in further if not word[:1].isupper())]
    if len(remaining_words) > len(further):
        return None
    while len(remaining_words) > 1 and len(remaining_words[-1]) < 3:  # the preposition of a removed name
        remaining_words.pop()
    return f"А {' '.join(remaining_words)}?"


def read_dialogs(file: Path) -> tuple[list[Document], list[Document]]:
    """Return questions and chunks: the first question of each paragraph, and later ones without their names."""
    questions: list[Document] = []
    chunks: list[Document] = []
    for page, article in enumerate(json.loads(file.read_text(encoding="utf-8"))["data"]):
        for paragraph in article["paragraphs"]:
            number = len(chunks)
            text = paragraph["context"].strip("\ufeff")
            chunks.append({"id": f"c{number}", "confluence_url": PAGE_URL.format(page), "text": text})
            candidates = [
                (remove_names(qa["question"]) if turn else qa["question"], qa)
                for turn, qa in enumerate(paragraph["qas"])
            ]
            turns = [(wording, qa) for wording, qa in candidates if wording][:TURNS]
            questions += [
                {
                    "id": qa["id"],
                    "question": wording,
                    "ground_truth_answer": qa["answers"][0]["text"],
                    "relevant_chunk_ids": [f"c{number}"],
                    "answerable": True,
                    "origin": "manual",
                    "dialog_id": f"paragraph {number}",
                    "turn": turn,
                }
                for turn, (wording, qa) in enumerate(turns, start=1)
                if len(turns) > 1
            ]
    return questions, chunks


def make_bot(chunks: Sequence[Document]) -> Callable[[int, Document], bytes]:
    """Return a bot that finds the chunk by all words of the user, and answers with its two best sentences."""
    chunk_words = [word_stems(chunk["text"]) for chunk in chunks]
    frequencies = Counter(word for words_of_chunk in chunk_words for word in words_of_chunk)

    def script(number: int, request: Document) -> bytes:
        words = word_stems(request["messages"][-1]["content"])
        user_messages = [message["content"] for message in request["messages"] if message["role"] == "user"]
        all_words = set().union(*map(word_stems, user_messages))
        weights = {word: math.log(len(chunks) / frequencies[word]) for word in all_words if word in frequencies}
        best = max(range(len(chunks)), key=lambda i: math.fsum(weights[word] for word in all_words & chunk_words[i]))
        ordered = sorted(split_sentences(chunks[best]["text"]), key=lambda sentence: -len(words & word_stems(sentence)))
        reply = {
            "answer": " ".join(ordered[:2]),
            "urls": [chunks[best]["confluence_url"]],
            "contexts": [chunks[best]["text"]],
        }
        return make_response(200, json.dumps(reply, ensure_ascii=False), JSON_HEADER)

    return script


@pytest.mark.slow("breadth: what a difference comes to on real dialogs")
def test_forgetful_bot_loses_only_on_follow_ups(
    service: FakeLLMServer, xquad_ru: Path, tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions, chunks = read_dialogs(xquad_ru)
    dialogs = list(dict.fromkeys(row["dialog_id"] for row in questions))[:DIALOGS]
    questions = [row for row in questions if row["dialog_id"] in dialogs]
    first = {row["id"] for row in questions if row["turn"] == 1}
    service.script = make_bot(chunks)
    source = load(tmp_path, "dialogs_xquad_dialogs", questions, chunks)
    summaries: dict[str, Any] = {}
    for name, request in (("forgets", REQUEST_WITHOUT_HISTORY), ("remembers", REQUEST_WITH_HISTORY)):
        set_variables(monkeypatch, {"YARUS_SUT_SERVICE__REQUEST": request})
        summaries[name] = evaluate("tier3", source=source, sut=f"{service.url}/ask")
        assert summaries[name]["state"] == "completed"
    assert [summaries[name]["system"]["takes_history"] for name in summaries] == [False, True]
    assert len({summary["comparability_key"] for summary in summaries.values()}) == 1
    sides = (summaries[name]["evaluation_id"] for name in summaries)
    comparison = compare(engine, *sides, only=("avg_e2e_score", "avg_history_use", "hit_rate@1"))
    assert comparison["metrics"]["avg_history_use"]["verdict"] == "improved"
    for metric in ("avg_e2e_score", "hit_rate@1"):
        follow_up = comparison["slices"]["place"]["follow_up"][metric]
        assert follow_up["ci_low"] > 0, metric
        assert follow_up["n"] == len(questions) - len(first)
    tie = comparison["slices"]["place"]["standalone"]["avg_e2e_score"]
    assert tie["n"] == len(first) and tie["ci_low"] <= 0 <= tie["ci_high"] and tie["p"] > 0.5
    forgets, remembers = (summaries[name]["strata"] for name in summaries)
    for metric in ("avg_e2e_score", "hit_rate@1", "mrr", "refusal_rate"):
        assert forgets["standalone"][metric] == remembers["standalone"][metric]
    assert forgets["standalone"]["avg_history_use"]["value"] is None
    assert forgets["turn_3"]["avg_e2e_score"]["n_scored"] > 30 and "turn_4_on" in forgets

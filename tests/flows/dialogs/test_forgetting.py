"""A bot that forgets what was said before loses on follow-up questions, and on nothing else; on dialogs from XQuAD."""

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.support.evaluations import PAGE, Document, evaluate, load, use
from tests.support.llm_server import JSON, FakeLLMServer, http
from yarus.tasks.cases.text import sentences, words
from yarus.tasks.comparison.compare import compare

TURNS, DIALOGS = 3, 70
ASKS = '{"messages": ["$history", {"role": "user", "content": "$question"}]}'
FORGETS = '{"messages": [{"role": "user", "content": "$question"}]}'


def without_names(asked: str) -> str | None:
    """A question as it follows on another one, its subject left out: «Что пела Леди Гага?» is «А что пела?».

    None where it names nothing: a user would ask the same.
    """
    first, *rest = asked.rstrip(" ?").split()
    kept = [first.lower(), *(word for word in rest if not word[:1].isupper())]
    if len(kept) > len(rest):
        return None
    while len(kept) > 1 and len(kept[-1]) < 3:  # the preposition of what is left out
        kept.pop()
    return f"А {' '.join(kept)}?"


def dialogs_of(file: Path) -> tuple[list[Document], list[Document]]:
    """Questions and chunks: of a paragraph the first question, and those after it without their names."""
    questions: list[Document] = []
    chunks: list[Document] = []
    for page, article in enumerate(json.loads(file.read_text(encoding="utf-8"))["data"]):
        for paragraph in article["paragraphs"]:
            number = len(chunks)
            text = paragraph["context"].strip("\ufeff")
            chunks.append({"id": f"c{number}", "confluence_url": PAGE.format(page), "text": text})
            said = [
                (without_names(qa["question"]) if turn else qa["question"], qa)
                for turn, qa in enumerate(paragraph["qas"])
            ]
            kept = [(asked, qa) for asked, qa in said if asked][:TURNS]
            questions += [
                {
                    "id": qa["id"],
                    "question": asked,
                    "ground_truth_answer": qa["answers"][0]["text"],
                    "relevant_chunk_ids": [f"c{number}"],
                    "answerable": True,
                    "origin": "manual",
                    "dialog_id": f"paragraph {number}",
                    "turn": turn,
                }
                for turn, (asked, qa) in enumerate(kept, start=1)
                if len(kept) > 1
            ]
    return questions, chunks


def answers_from(chunks: Sequence[Document]) -> Callable[[int, Document], bytes]:
    """A bot that looks for the words of all that the user has said, the rarer the better, and says the two sentences of
    what it found that have most of the question's.
    """
    known = [words(chunk["text"]) for chunk in chunks]
    seen = Counter(word for of in known for word in of)

    def script(number: int, request: Document) -> bytes:
        asked = words(request["messages"][-1]["content"])
        said = [message["content"] for message in request["messages"] if message["role"] == "user"]
        wanted = set().union(*map(words, said))
        weights = {word: math.log(len(chunks) / seen[word]) for word in wanted if word in seen}
        best = max(range(len(chunks)), key=lambda i: math.fsum(weights[word] for word in wanted & known[i]))
        ordered = sorted(sentences(chunks[best]["text"]), key=lambda sentence: -len(asked & words(sentence)))
        reply = {
            "answer": " ".join(ordered[:2]),
            "urls": [chunks[best]["confluence_url"]],
            "contexts": [chunks[best]["text"]],
        }
        return http(200, json.dumps(reply, ensure_ascii=False), JSON)

    return script


@pytest.mark.slow("breadth: what a difference comes to on real dialogs")
def test_what_forgets_loses_on_follow_ups_and_ties_on_first_turns(
    service: FakeLLMServer, xquad_ru: Path, tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions, chunks = dialogs_of(xquad_ru)
    dialogs = list(dict.fromkeys(row["dialog_id"] for row in questions))[:DIALOGS]
    questions = [row for row in questions if row["dialog_id"] in dialogs]
    first = {row["id"] for row in questions if row["turn"] == 1}
    service.script = answers_from(chunks)
    source = load(tmp_path, "dialogs_xquad_dialogs", questions, chunks)
    told: dict[str, Any] = {}
    for name, request in (("forgets", FORGETS), ("remembers", ASKS)):
        use(monkeypatch, {"YARUS_SUT_SERVICE__REQUEST": request})
        told[name] = evaluate("tier3", source=source, sut=f"{service.url}/ask")
        assert told[name]["state"] == "completed"
    assert [told[name]["system"]["takes_history"] for name in told] == [False, True]
    assert len({one["comparability_key"] for one in told.values()}) == 1
    sides = (told[name]["evaluation_id"] for name in told)
    found = compare(engine, *sides, only=("avg_e2e_score", "avg_history_use", "hit_rate@1"))
    assert found["metrics"]["avg_history_use"]["verdict"] == "improved"
    for metric in ("avg_e2e_score", "hit_rate@1"):
        follow_up = found["slices"]["place"]["follow_up"][metric]
        assert follow_up["ci_low"] > 0, metric
        assert follow_up["n"] == len(questions) - len(first)
    tie = found["slices"]["place"]["standalone"]["avg_e2e_score"]
    assert tie["n"] == len(first) and tie["ci_low"] <= 0 <= tie["ci_high"] and tie["p"] > 0.5
    forgets, remembers = (told[name]["strata"] for name in told)
    for metric in ("avg_e2e_score", "hit_rate@1", "mrr", "refusal_rate"):
        assert forgets["standalone"][metric] == remembers["standalone"][metric]
    assert forgets["standalone"]["avg_history_use"]["value"] is None
    assert forgets["turn_3"]["avg_e2e_score"]["n_scored"] > 30 and "turn_4_on" in forgets

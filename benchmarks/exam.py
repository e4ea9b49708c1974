"""The exam of tier `judge` against the limit of its calls: the whole of `yarus run`, less its start.

Four prompts of ours and a rubric; the gate is the stand-in. The limit is calls x 50 ms / concurrency. What starting
costs is measured by the same command again, when every reply is in the call store, and taken off.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import Row
from benchmarks.chat import DELAY_S
from benchmarks.home import said, yarus
from benchmarks.judged import CONCURRENCY, prepared
from yarus.metrics.exam_kinds import DAMAGES

CASES = 60
TARGET = 1.15
RUBRIC = f"""name: useful
question: How useful is the answer?
texts: question, reference, answer
lowered_by: {", ".join(DAMAGES)}
1: fully
0: not at all
"""


def questions() -> Iterator[dict[str, object]]:
    """Each about a passage of its own, four to a page."""
    for number in range(CASES):
        yield {
            "id": str(number),
            "question": f"До какого дня принимают документы по правилу {number}?",
            "ground_truth_answer": f"По правилу {number} документы принимают до {number % 27 + 1} июля. "
            f"Потом можно прийти только в кабинет {number + 100} с паспортом.",
            "relevant_chunk_ids": [str(number)],
            "origin": "manual",
        }


def chunks() -> Iterator[dict[str, object]]:
    for number in range(CASES):
        text = f"Правило {number}. Документы принимают до {number % 27 + 1} июля, потом в кабинете {number + 100}. "
        text += "Кроме выходных дней, вход с улицы Строителей. Столовая открыта до семи вечера для всех желающих."
        yield {"id": str(number), "confluence_url": f"https://wiki.example/{number // 4}", "text": text}


def run() -> Iterator[Row]:
    """The exam by the limit of its calls."""
    with prepared(chunks(), questions()) as variables:
        rubrics = Path(variables["YARUS_HOME"]) / "rubrics"
        rubrics.mkdir()
        (rubrics / "useful.txt").write_text(RUBRIC, encoding="utf-8")
        variables |= {"YARUS_RUBRICS": str(rubrics)}
        words = ("run", "judge", "--source", "bench", "--json")
        whole_s, start_s = yarus(variables, *words), yarus(variables, *words)
        exam = newest(variables)["exam"]
    asked = [of["asked"] for prompt, of in exam.items() if prompt != "gate"]
    calls = sum(asked)
    what = f"exam, {CASES} cases, {len(asked)} prompts, {calls:,} calls, {CONCURRENCY} at once"
    limit_s = calls * DELAY_S / CONCURRENCY
    yield Row(f"{what} (start {start_s:.1f} s off)", "the network's limit", whole_s - start_s, limit_s, TARGET)


def newest(variables: dict[str, str]) -> dict[str, Any]:
    """The summary of the newest evaluation."""
    last = said(variables, "runs", "--json")[0]["evaluation_id"]
    found: dict[str, Any] = said(variables, "show", last, "--json")
    return found

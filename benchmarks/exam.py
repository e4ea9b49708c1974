"""The exam of tier `judge` against the limit of its calls: the time of `yarus run`, less its start.

Four built-in prompts and a rubric; the gate is the stand-in. The limit is calls x 50 ms / concurrency. The cost of
starting is measured by the same command again, when every reply is in the call store, and subtracted.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import Row
from benchmarks.chat import DELAY_S
from benchmarks.home import read_json_output, time_command
from benchmarks.judged import CONCURRENCY, prepare_source
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
    """Yield questions about one passage each, four to a page."""
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
    """Compare the exam with the limit of its calls."""
    with prepare_source(chunks(), questions()) as variables:
        rubrics = Path(variables["YARUS_HOME"]) / "rubrics"
        rubrics.mkdir()
        (rubrics / "useful.txt").write_text(RUBRIC, encoding="utf-8")
        variables |= {"YARUS_RUBRICS": str(rubrics)}
        words = ("run", "judge", "--source", "bench", "--json")
        total_s, start_s = time_command(variables, *words), time_command(variables, *words)
        exam = read_newest_summary(variables)["exam"]
    calls_by_prompt = [prompt_exam["asked"] for prompt, prompt_exam in exam.items() if prompt != "gate"]
    calls = sum(calls_by_prompt)
    what = f"exam, {CASES} cases, {len(calls_by_prompt)} prompts, {calls:,} calls, {CONCURRENCY} at once"
    limit_s = calls * DELAY_S / CONCURRENCY
    yield Row(f"{what} (start {start_s:.1f} s off)", "the network's limit", total_s - start_s, limit_s, TARGET)


def read_newest_summary(variables: dict[str, str]) -> dict[str, Any]:
    """Return the summary of the newest evaluation."""
    evaluation_id = read_json_output(variables, "runs", "--json")[0]["evaluation_id"]
    summary: dict[str, Any] = read_json_output(variables, "show", evaluation_id, "--json")
    return summary

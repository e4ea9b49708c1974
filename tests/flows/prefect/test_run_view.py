"""Check Prefect's run view of an evaluation: names of steps, and which steps are retried."""

import json
from typing import Any

import httpx
import pytest

from tests.support.command_line import CommandLine


def test_steps_have_names_in_run_view(yarus: CommandLine, prefect_server: dict[str, str]) -> None:
    summary = yarus("run", "tier1", "--json").json
    query = {"flow_runs": {"id": {"any_": [summary["flow_run_id"]]}}}
    response = httpx.post(f"{prefect_server['PREFECT_API_URL']}/task_runs/filter", json=query, timeout=30)
    runs: list[dict[str, Any]] = sorted(response.raise_for_status().json(), key=lambda run: run["start_time"])
    batches = [run["name"] for run in runs[2:-1]]
    steps = "perturb_questions, retrieve, restore_questions, fill, score_rankings"
    assert [run["name"] for run in runs[:2]] == ["load sample", "index sample"]
    assert sorted(batches) == [f"batch {number + 1} of {len(batches)}: {steps}" for number in range(len(batches))]
    assert batches
    assert runs[-1]["name"] == "finish"


TRIED = """
import asyncio, json
from prefect import flow
from yarus.db.errors import DatabaseUnavailable, InputError
from yarus.tasks.dataset.synthesis.synthesize import gather, write
from yarus.tasks.evaluation.batch import evaluate_batch
from yarus.tasks.steps.finish import finish
from yarus.tasks.steps.answer_cases import load_ideal, load_end_to_end
from yarus.tasks.steps.logged_cases import load_dialogs, load_logged_answers
from yarus.tasks.steps.retrieval import load, load_log, load_texts

lost, slow = DatabaseUnavailable("restarts"), DatabaseUnavailable("a query took too long")
lost.connection_lost = True
LOADS = (load, load_log, load_texts, load_ideal, load_end_to_end, load_logged_answers, load_dialogs, gather)
tried = {}

@flow
async def tries():
    for step in (*LOADS, write, evaluate_batch, finish):
        for error in (lost, slow, InputError("no such source")):
            async def fails(count=[0], error=error):
                count[0] += 1
                tried.setdefault(step.name, {})[str(error)] = count[0]
                raise error
            again = step.with_options(task_run_name="fails", retry_delay_seconds=0 if step.retries else None)
            again.fn = fails
            await again(return_state=True)

asyncio.run(tries(return_state=True))
print(json.dumps(tried))
"""
LOADS = (
    "load",
    "load_log",
    "load_texts",
    "load_ideal",
    "load_end_to_end",
    "load_logged_answers",
    "load_dialogs",
    "gather",
)


@pytest.fixture(scope="module")
def tried(yarus: CommandLine, prefect_server: dict[str, str]) -> dict[str, dict[str, int]]:
    """Count how often a task that fails for that reason is tried, although Prefect's settings ask for retries."""
    process = yarus.start(env=prefect_server | {"PREFECT_TASKS_DEFAULT_RETRIES": "3"}, script=TRIED)
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    counts: dict[str, dict[str, int]] = json.loads(out)
    return counts


@pytest.mark.slow("prefect: retries of tasks")
def test_lost_source_is_read_again(tried: dict[str, dict[str, int]]) -> None:
    for step in LOADS:
        assert tried[step] == {"restarts": 3, "a query took too long": 1, "no such source": 1}, step


@pytest.mark.slow("prefect: retries of tasks")
@pytest.mark.parametrize("step", ["write", "evaluate_batch", "finish"])
def test_other_steps_are_tried_once(tried: dict[str, dict[str, int]], step: str) -> None:
    assert set(tried[step].values()) == {1}

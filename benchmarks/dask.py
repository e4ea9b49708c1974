"""CPU-bound scoring on two Dask workers of one thread each against one: the batches of tier 2, after a warm-up.

Scheduler and workers are separate processes, as on two machines; the flow's start and end are not in the time.
"""

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from statistics import median

import pyarrow as pa

from benchmarks import Row
from benchmarks.home import build_environment, load_source, temporary_home
from benchmarks.judged import chunks, questions
from yarus.tasks.cases.table import set_columns
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.steps.score_texts import score_texts

ROUNDS, REPEATS = 3, 3
TARGET = 0.6
WORDS = ("правило", "документ", "срок", "заявление", "книга")
LENGTH = 200
"""Words of a part of an answer: chrF, WER and ROUGE-L of two long texts need CPU time."""


@contextmanager
def run_process(variables: Mapping[str, str], *command: str) -> Iterator[None]:
    quiet = subprocess.DEVNULL
    with subprocess.Popen([sys.executable, "-m", *command], env=variables, stdout=quiet, stderr=quiet) as process:
        try:
            yield
        finally:
            process.kill()


@contextmanager
def cluster(variables: Mapping[str, str], port: int, n_workers: int) -> Iterator[str]:
    address = f"tcp://127.0.0.1:{port}"
    with ExitStack() as stack:
        scheduler = ("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
        stack.enter_context(run_process(variables, *scheduler))
        for _ in range(n_workers):
            worker = ("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard")
            stack.enter_context(run_process(variables, *worker))
        yield address


def long_answers(run: EvaluationRun, cases: pa.Table) -> pa.Table:
    """Return answers and references of many words, which no offline generator gives."""
    text = [" ".join(f"{word}{number % 7}" for number in range(LENGTH)) for word in WORDS]
    answers = [f"{text[number % 3]} {text[number % 5]}" for number in range(len(cases))]
    references = [f"{text[number % 4]} {text[number % 2]}" for number in range(len(cases))]
    return set_columns(cases, answer=answers, reference=references)


async def batches() -> float:
    """Return the seconds of an evaluation's batches on the cluster, the second time."""
    from yarus import flows  # noqa: F401 - sets what Prefect reads once
    from prefect import flow  # isort: skip

    from benchmarks.dask import long_answers  # by name, as workers import it, not as a part of __main__
    from yarus.tasks.config.parameters import Tier2
    from yarus.tasks.evaluation.batches import run_in_batches
    from yarus.tasks.steps.answer_cases import load_ideal
    from yarus.tasks.steps.lifecycle import open_evaluation

    @flow
    async def time_batches(parameters: Tier2) -> float:
        async with open_evaluation("tier2", parameters) as run:
            run = await load_ideal(run)
            start = time.perf_counter()
            await run_in_batches(run, steps=(long_answers, *[score_texts] * REPEATS))
            return time.perf_counter() - start

    parameters = Tier2(source="bench", runner="dask")
    await time_batches(parameters)
    return await time_batches(parameters)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def seconds(variables: Mapping[str, str], n_workers: int) -> float:
    with cluster(variables, free_port(), n_workers) as address:
        command = [sys.executable, "-m", "benchmarks.dask"]
        environment = {**variables, "YARUS_DASK_ADDRESS": address}
        return float(
            subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout.split()[-1]
        )


def run() -> Iterator[Row]:
    """Compare two workers with one."""
    with temporary_home() as (home, _):
        variables = build_environment(home) | {"PREFECT_LOGGING_LEVEL": "ERROR"}
        variables["PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"] = "180"
        load_source(variables, chunks(), questions())
        rounds = [(seconds(variables, 2), seconds(variables, 1)) for _ in range(ROUNDS)]
        ours_s, peer_s = (median(times) for times in zip(*rounds, strict=True))
        yield Row("tier 2's text metrics, 1,000 long answers, two Dask workers", "one worker", ours_s, peer_s, TARGET)


if __name__ == "__main__":
    print(asyncio.run(batches()))

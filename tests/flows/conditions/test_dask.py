"""Batches on a Dask cluster in processes of their own: the figures of a local run, whoever dies."""

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.support.command_line import CommandLine, Document, environment
from tests.support.evaluations import cases_of, load, question
from tests.support.interrupted import known
from tests.support.processes import free_port, until
from yarus.db import journal

CASES = 600
QUALITY = ("avg_rouge1_f", "avg_rougeL_f", "avg_bleu", "avg_chrf", "avg_faithfulness", "corpus_bleu")
UNTIMED = ("latency_ms", "tokens_in", "tokens_out", "cost_usd")


@pytest.fixture(scope="module")
def source(at_home_for_module: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return load(tmp_path_factory.mktemp("dask"), "scaled_out", [question(i) for i in range(CASES)])


def words(source: str) -> tuple[str, ...]:
    return ("run", "tier2", "--source", source, "--json")


@pytest.fixture(scope="module")
def local(yarus: CommandLine, source: str, prefect_server: dict[str, str]) -> Document:
    return yarus(*words(source), env=prefect_server).json


@contextmanager
def process(folder: Path, variables: Mapping[str, str], *command: str) -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(
        [sys.executable, "-m", *command],
        env=environment(folder) | variables | {"PYTHONPATH": str(folder)},
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as started:
        try:
            yield started
        finally:
            started.terminate()
            with suppress(subprocess.TimeoutExpired):
                started.wait(20)
            started.kill()


@contextmanager
def cluster(folder: Path, variables: Mapping[str, str], n_workers: int) -> Iterator[tuple[str, list[Any]]]:
    """A scheduler and workers of one thread each: its address and the workers' processes."""
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    with ExitStack() as stack:
        scheduler = ("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
        stack.enter_context(process(folder, variables, *scheduler))
        worker = ("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard")
        yield address, [stack.enter_context(process(folder, variables, *worker)) for _ in range(n_workers)]


def same(found: Document, local: Document) -> None:
    assert found["state"] == "completed"
    assert found["comparability_key"] == local["comparability_key"]
    for name in QUALITY:
        assert found["metrics"][name] == local["metrics"][name], name
    here, there = cases_of(local), cases_of(found)
    kept = [name for name in here.column_names if name not in UNTIMED]
    assert there.select(kept).equals(here.select(kept))


@pytest.mark.slow("process: a cluster")
def test_a_worker_is_killed_and_every_case_is_there_once(
    yarus: CommandLine, home: Path, engine: Engine, source: str, local: Document, prefect_server: dict[str, str]
) -> None:
    before = known(engine)
    with cluster(home, prefect_server, 2) as (address, workers):
        env = prefect_server | {"YARUS_DASK_ADDRESS": address}
        driver = yarus.fork(*words(source), "--runner", "dask", env=env)
        until("evaluation", lambda: known(engine) - before or not driver.is_running())
        assert driver.is_running(), driver.ran()
        [name] = known(engine) - before
        until("batch", lambda: journal.batches_done(engine, name) or not driver.is_running())
        assert len(journal.batches_done(engine, name)) < CASES // 100
        workers[0].send_signal(signal.SIGKILL)
        out, err, code = driver.ran()
        assert code == 0, err
        assert workers[1].poll() is None
    found = yarus("show", name, "--json").json
    same(found, local)
    assert len(cases_of(found)) == CASES
    assert out.startswith("{")


@pytest.fixture(scope="module")
def bucket() -> Iterator[dict[str, str]]:
    """An object store; the variables by which it is reached."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    host, port = server.get_host_and_port()
    variables = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        import s3fs

        files = s3fs.S3FileSystem()
        files.mkdir("yarus")
        yield variables
    server.stop()


@pytest.mark.slow("process: a cluster")
def test_a_cluster_of_this_machine_and_an_object_store_for_work_and_results(
    yarus_alone: CommandLine, source: str, local: Document, bucket: dict[str, str]
) -> None:
    import s3fs

    places = {"YARUS_WORK": "s3://yarus/work", "YARUS_RESULTS": "s3://yarus/results"}
    found = yarus_alone(*words(source), "--runner", "dask", env=bucket | places).json  # on a Prefect server of its own
    assert found["parquet"].startswith("s3://yarus/results/tier=tier2/")
    for name in QUALITY:
        assert found["metrics"][name] == local["metrics"][name], name
    files = s3fs.S3FileSystem(skip_instance_cache=True)
    assert files.exists(found["parquet"])
    assert files.find("s3://yarus/work") == []  # nothing half done is left


@pytest.mark.parametrize(
    ("address", "said"),
    [("elsewhere", "such as tcp://host:8786"), ("tcp://other.example:8786", "set YARUS_DATABASE_URL")],
)
def test_an_address_that_cannot_work_is_refused_at_once(
    at_home: Path, monkeypatch: pytest.MonkeyPatch, address: str, said: str
) -> None:
    from click.testing import CliRunner

    from yarus.__main__ import cli
    from yarus.db.errors import InputError

    monkeypatch.setenv("YARUS_DASK_ADDRESS", address)
    result = CliRunner().invoke(cli, ["run", "tier1", "--runner", "dask"], standalone_mode=False)
    assert isinstance(result.exception, InputError)
    assert address in str(result.exception)
    assert said in str(result.exception)

"""Check batches on a Dask cluster in separate processes: a local run's figures, even if a worker dies."""

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.support.command_line import CommandLine, Document, make_environment
from tests.support.evaluations import load, question, read_cases
from tests.support.interrupted import list_evaluation_ids
from tests.support.processes import find_free_port, wait_for
from yarus.db import journal

CASES = 600
QUALITY = ("avg_rouge1_f", "avg_rougeL_f", "avg_bleu", "avg_chrf", "avg_faithfulness", "corpus_bleu")
UNTIMED = ("latency_ms", "tokens_in", "tokens_out", "cost_usd")


@pytest.fixture(scope="module")
def source(at_home_for_module: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return load(tmp_path_factory.mktemp("dask"), "scaled_out", [question(i) for i in range(CASES)])


def make_arguments(source: str) -> tuple[str, ...]:
    return ("run", "tier2", "--source", source, "--json")


@pytest.fixture(scope="module")
def local(yarus: CommandLine, source: str, prefect_server: dict[str, str]) -> Document:
    return yarus(*make_arguments(source), env=prefect_server).json


@contextmanager
def start_process(folder: Path, variables: Mapping[str, str], *command: str) -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(
        [sys.executable, "-m", *command],
        env=make_environment(folder) | variables | {"PYTHONPATH": str(folder)},
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
def start_cluster(folder: Path, variables: Mapping[str, str], n_workers: int) -> Iterator[tuple[str, list[Any]]]:
    """Run a scheduler and workers of one thread each; yield its address and the workers' processes."""
    port = find_free_port()
    address = f"tcp://127.0.0.1:{port}"
    with ExitStack() as stack:
        scheduler = ("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
        stack.enter_context(start_process(folder, variables, *scheduler))
        worker = ("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard")
        yield address, [stack.enter_context(start_process(folder, variables, *worker)) for _ in range(n_workers)]


def assert_same_results(summary: Document, local: Document) -> None:
    assert summary["state"] == "completed"
    assert summary["comparability_key"] == local["comparability_key"]
    for name in QUALITY:
        assert summary["metrics"][name] == local["metrics"][name], name
    local_cases, dask_cases = read_cases(local), read_cases(summary)
    columns = [name for name in local_cases.column_names if name not in UNTIMED]
    assert dask_cases.select(columns).equals(local_cases.select(columns))


@pytest.mark.slow("process: a cluster")
@pytest.mark.timeout(240)
def test_killed_worker_loses_no_case(
    yarus: CommandLine, home: Path, engine: Engine, source: str, local: Document, prefect_server: dict[str, str]
) -> None:
    before = list_evaluation_ids(engine)
    with start_cluster(home, prefect_server, 2) as (address, workers):
        env = prefect_server | {"YARUS_DASK_ADDRESS": address}
        driver = yarus.fork(*make_arguments(source), "--runner", "dask", env=env)
        wait_for("evaluation", lambda: list_evaluation_ids(engine) - before or not driver.is_running())
        assert driver.is_running(), driver.ran()
        [name] = list_evaluation_ids(engine) - before
        wait_for("batch", lambda: journal.read_finished_batches(engine, name) or not driver.is_running())
        assert len(journal.read_finished_batches(engine, name)) < CASES // 100
        workers[0].send_signal(signal.SIGKILL)
        out, err, code = driver.ran()
        assert code == 0, err
        assert workers[1].poll() is None
    summary = yarus("show", name, "--json").json
    assert_same_results(summary, local)
    assert len(read_cases(summary)) == CASES
    assert out.startswith("{")


@pytest.fixture(scope="module")
def bucket() -> Iterator[dict[str, str]]:
    """Run an object store, and yield the variables that point to it."""
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
@pytest.mark.timeout(240)
def test_local_cluster_uses_object_store(
    yarus_alone: CommandLine, source: str, local: Document, bucket: dict[str, str]
) -> None:
    import s3fs

    places = {"YARUS_WORK_DIR": "s3://yarus/work", "YARUS_RESULTS": "s3://yarus/results"}
    summary = yarus_alone(*make_arguments(source), "--runner", "dask", env=bucket | places).json  # own Prefect server
    assert summary["parquet"].startswith("s3://yarus/results/tier=tier2/")
    for name in QUALITY:
        assert summary["metrics"][name] == local["metrics"][name], name
    files = s3fs.S3FileSystem(skip_instance_cache=True)
    assert files.exists(summary["parquet"])
    assert files.find("s3://yarus/work") == []  # no unfinished work is left


@pytest.mark.parametrize(
    ("address", "text"),
    [("elsewhere", "such as tcp://host:8786"), ("tcp://other.example:8786", "set YARUS_DATABASE_URL")],
)
def test_unusable_address_is_refused(at_home: Path, monkeypatch: pytest.MonkeyPatch, address: str, text: str) -> None:
    from click.testing import CliRunner

    from yarus.__main__ import cli
    from yarus.db.errors import InputError

    monkeypatch.setenv("YARUS_DASK_ADDRESS", address)
    result = CliRunner().invoke(cli, ["run", "tier1", "--runner", "dask"], standalone_mode=False)
    assert isinstance(result.exception, InputError)
    assert address in str(result.exception)
    assert text in str(result.exception)

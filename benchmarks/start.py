"""Whole commands from start to end, compared with the import of Prefect's server in the same rounds.

`no server there`: a run that has to start Prefect's server. `with one`: a run with a server that is already running.

CPU of a run with a server (sampled; 3.7 s, the peer 4.2 to 5): 78 % in imports (40 in Prefect's client, 5 in FastAPI,
which Prefect uses to write a run's parameters, 33 in SQLAlchemy, NumPy, Arrow, pydantic and our own modules), 13 % in
the evaluation, 5 % in Prefect's flow engine, 4 % at the end. It does not wait for anything.
"""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median

from benchmarks import Row
from benchmarks.home import build_environment, load_source, run_python

ROUNDS = 5
PEER = "import prefect.server.api.server"
EVERYTHING = """
import importlib, pkgutil, {0}
for module in pkgutil.walk_packages({0}.__path__, "{0}."):
    if not module.name.startswith(("yarus.db.migrations", "yarus.flows.cli.demo_llm")):
        importlib.import_module(module.name)
"""
IMPORTS = {
    "yarus.flows": 1.8,
    "yarus.tasks": 1.8,
    "yarus.metrics": 0.2,
    "yarus.db": 0.6,
    "yarus.deployments": 1.8,
}
"""Every module of our packages, imported by a process of its own, and the most time that it may take."""
QUESTIONS, CHUNKS = 5_000, 200
RUN = ("run", "tier0", "--json")
RUNS = (("yarus run tier0, no server there", 1.6), ("yarus run tier0, with one", 0.8))
READING = (
    (("runs",), 0.2),
    (("show", "last"), 0.2),
    (("cases", "last"), 0.2),
    (("compare", "previous", "last"), 0.5),
    (("gate", "last"), 0.5),
    (("trend", "silhouette_score"), 0.5),
    (("doctor",), 0.5),
    (("report",), 1.0),
    (("export", "last", "--mlflow", "--tracking-uri", "sqlite:///mlflow.db"), 1.0),
)
"""Commands that read the sample's evaluations, while the database runs, and the most time that they may take."""


def run() -> Iterator[Row]:
    """Yield seconds by those of the peer."""
    with tempfile.TemporaryDirectory() as folder:
        variables = build_environment(Path(folder))
        try:
            _yarus(variables, *RUN)  # creates the databases
            peers, times = _rounds(variables)
            peer_s = median(peers)
            for (what, target), seconds in zip((*RUNS, *_reading_commands()), times, strict=True):
                yield Row(what, PEER, median(seconds), peer_s, target)
            import_times = [run_python(variables, "-c", "import yarus")[0] for _ in range(ROUNDS)]
            yield Row("import yarus", PEER, median(import_times), peer_s, 0.03)
            for package, target in IMPORTS.items():
                package_times = [run_python(variables, "-c", EVERYTHING.format(package))[0] for _ in range(ROUNDS)]
                yield Row(f"import all of {package}", PEER, median(package_times), peer_s, target)
            yield Row("real_users, 1,000 cases beyond the start", PEER, _time_thousand(variables), peer_s, 0.15)
        finally:
            _yarus(variables, "stop")


def _reading_commands() -> list[tuple[str, float]]:
    return [(f"yarus {' '.join(words[:2])}", target) for words, target in READING]


def _rounds(variables: Mapping[str, str]) -> tuple[list[float], list[list[float]]]:
    """Return the seconds of the peer and of every command, in turn, round by round."""
    peers: list[float] = []
    times: list[list[float]] = [[] for _ in (*RUNS, *READING)]
    for _ in range(ROUNDS):
        peers.append(run_python(variables, "-c", PEER)[0])
        _yarus(variables, "stop")
        commands = [RUN, RUN, *(words for words, _ in READING)]
        for seconds, words in zip(times, commands, strict=True):
            seconds.append(_yarus(variables, *words))
    return peers, times


def _time_thousand(variables: Mapping[str, str]) -> float:
    """Return the seconds per thousand cases of a made-up log: those of all cases less those of one."""
    rows = [
        {
            "id": f"q{number}",
            "question": f"Когда принимают по правилу {number % CHUNKS}, раз {number}?",
            "answer": f"По правилу {number % CHUNKS} принимают до 25 июля.",
            "confluence_url": f"page:{number % CHUNKS}",
            "score": 5 if number % 3 else 1,
        }
        for number in range(QUESTIONS)
    ]
    chunks = [
        {"id": f"c{number}", "confluence_url": f"page:{number}", "text": f"Правило {number}: принимают до 25 июля."}
        for number in range(CHUNKS)
    ]
    load_source(variables, chunks, rows)
    run_log = ("run", "real_users", "--source", "bench", "--json")
    seconds = [(_yarus(variables, *run_log, "--limit", "1"), _yarus(variables, *run_log)) for _ in range(ROUNDS)]
    return median(all_s - one_s for one_s, all_s in seconds) / (QUESTIONS / 1_000)


def _yarus(variables: Mapping[str, str], *words: str) -> float:
    return run_python(variables, "-m", "yarus", *words, codes=(0, 1))[0]  # 1: an evaluation or gate that was judged

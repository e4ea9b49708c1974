"""Check what Prefect gets of an evaluation: final state, tables and texts, keys from blocks, logs without secrets."""

import asyncio
import json
import logging
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sqlalchemy import Engine

from tests.support.command_line import CommandLine
from tests.support.evaluations import evaluate
from yarus.db import journal
from yarus.deployments.prefect.artifacts import (
    NO_CHANGES,
    metric_rows,
    night_changes,
    night_text,
    read_changes,
    verdict_text,
)
from yarus.tasks.config.secrets import install_log_redaction
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.resources import share_sources
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.evaluation.summary import combine_summaries, read_summary
from yarus.tasks.evaluation.work_folder import save_loaded
from yarus.tasks.steps.source import read_source

Document = dict[str, Any]
TIERS_WITH_BATCHES = [tier for tier in TIERS if tier not in ("tier0", "ux")]


ENDINGS = """
import asyncio, json, sys
from pathlib import Path
from prefect import flow
from yarus.deployments.prefect.flow_states import flow_state, has_passed

@flow
async def end(document):
    return await flow_state(document)

found = []
for document in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
    state = asyncio.run(end(document, return_state=True))
    result = asyncio.run(state.aresult(raise_on_failure=False))
    found.append([state.type.value, state.name, state.message, result, has_passed(result)])
print(json.dumps(found))
"""


def test_run_state_tells_outcome(
    yarus: CommandLine, home: Path, prefect_server: dict[str, str], night: dict[str, Document], tmp_path: Path
) -> None:
    gate, file = tmp_path / "strict.toml", tmp_path / "documents.json"
    gate.write_text('[[rule]]\nmetric = "hit_rate@1"\nfloor = 0.99\n\n[[rule]]\nmetric = "mrr"\nfloor = 0.01\n')
    broken = {"verdict": "fail", "file": str(gate), "failed": ["hit_rate@1: floor"]}
    invalid = night["tier2"] | {"state": "invalid", "error": "only 3 %"}
    failed = {"tier": "ux", "state": "failed", "error": "no dialogs"}
    documents = [
        night["tier2"],  # no rule applies to it
        night["tier1"],
        invalid,
        combine_summaries([night["tier2"], failed]),
        combine_summaries([night["tier2"], night["tier1"] | {"gate": broken}]),
    ]
    file.write_text(json.dumps(documents), encoding="utf-8")
    process = yarus.start(str(file), env=prefect_server | {"YARUS_GATE_FILE": str(gate)}, script=ENDINGS)
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    completed, gated, not_valid, bad_night, gated_night = json.loads(out)
    assert completed == ["COMPLETED", "Completed", None, night["tier2"], True]
    assert gated[:2] == ["FAILED", "GateFailed"]
    assert "tier1: hit_rate@1: floor" in gated[2]
    assert gated[3:] == [night["tier1"] | {"gate": broken}, False]
    assert not_valid == ["COMPLETED", "Invalid", "only 3 %", invalid, False]
    assert bad_night == ["FAILED", "Failed", "ux: сбой, no dialogs", documents[3], False]
    assert [gated_night[0], gated_night[1], gated_night[4]] == ["FAILED", "GateFailed", False]


@pytest.mark.slow("prefect: flows of their own")
def test_run_exits_with_1_if_gate_fails(yarus: CommandLine, home: Path, prefect_server: dict[str, str]) -> None:
    gate = home / "floor.toml"
    gate.write_text('[[rule]]\nmetric = "hit_rate@1"\nfloor = 1.0\n')
    ran = yarus("run", "tier1", "--limit", "60", env=prefect_server | {"YARUS_GATE_FILE": str(gate)}, ok=False)
    assert ran.code == 1
    assert "hit_rate@1: floor" in ran.out
    assert "Traceback" not in ran.err


def test_metric_table_is_translated(engine: Engine, night: dict[str, Document]) -> None:
    for tier, document in night.items():
        changes = read_changes(engine, document)
        russian, english = (metric_rows(document, changes, language) for language in ("ru", "en"))
        assert [row["Metric"] for row in english] == list(document["metrics"]), tier
        assert [row["Значение"] for row in russian] == [row["Value"] for row in english]


@pytest.mark.parametrize("language", ["ru", "en"])
def test_verdict_has_sentences_and_at_most_ten_cases(
    at_home: Path, engine: Engine, night: dict[str, Document], language: str
) -> None:
    for tier, document in night.items():
        text = verdict_text(document, read_changes(engine, document), language, "http://reports:1/")
        assert text.split("\n\n")[0].count(".") >= 2, tier
        assert text.count("| `sample:") <= 10
        assert f"(http://reports:1/{document['evaluation_id']}.html)" in text


@pytest.mark.slow("prefect: flows of their own")
def test_change_is_since_previous_evaluation(at_home: Path, engine: Engine) -> None:
    before, again = (evaluate("tier1") for _ in range(2))
    changes = read_changes(engine, again)
    assert changes["since"]["ru"] == before["started_at"][:10]
    assert (
        changes["metrics"]["mrr"] | {"difference": 0.0, "verdict": "no difference shown"} == changes["metrics"]["mrr"]
    )
    assert changes["metrics"]["recall@3"]["difference"] == 0.0
    row = {row["Metric"]: row["Change"] for row in metric_rows(again, changes, "en")}
    assert row["mrr"].startswith("+0.000 (") and row["mrr"].endswith("), negligible")
    assert row["recall@3"].startswith("+0.000 (")


@pytest.mark.slow("prefect: flows of their own")
def test_fallen_night_shows_changes(at_home: Path, engine: Engine) -> None:
    """Check that a significant fall has numbers and an interval, also if the night is invalid."""
    journal.accept_baseline(engine, evaluate("tier1", limit=60)["evaluation_id"])  # not that of other tests
    fallen = evaluate("tier1", limit=60, retriever="fulltext")
    for state in ("completed", "invalid"):
        night = combine_summaries([fallen | {"state": state}])
        text = night_text(night, night_changes(engine, night), "ru", "")
        change_cells = [
            line.split(" | ")[6] for line in text.split("\n") if re.search(r"\| (hit_rate@1|mrr|ndcg@10) \|", line)
        ]
        assert len(change_cells) == 3
        for cell in change_cells:
            assert re.match(r"[+−]0\.\d{3} \([+−]0\.\d{3} … [+−]?0\.\d{3}\), \w+", cell), cell
        assert "Изменили: поиск (retriever): dense → fulltext" in text


def test_user_text_is_escaped(tmp_path: Path, engine: Engine, night: dict[str, Document]) -> None:
    import pyarrow.parquet as pq

    nasty = "a | b\n# **big** <script>alert(1)</script> [link](javascript:x) `code`" + "я" * 500
    file = tmp_path / "nasty.parquet"
    pq.write_table(pa.table({"case_id": ["s:1"], "question": [nasty], "ndcg@10": [0.0]}), file)
    document = night["tier1"] | {"parquet": str(file)}
    [line] = [line for line in verdict_text(document, NO_CHANGES, "en", None).split("\n") if "s:1" in line]
    assert line.replace(r"\|", "").count("|") == 4
    assert "<script" not in line.replace(r"\<", "")
    assert "](" not in line.replace(r"\]", "")
    assert len(line) < 250


def test_night_is_one_text(engine: Engine, night: dict[str, Document]) -> None:
    failed = {"tier": "ux", "state": "failed", "error": "it | broke"}
    document = combine_summaries([*(night[tier] for tier in TIERS if tier != "ux"), failed])
    text = night_text(document, night_changes(engine, document), "en", "http://reports:1/night.html")
    assert "**failed** | it \\| broke" in text
    assert "http://reports:1/night.html" in text
    widths = {line.replace(r"\|", "").count("|") for line in text.split("\n") if line.startswith("|")}
    assert widths == {8}


def test_large_night_has_few_task_runs(at_home: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Count load, index, batches and finish of every tier; tier0 and ux have one batch and a step of their own."""
    from yarus.db.source_rows import Corpus
    from yarus.tasks.config.connections import open_source
    from yarus.tasks.evaluation import work_folder

    monkeypatch.setattr(work_folder.journal, "update_evaluation", lambda *_, **__: None)
    run = EvaluationRun("tier1-of-ten-thousand", "tier1", TIERS["tier1"].parameters())
    run.work.mkdir(parents=True)
    cases = pa.table({"case_id": [f"s:{i}" for i in range(10_000)], "question": ["?"] * 10_000})
    run = save_loaded(run, open_source("sample"), cases, Corpus([], [], [], None), [], EvaluationConfig())
    assert run.n_batches <= 50
    assert len(TIERS_WITH_BATCHES) * (run.n_batches + 3) + 2 * 4 < 600


BLOCKS = """
import asyncio, json
from prefect.blocks.system import Secret
from yarus.db.errors import InputError
from yarus.tasks.config.secrets import with_resolved_key
from yarus.tasks.config.settings import get_settings

async def use():
    await Secret(value="s3cret-of-the-judge").save("judge-key", overwrite=True)
    found = await with_resolved_key(get_settings(), "judge")
    try:
        await with_resolved_key(get_settings(), "gate")
    except InputError as error:
        return found.judge.api_key.get_secret_value(), str(found.public()), str(error)

print(json.dumps(asyncio.run(use())))
"""


@pytest.mark.slow("prefect: flows of their own")
def test_key_is_read_from_secret_block(yarus: CommandLine, home: Path, prefect_server: dict[str, str]) -> None:
    keys = {"YARUS_JUDGE__API_KEY": "block:judge-key", "YARUS_PRODUCTION_JUDGE__API_KEY": "block:nobody"}
    process = yarus.start(env=prefect_server | keys, script=BLOCKS)
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    key, public, refused = json.loads(out)
    assert key == "s3cret-of-the-judge"
    assert "s3cret" not in public
    assert "YARUS_PRODUCTION_JUDGE__API_KEY=block:nobody" in refused
    assert "Blocks" in refused


def test_secrets_are_not_logged(
    at_home: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YARUS_JUDGE__API_KEY", "sk-of-the-judge")
    install_log_redaction()
    install_log_redaction()
    try:
        raise ValueError("Bearer sk-of-the-judge was refused at postgresql://u:s3cret@host/db")
    except ValueError:
        logging.getLogger("prefect.flow_runs").exception("failed at %s", "http://x/?api_key=s3cret")
    logging.getLogger("yarus").warning("asked with %s", "sk-of-the-judge")
    assert len(caplog.records) == 2
    assert "ValueError: Bearer *** was refused" in caplog.text
    assert "asked with ***" in caplog.text
    for secret in ("s3cret", "sk-of-the-judge"):
        assert secret not in caplog.text


def test_night_reads_source_once(at_home: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    from yarus.tasks.steps import source as reading

    reads: list[bool] = []

    def read_corpus(*arguments: Any, vectors: bool) -> Any:
        reads.append(vectors)
        return original(*arguments, vectors=vectors)

    original = reading.read_corpus
    monkeypatch.setattr(reading, "read_corpus", read_corpus)
    with share_sources():
        run = EvaluationRun("tier1-reads", "tier1", TIERS["tier1"].parameters())
        with_vectors = read_source(run, vectors=True)
        without = read_source(run, vectors=False)
        assert reads == [True]
        assert without[2].vectors is None
        assert without[1] is with_vectors[1]
    read_source(EvaluationRun("tier1-reads", "tier1", TIERS["tier1"].parameters()), vectors=False)
    assert reads == [True, False]


def test_nothing_is_shown_outside_flow(engine: Engine, night: dict[str, Document]) -> None:
    from yarus.deployments.prefect.artifacts import show_night, show_results

    asyncio.run(show_results(read_summary(engine, night["tier1"]["evaluation_id"])))
    asyncio.run(show_night(combine_summaries([night["tier1"]]), "sample", None))

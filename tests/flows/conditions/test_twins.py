"""Check duplicates on XQuAD: a fifth of the paragraphs occurs twice, under addresses that sort first."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import CommandLine

SOURCE = "xquad_twins"
COMPARED = ("hit_rate@1", "mrr", "recall@10", "precision@5", "ndcg@10", "judged@10", "bpref")


@pytest.fixture(scope="module")
def doubled(yarus: CommandLine, xquad_ru: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Load XQuAD-ru with 48 of its 240 paragraphs once more, without questions, in an article that comes first."""
    xquad = json.loads(xquad_ru.read_text(encoding="utf-8"))
    paragraphs = [paragraph["context"] for article in xquad["data"] for paragraph in article["paragraphs"]]
    repeated = random.Random(0).sample(paragraphs, len(paragraphs) // 5)
    copies = {"title": "0", "paragraphs": [{"context": text, "qas": []} for text in repeated]}
    file = tmp_path_factory.mktemp("twins") / "twins.json"
    file.write_text(json.dumps({"data": [copies, *xquad["data"]]}), encoding="utf-8")
    assert yarus("load", "squad", str(file), "--into", SOURCE, "--json").json["chunks"]["added"] == 288
    return SOURCE


def run(yarus: CommandLine, source: str, *more: str) -> dict[str, Any]:
    words = ("run", "tier1", "--source", source, "--retriever", "dense", "--limit", "300")
    summary: dict[str, Any] = yarus(*words, *more, "--json").json
    return summary


@pytest.mark.slow("prefect: three evaluations")
def test_corpus_with_duplicates_scores_as_without(yarus: CommandLine, doubled: str, xquad_ru: Path) -> None:
    """Compare with and without copies; counted separately, the copies that come first are misses."""
    yarus("load", "squad", str(xquad_ru), "--into", "xquad_single", "--json")
    single, merged = run(yarus, "xquad_single"), run(yarus, doubled)
    separate = run(yarus, doubled, "--merge-duplicates", "false")
    assert {"note": "twin chunks", "n": 48} in merged["notes"]
    values = [[summary["metrics"][name]["value"] for name in COMPARED] for summary in (single, merged, separate)]
    assert values[0] == pytest.approx(values[1], rel=0, abs=1e-12)
    assert values[2][0] < values[0][0] - 0.1
    assert (merged["system"]["twins"], separate["system"]["twins"]) == ("one", "apart")
    assert merged["comparability_key"] != separate["comparability_key"]
    assert single["incomplete"]["questions"] is None  # every question has a label
    assert all(
        merged["incomplete"]["if_right"][name] >= merged["metrics"][name]["value"]
        for name in merged["incomplete"]["if_right"]
    )


def test_audit_lists_duplicates(yarus: CommandLine, doubled: str) -> None:
    twins = yarus("dataset", "audit", "--source", doubled, "--json").json["duplicate_chunks"]
    assert (twins["count"], twins["pages"]) == (48, 0)
    assert all(len(group) == 2 and group[0].startswith("0-") for group in twins["examples"])

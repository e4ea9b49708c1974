"""Claim metrics against RAGChecker's own code on random verdicts, and NaN if there is nothing to measure."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from yarus.metrics.claims import NAMES, Verdicts, claim_metrics

ORACLE = Path(__file__).parents[4] / "shared" / "data" / "ragchecker" / "claim_metrics.jsonl"
RAGCHECKER_NAMES = {
    "claim_precision": ("precision",),
    "claim_recall": ("recall",),
    "claim_f1": ("f1",),
    "retrieved_claim_recall": ("claim_recall",),
    "context_precision": ("context_precision",),
    "context_utilization": ("context_utilization",),
    "noise_sensitivity": ("noise_sensitivity_in_relevant", "noise_sensitivity_in_irrelevant"),
    "hallucination": ("hallucination",),
    "self_knowledge": ("self_knowledge",),
    "claim_faithfulness": ("faithfulness",),
}


def convert(verdicts: Any) -> Any:
    return [convert(verdict) for verdict in verdicts] if isinstance(verdicts, list) else float(verdicts == "Entailment")


def is_undefined(row: dict[str, Any], name: str) -> bool:
    answer_claims, reference_claims = row["answer2response"], row["response2answer"]
    passages = max(map(len, [*row["retrieved2response"], *row["retrieved2answer"]]), default=0)
    recalled = any("Entailment" in verdicts for verdicts in row["retrieved2answer"])
    return {
        "claim_precision": not answer_claims,
        "claim_recall": not reference_claims,
        "claim_f1": not (answer_claims and reference_claims),
        "retrieved_claim_recall": not (reference_claims and passages),
        "context_precision": not (reference_claims and passages),
        "context_utilization": not recalled,
        "noise_sensitivity": not (answer_claims and reference_claims and passages),
    }.get(name, not (answer_claims and passages))


def test_claim_metrics_equal_ragchecker() -> None:
    if not ORACLE.exists():
        pytest.skip(f"needs {ORACLE}")
    rows = [json.loads(line) for line in ORACLE.read_text(encoding="utf-8").splitlines()]
    keys = ("answer2response", "response2answer", "retrieved2response", "retrieved2answer")
    values = claim_metrics([Verdicts(*(convert(row[key]) for key in keys)) for row in rows])
    for name, keys_of_metric in RAGCHECKER_NAMES.items():
        expected = [
            np.nan if is_undefined(row, name) else sum(row["metrics"][key] for key in keys_of_metric) for row in rows
        ]
        np.testing.assert_allclose(values[name], expected, rtol=0, atol=1e-9, err_msg=name)
        assert 50 < np.isnan(values[name]).sum() < 500, name


def test_claim_metrics_leave_out_claims_without_verdict() -> None:
    unknown = np.nan
    case = Verdicts([1, unknown, 0], [unknown], [[0, unknown], [1, unknown], [0, 0]], [[unknown, 0]])
    metrics = {name: values[0] for name, values in claim_metrics([case]).items()}
    assert metrics["claim_precision"] == 0.5 and np.isnan(metrics["claim_recall"]) and np.isnan(metrics["claim_f1"])
    assert metrics["claim_faithfulness"] == 0.5  # undefined for the first claim: a passage has no verdict
    assert metrics["hallucination"] == 1  # of the third claim, the only one with both verdicts
    assert np.isnan(metrics["retrieved_claim_recall"])


def test_hallucination_undefined_without_reference() -> None:
    """The verdicts against the reference are missing for all claims: supported claims alone would give a rate of 0."""
    values = claim_metrics([Verdicts([np.nan, np.nan], [], [[1], [0]], [])])
    assert values["claim_faithfulness"] == 0.5
    assert np.isnan([values[name][0] for name in ("hallucination", "self_knowledge", "claim_precision")]).all()


def test_claim_metrics_undefined_without_claims() -> None:
    values_by_name = claim_metrics([None, Verdicts([], [], [], [])])
    assert list(values_by_name) == list(NAMES) and all(np.isnan(values).all() for values in values_by_name.values())


def test_claim_metrics_refuse_unequal_lengths() -> None:
    with pytest.raises(ValueError, match="2 claims of the answer but verdicts of 1 against the passages"):
        claim_metrics([Verdicts([1, 0], [1], [[1]], [[1]])])


def test_context_precision_ignores_claims_without_verdict() -> None:
    """One of five passages has the one judged claim: another claim without a verdict changes nothing."""
    judged = [1, 0, 0, 0, 0]
    for needed in ([judged], [judged, [np.nan] * 5]):
        values = claim_metrics([Verdicts([], [1] + [np.nan] * (len(needed) - 1), [], needed)])
        assert values["context_precision"][0] == 0.2

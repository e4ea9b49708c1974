"""Metrics of claims against RAGChecker's own code on random verdicts, and where it gives 0 for want of anything."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from yarus.metrics.claims import NAMES, Verdicts, claim_metrics

ORACLE = Path(__file__).parents[4] / "shared" / "data" / "ragchecker" / "claim_metrics.jsonl"
THEIRS = {
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


def entailed(verdicts: Any) -> Any:
    return [entailed(each) for each in verdicts] if isinstance(verdicts, list) else float(verdicts == "Entailment")


def nothing_to_measure(row: dict[str, Any], name: str) -> bool:
    said, needed = row["answer2response"], row["response2answer"]
    passages = max(map(len, [*row["retrieved2response"], *row["retrieved2answer"]]), default=0)
    recalled = any("Entailment" in of for of in row["retrieved2answer"])
    return {
        "claim_precision": not said,
        "claim_recall": not needed,
        "claim_f1": not (said and needed),
        "retrieved_claim_recall": not (needed and passages),
        "context_precision": not (needed and passages),
        "context_utilization": not recalled,
        "noise_sensitivity": not (said and needed and passages),
    }.get(name, not (said and passages))


def test_equal_to_ragchecker() -> None:
    if not ORACLE.exists():
        pytest.skip(f"needs {ORACLE}")
    rows = [json.loads(line) for line in ORACLE.read_text(encoding="utf-8").splitlines()]
    keys = ("answer2response", "response2answer", "retrieved2response", "retrieved2answer")
    found = claim_metrics([Verdicts(*(entailed(row[key]) for key in keys)) for row in rows])
    for name, theirs in THEIRS.items():
        expected = [
            np.nan if nothing_to_measure(row, name) else sum(row["metrics"][key] for key in theirs) for row in rows
        ]
        np.testing.assert_allclose(found[name], expected, rtol=0, atol=1e-9, err_msg=name)
        assert 50 < np.isnan(found[name]).sum() < 500, name


def test_a_claim_without_a_verdict_is_left_out() -> None:
    unknown = np.nan
    case = Verdicts([1, unknown, 0], [unknown], [[0, unknown], [1, unknown], [0, 0]], [[unknown, 0]])
    found = {name: values[0] for name, values in claim_metrics([case]).items()}
    assert found["claim_precision"] == 0.5 and np.isnan(found["claim_recall"]) and np.isnan(found["claim_f1"])
    assert found["claim_faithfulness"] == 0.5  # the first is not known: a passage has no verdict
    assert found["hallucination"] == 1  # of the third, the only one of which both is known
    assert np.isnan(found["retrieved_claim_recall"])


def test_without_a_reference_nothing_is_a_hallucination_or_none() -> None:
    """Half of what is asked is not known of any claim: a supported claim alone would say that there is none."""
    found = claim_metrics([Verdicts([np.nan, np.nan], [], [[1], [0]], [])])
    assert found["claim_faithfulness"] == 0.5
    assert np.isnan([found[name][0] for name in ("hallucination", "self_knowledge", "claim_precision")]).all()


def test_none_and_nothing() -> None:
    found = claim_metrics([None, Verdicts([], [], [], [])])
    assert list(found) == list(NAMES) and all(np.isnan(values).all() for values in found.values())


def test_claims_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="2 claims of the answer but verdicts of 1 against the passages"):
        claim_metrics([Verdicts([1, 0], [1], [[1]], [[1]])])


def test_a_claim_that_the_judge_forgot_raises_nothing() -> None:
    """One of five passages has the one claim that was judged: another claim without a verdict changes nothing."""
    judged = [1, 0, 0, 0, 0]
    for needed in ([judged], [judged, [np.nan] * 5]):
        found = claim_metrics([Verdicts([], [1] + [np.nan] * (len(needed) - 1), [], needed)])
        assert found["context_precision"][0] == 0.2

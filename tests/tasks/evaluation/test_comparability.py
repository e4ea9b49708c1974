"""Comparability keys: metrics that were added later do not change old keys."""

from dataclasses import replace

import pytest

from yarus.metrics.table import METRICS, metrics_for_tier
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.identity import comparability, comparability_key
from yarus.tasks.evaluation.run import EvaluationRun

LATER = {"avg_fact_precision", "avg_fact_recall", "unsupported_fact_rate"}
CITED = {"avg_citation_known", "avg_citation_fact_precision"}
"""Also added later, to tier 3."""
TIER2 = """sut_error_rate|v:2 avg_faithfulness|scale:0-1|v:1 avg_answer_relevance|scale:0-1|v:1
avg_answer_correctness|scale:0-1|v:1 avg_rouge1_f|mode:fmeasure|tok:words|norm:NFC|v:1
avg_rouge2_f|mode:fmeasure|tok:words|norm:NFC|v:1 avg_rougeL_f|mode:fmeasure|tok:words|norm:NFC|v:1
avg_bleu|max_ngram:4|smoothing:add-1|tok:words|norm:NFC|v:1
corpus_bleu|max_ngram:4|smoothing:add-1|tok:words|norm:NFC|v:1
avg_chrf|char_order:6|word_order:0|beta:2|whitespace:no|norm:NFC|v:1 avg_wer|tok:words|norm:NFC|v:1
avg_string_similarity|measure:jaro_winkler|case_sensitive:no|norm:NFC|v:1 avg_perplexity|v:1
response_exact_match_rate|norm:NFC|v:1 response_semantic_consistency|v:1 refusal_rate|v:2"""


def make_run(tier: str) -> EvaluationRun:
    parameters = TIERS[tier].parameters(source="sample")
    return EvaluationRun("x", tier, parameters, EvaluationConfig(unit="chunk", k=3, gain="linear"))


def key(tier: str) -> str:
    return comparability_key(comparability(make_run(tier), "ab" * 32))


@pytest.mark.parametrize(
    ("tier", "stored"),
    [("tier2", "40551509b4a27a24"), ("tier3", "bfabfed7ed02898f"), ("judge_pipeline", "3170759129b8b237")],
)
def test_comparability_key_equals_stored_key(tier: str, stored: str) -> None:
    assert key(tier) == stored


def test_comparability_contains_original_signatures() -> None:
    assert comparability(make_run("tier2"), "")["metrics"] == TIER2.split()
    unasked = {row.name for row in metrics_for_tier("tier2") if not row.asked}
    assert unasked - {part.split("|")[0] for part in TIER2.split()} == LATER


def test_later_metrics_join_key_when_they_change(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {name for name, row in METRICS.items() if not row.in_key and not row.asked} == LATER | CITED
    before, row = key("tier2"), METRICS["avg_fact_precision"]
    monkeypatch.setitem(METRICS, row.name, replace(row, signature="avg_fact_precision|v:2"))
    assert "avg_fact_precision|v:2" in comparability(make_run("tier2"), "")["metrics"]
    assert key("tier2") != before


@pytest.mark.parametrize("option", ["claims", "nuggets", "citations", "dialogs"])
def test_optional_judges_change_the_key(option: str) -> None:
    """Claims of one wording differ from those of another, and metrics with claims from those without."""
    run, keys = make_run("tier3"), {key("tier3")}
    for digest in ("ab", "cd"):
        config = run.config | EvaluationConfig(**{option: {"model": "m", "prompts": {"support": digest}}})
        keys.add(comparability_key(comparability(replace(run, config=config), "ab" * 32)))
    assert len(keys) == 3

"""Retrieval metrics for incomplete judgments: unjudged results are distinguished from irrelevant ones."""

from yarus.metrics.incomplete.bounds import gains_if_unjudged_relevant, ndcg_upper_bound, recall_upper_bound
from yarus.metrics.incomplete.judgements import bpref, inf_ap, judged, judgement_matrix, unjudged_above

__all__ = [
    "bpref",
    "gains_if_unjudged_relevant",
    "inf_ap",
    "judged",
    "judgement_matrix",
    "ndcg_upper_bound",
    "recall_upper_bound",
    "unjudged_above",
]

"""Retrieval where labels are never complete: what nobody has judged is told apart from what is not relevant."""

from yarus.metrics.incomplete.bounds import highest_ndcg, highest_recall, unjudged_right
from yarus.metrics.incomplete.judgements import bpref, inf_ap, judged, judgement_matrix, unjudged_above

__all__ = [
    "bpref",
    "highest_ndcg",
    "highest_recall",
    "inf_ap",
    "judged",
    "judgement_matrix",
    "unjudged_above",
    "unjudged_right",
]

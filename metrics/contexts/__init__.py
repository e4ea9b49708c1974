"""Robustness to bad contexts: copying a distractor, declining, following a changed value, obeying an injection.

All metrics are rule-based, one value per case: the context was changed in a known way. The questions are those of RGB
(Chen et al. 2024, Benchmarking large language models in retrieval-augmented generation, AAAI 2024, arXiv 2309.01431):
noise robustness, negative rejection, counterfactual robustness; and indirect prompt injection.
"""

from yarus.metrics.contexts.conflicts import follows_context, follows_memory, follows_neither
from yarus.metrics.contexts.distractors import copies_distractor
from yarus.metrics.contexts.injections import obeys_injection, rejects

__all__ = ["copies_distractor", "follows_context", "follows_memory", "follows_neither", "obeys_injection", "rejects"]

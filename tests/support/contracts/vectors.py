"""Contracts of the metrics of vectors: a golden value, the best value, edge cases, and generated cases."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.support.contracts.cases import NAN, Columns, Contract
from yarus.metrics import answers, dialogue, embedding

VECTOR = st.tuples(*[st.floats(-3, 3).map(lambda x: round(x, 2))] * 3).filter(lambda v: sum(x * x for x in v) > 0.01)
LABELLED = st.tuples(VECTOR, st.sampled_from("abc"))
SEPARATE_CLUSTERS = ([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], list("aabb"))
BAD_VECTORS: list[tuple[Columns, Any]] = [
    (([[1.0, NAN], [1.0, 0.0]], ["a", "a"]), ValueError),
    (([[1.0, math.inf], [1.0, 0.0]], ["a", "a"]), ValueError),
    (([[1.0, 0.0]], ["a", "b"]), ValueError),
]


def cloud_contract(compute: Callable[..., Any], golden: float, *edges: tuple[Columns, Any]) -> Contract:
    """Return a contract for the four corners of a square around the point (3, 3)."""
    corners = [[2.0, 2.0], [2.0, 4.0], [4.0, 2.0], [4.0, 4.0]]
    bad = [(columns[:1], error) for columns, error in BAD_VECTORS[:2]]
    return Contract(compute, golden=((corners,), golden), cases=st.tuples(VECTOR), edges=[*edges, *bad])


# Cosine between (2, 2) or (4, 4) and (2, 4) or (4, 2): 12 / sqrt(160); between (2, 4) and (4, 2): 16 / 20.
NEAR, FAR = 1 - 12 / math.sqrt(160), 1 - 0.8
PAIRWISE = (0 + 4 * NEAR + FAR) / 6
NEAREST = (2 * (0 + 2 * NEAR) / 3 + 2 * (FAR + 2 * NEAR) / 3) / 4
DIALOG = ([[1.0, 0.0], [0.6, 0.8], [0.0, -1.0]], ["d", "d", "d"])
ONE_TURN: tuple[Columns, Any] = (([[1.0, 0.0]], ["d"]), NAN)
EMPTY_PAIR = (([], []), NAN)
VECTOR_CONTRACTS = {
    "answers.semantic_similarity": Contract(
        answers.semantic_similarity,
        golden=(([[3, 4]], [[4, 3]]), [24 / 25]),
        cases=st.tuples(VECTOR, VECTOR),
        best=(([[1, 2]], [[2, 4]]), [1]),
        edges=[
            (([[0, 0]], [[1, 0]]), [NAN]),
            (([[NAN, 0]], [[1, 0]]), [NAN]),
            (([[math.inf, 0]], [[1, 0]]), ValueError),
            (([[1, 0]], [[1]]), ValueError),
        ],
    ),
    "embedding.cluster_similarities": Contract(
        lambda vectors, labels: float(np.nanmean(embedding.cluster_similarities(vectors, labels))),
        golden=(([[1, 0], [1, 0], [0, 1]], list("aaa")), 1 / 3),
        cases=st.tuples(VECTOR, st.just("a")),
        best=(SEPARATE_CLUSTERS, 1),
        edges=[*BAD_VECTORS, (([[0.0, 0.0], [1.0, 0.0]], ["a", "a"]), ValueError)],
    ),
    "embedding.intra_cluster_similarity": Contract(
        embedding.intra_cluster_similarity,
        golden=(([[1, 0], [1, 0], [0, 1], [1, 0], [0, 1]], list("aaabb")), (1 / 3 + 0) / 2),
        cases=LABELLED,
        best=(SEPARATE_CLUSTERS, 1),
        edges=[
            *BAD_VECTORS,
            (([[1.0, 0.0], [0.0, 1.0]], ["a", "b"]), NAN),
            (([[0.0, 0.0]] * 2, ["a", "a"]), ValueError),
        ],
    ),
    "embedding.inter_cluster_distance": Contract(
        embedding.inter_cluster_distance,
        golden=(SEPARATE_CLUSTERS, math.sqrt(2)),
        cases=LABELLED,
        edges=[*BAD_VECTORS, (([[1.0, 0.0], [0.0, 1.0]], ["a", "a"]), NAN)],
    ),
    "embedding.silhouette": Contract(
        embedding.silhouette,
        golden=(([[1, 0], [0, 1], [-1, 0]], list("aab")), (0.5 + 0 + 0) / 3),  # a = 1, b = 2; a = 1, b = 1; alone
        cases=LABELLED,
        best=(SEPARATE_CLUSTERS, 1),
        edges=[*BAD_VECTORS, (([[1.0, 0.0], [0.0, 1.0]], ["a", "a"]), NAN), (([[1.0, 0.0]] * 3, list("aab")), 0)],
    ),
    "embedding.nearest_neighbour_distance": cloud_contract(
        embedding.nearest_neighbour_distance, NEAREST, (([[1.0, 2.0]],), NAN)
    ),
    "embedding.density_score": cloud_contract(
        lambda vectors: embedding.density_score(embedding.nearest_neighbour_distance(vectors)),
        1 / NEAREST,
        (([[1.0, 2.0]] * 3,), NAN),
    ),
    "embedding.spread": cloud_contract(embedding.spread, math.sqrt(2), (([[1.0, 2.0]],), 0)),
    "embedding.effective_dimensionality": cloud_contract(
        embedding.effective_dimensionality, 2, (([[1.0, 2.0]] * 3,), NAN)
    ),
    "embedding.mean_pairwise_distance": cloud_contract(
        embedding.mean_pairwise_distance, PAIRWISE, (([[1.0, 2.0]],), NAN)
    ),
    "dialogue.cache_hit_rate": Contract(
        lambda questions: dialogue.cache_hit_rate(questions, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
        golden=(([[1.0, 0.1, 0.0], [1.0, 1.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 1.0]],), 1 / 2),
        cases=st.tuples(VECTOR),
        best=(([[3.0, 0.0, 0.0]],), 1),
        edges=[((np.empty((0, 3)),), NAN), (([[0.0, 0.0, 0.0]],), ValueError), (([[1.0, NAN, 0.0]],), ValueError)],
    ),
    "dialogue.cache_wrong_hit_rate": Contract(
        dialogue.cache_wrong_hit_rate,
        golden=(([0.9, 0.99, 0.5, 0.86], [1, 0, 0, NAN]), 1 / 2),
        cases=st.tuples(st.floats(-1, 1), st.sampled_from([0.0, 1.0, NAN])),
        best=(([0.9], [1]), 0),
        edges=[EMPTY_PAIR, (([0.85], [0]), NAN), (([NAN, 0.9], [0, NAN]), NAN), (([0.9], [1, 0]), ValueError)],
    ),
    "dialogue.context_preservation": Contract(
        dialogue.context_preservation,
        golden=(DIALOG, (0.6 - 0.8) / 2),
        cases=st.tuples(VECTOR, st.just("d")),
        best=(([[1.0, 2.0], [2.0, 4.0]], ["d", "d"]), 1),
        edges=[
            ONE_TURN,
            (([[1.0, 0.0], [0.0, 0.0]], ["d", "d"]), ValueError),
            (([[1.0, 0.0]], ["d", "e"]), ValueError),
        ],
    ),
    "dialogue.multi_turn_consistency": Contract(
        dialogue.multi_turn_consistency,
        golden=(DIALOG, 0.6 / 3),
        cases=st.tuples(VECTOR, st.sampled_from("de")),
        best=(([[1.0, 2.0], [2.0, 4.0]], ["d", "d"]), 1),
        edges=[
            ONE_TURN,
            (([[1.0, 0.0], [0.0, 0.0]], ["d", "d"]), ValueError),
            (([[1.0, 0.0]], ["d", "e"]), ValueError),
        ],
    ),
}

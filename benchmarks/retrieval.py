"""Tier 1's metrics of 20,000 questions, from lists of text ids to one value per question, against the field's tools.

Each tool is timed with the construction of its own input from the same lists; ranx after the compilation of its
kernels. ir_measures computes RR@10, its name for MRR over ten ranks; its plain RR, equal on such rankings, takes half.
"""

import random
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import ir_measures
import numpy as np
import pytrec_eval
import ranx

from benchmarks import Row, time_in_turn
from yarus.metrics import retrieval

N, DEPTH = 20_000, 10
TREC = {"success": "hit_rate", "recip_rank": "mrr", "recall": "recall", "P": "precision", "ndcg_cut": "ndcg"}
CUTS = {"hit_rate": (1, 5, 10), "recall": (1, 3, 5, 10), "precision": (1, 3, 5, 10), "ndcg": (5, 10)}
NAMES = ["mrr", *(f"{name}@{k}" for name, ks in CUTS.items() for k in ks)]

Rankings = list[list[str]]
Relevant = list[set[str]]
Values = dict[str, Any]


def draw_questions() -> tuple[Rankings, Relevant]:
    """Return N rankings over 50,000 ids, with one to three relevant ids per question, most of them retrieved."""
    rng = random.Random(0)
    ids = [f"chunk-{number}" for number in range(50_000)]
    rankings = [rng.sample(ids, DEPTH) for _ in range(N)]
    relevant = [{rng.choice(ranking if rng.random() < 0.7 else ids) for _ in range(3)} for ranking in rankings]
    return rankings, relevant


def compute_ours(rankings: Rankings, relevant: Relevant) -> Values:
    gains, n_relevant = retrieval.gain_matrix(rankings, relevant, depth=DEPTH)
    values: Values = {"mrr": retrieval.reciprocal_rank(gains)}
    values |= {f"hit_rate@{k}": retrieval.hit_rate(gains, k=k) for k in CUTS["hit_rate"]}
    values |= {f"recall@{k}": retrieval.recall(gains, n_relevant, k=k) for k in CUTS["recall"]}
    values |= {f"precision@{k}": retrieval.precision(gains, k=k) for k in CUTS["precision"]}
    return values | {f"ndcg@{k}": retrieval.ndcg(gains, n_relevant, k=k) for k in CUTS["ndcg"]}


def build_dictionaries(
    rankings: Rankings, relevant: Relevant
) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Return the input of all peers; scores fall with the rank, so that there are no ties."""
    scores = [float(score) for score in range(DEPTH, 0, -1)]
    run = {str(row): dict(zip(ranking, scores, strict=True)) for row, ranking in enumerate(rankings)}
    return {str(row): dict.fromkeys(labels, 1) for row, labels in enumerate(relevant)}, run


def compute_with_trec(rankings: Rankings, relevant: Relevant) -> dict[str, dict[str, float]]:
    qrels, run = build_dictionaries(rankings, relevant)
    cut = {measure: ",".join(map(str, CUTS[name])) for measure, name in TREC.items() if name in CUTS}
    measures = {"recip_rank", *(f"{measure}.{ks}" for measure, ks in cut.items())}
    values: dict[str, dict[str, float]] = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    return values


def compute_with_ranx(rankings: Rankings, relevant: Relevant) -> Values:
    qrels, run = build_dictionaries(rankings, relevant)
    values: Values = ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), NAMES, return_mean=False)
    return values


def compute_with_ir_measures(rankings: Rankings, relevant: Relevant) -> Values:
    qrels, run = build_dictionaries(rankings, relevant)
    names = {"hit_rate": "Success", "recall": "R", "precision": "P", "ndcg": "nDCG"}
    parsed = {f"{name}@{k}": ir_measures.parse_measure(f"{names[name]}@{k}") for name, ks in CUTS.items() for k in ks}
    parsed["mrr"] = ir_measures.RR @ DEPTH
    means: Any = ir_measures.calc(list(parsed.values()), qrels, run)[0]
    return {name: means[measure] for name, measure in parsed.items()}


def check(values: Values, rankings: Rankings, relevant: Relevant) -> None:
    """Check that every value of every question equals the peers' to 1e-9 (ir_measures': their means)."""
    by_trec = compute_with_trec(rankings, relevant)
    for measure, name in TREC.items():
        for key in [f"{name}@{k}" for k in CUTS[name]] if name in CUTS else [name]:
            peer = [
                by_trec[str(row)][key.replace(f"{name}@", f"{measure}_").replace("mrr", measure)] for row in range(N)
            ]
            np.testing.assert_allclose(values[key], peer, rtol=0, atol=1e-9, err_msg=f"pytrec_eval {key}")
    for name, peer in compute_with_ranx(rankings, relevant).items():
        order = np.argsort(np.array([str(row) for row in range(N)]))  # ranx sorts the questions by name
        np.testing.assert_allclose(values[name][order], peer, rtol=0, atol=1e-9, err_msg=f"ranx {name}")
    for name, mean in compute_with_ir_measures(rankings, relevant).items():
        np.testing.assert_allclose(values[name].mean(), mean, rtol=0, atol=1e-9, err_msg=f"ir_measures {name}")


def run() -> Iterator[Row]:
    """Yield one row per peer."""
    rankings, relevant = draw_questions()
    check(compute_ours(rankings, relevant), rankings, relevant)
    peers = (
        ("pytrec-eval-terrier", compute_with_trec, 3, 3),
        ("ranx", compute_with_ranx, 10, 3),
        ("ir-measures", compute_with_ir_measures, 100, 1),
    )
    for package, peer, target, rounds in peers:
        ours_s, peer_s = time_in_turn(
            lambda: compute_ours(rankings, relevant),
            lambda: peer(rankings, relevant),  # noqa: B023
            rounds=rounds,
        )
        what = f"tier 1's {len(NAMES)} metrics, {N:,} questions"
        yield Row(what, f"{package} {version(package)}", ours_s, peer_s, target, "at least")

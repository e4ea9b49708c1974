"""The metrics of rankings (tier 1, tier 3 and real users), and the rates and latencies of the system under test."""

from typing import Any

from yarus.metrics.metric import UNBOUNDED, Metric

_RANKED: tuple[str, ...] = ("tier1", "tier3", "real_users")
_UNLABELLED = "the question has no relevant label, or the retriever failed (an empty ranking is defined: 0)"
_TREC = "trec_eval (pytrec_eval) on the same ranking"
_DEPTH = "Only as good as the labels: a relevant chunk that nobody labelled counts as a miss."
_GRADED = (0.5, 0.8)
_KNOWN = "Over 0.8 excellent, 0.5 to 0.8 good, below 0.5 needs attention."


def _hit_rate(k: int) -> Metric:
    return Metric(
        name=f"hit_rate@{k}",
        tiers=_RANKED,
        function="retrieval.hit_rate",
        column=f"hit_rate@{k}",
        measures=f"Share of questions with a relevant result among the first {k}.",
        formula=f"1 if any of the first {k} is relevant, else 0; mean over questions",
        interval="wilson",
        signature=f"hit_rate@{k}|v:1",
        equals=f"{_TREC}: success_{k}",
        undefined=_UNLABELLED,
        trust=f"High: it is what the generator can or cannot see. It ignores how many are relevant and where. {_DEPTH}",
        reading=("The one to watch where only the first result reaches the generator. " + _KNOWN)
        if k == 1
        else f"The best that a re-ranker over the first {k} could make of hit_rate@1.",
        thresholds=_GRADED if k == 1 else None,
    )


def _recall_metric(k: int) -> Metric:
    return Metric(
        name=f"recall@{k}",
        tiers=_RANKED,
        function="retrieval.recall",
        column=f"recall@{k}",
        measures=f"Share of a question's relevant results that stand among the first {k}.",
        formula=f"relevant among the first {k} / all relevant; mean over questions",
        signature=f"recall@{k}|v:1",
        equals=f"{_TREC}: recall_{k}",
        source="Cleverdon 1960, The Cranfield tests",
        undefined=_UNLABELLED,
        trust=f"High where labelling is complete. {_DEPTH}",
        reading=f"Cannot reach 1 where more than {k} are relevant. With one label a question it equals hit_rate@{k}.",
    )


def _precision_metric(k: int) -> Metric:
    return Metric(
        name=f"precision@{k}",
        tiers=_RANKED,
        function="retrieval.precision",
        column=f"precision@{k}",
        measures=f"Share of the first {k} ranks that hold a relevant result.",
        formula=f"relevant among the first {k} / {k}, even if fewer came back; mean over questions",
        interval="wilson" if k == 1 else "bca",
        signature=f"precision@{k}|v:1",
        equals=f"{_TREC}: P_{k}",
        source="Cleverdon 1960, The Cranfield tests",
        undefined=_UNLABELLED,
        trust=f"High where labelling is complete. {_DEPTH}",
        reading="With one relevant label a question at most 1 / k: read it against that ceiling, not against 1.",
    )


def _ndcg_metric(k: int) -> Metric:
    return Metric(
        name=f"ndcg@{k}",
        tiers=_RANKED,
        function="retrieval.ndcg",
        column=f"ndcg@{k}",
        measures=f"How near the order of the first {k} comes to the best possible order.",
        formula=f"DCG / ideal DCG, DCG = sum over ranks i = 1..{k} of gain_i / log2(i + 1); mean over questions",
        signature=f"ndcg@{k}|gain:binary|v:1",
        equals=f"{_TREC}: ndcg_cut_{k}",
        source="Järvelin and Kekäläinen 2002, Cumulated gain-based evaluation of IR techniques",
        undefined=_UNLABELLED,
        trust=f"Very high: the standard of TREC, BEIR and MTEB. Graded labels change it, and its signature. {_DEPTH}",
        reading=f"1 means all relevant results first. {_KNOWN}" if k == 10 else "As ndcg@10, for a shorter list.",
        thresholds=_GRADED if k == 10 else None,
    )


MRR = Metric(
    name="mrr",
    tiers=_RANKED,
    function="retrieval.reciprocal_rank",
    column="mrr",
    measures="How high the first relevant result stands.",
    formula="1 / rank of the first relevant result within the depth retrieved, 0 if none; mean over questions",
    signature="mrr|depth:10|v:1",
    equals=f"{_TREC}: recip_rank",
    source="Voorhees 1999, The TREC-8 question answering track report",
    undefined=_UNLABELLED,
    trust=f"High where the first hit is what counts; it ignores the others. {_DEPTH}",
    reading="0.5 is what a first hit always at rank 2 gives, but also half of the questions at rank 1 and half "
    f"missed: it is not an average rank. {_KNOWN}",
    thresholds=_GRADED,
)


def _latency_metric(name: str, percent: int, tiers: tuple[str, ...], what: str, **more: Any) -> Metric:
    return Metric(
        name=f"{name}_p{percent}",
        tiers=tiers,
        column=name,
        measures=f"{what}: {'half' if percent == 50 else '19 of 20'} of the questions were served within this time.",
        formula=f"{percent}th percentile of the cases' times, linearly interpolated",
        high=UNBOUNDED,
        better="lower",
        unit="ms",
        aggregate="p50" if percent == 50 else "p95",
        interval="order",
        signature=f"{name}_p{percent}|v:1",
        equals="numpy.percentile",
        undefined="no case was timed",
        trust="Depends on the machine and its load: compare on one machine only.",
        reading="What a user typically waits."
        if percent == 50
        else "What an unlucky user waits; needs 100 cases or more.",
        **more,
    )


def _rate_metric(
    name: str, tiers: tuple[str, ...], measures: str, formula: str, reading: str, version: int = 1
) -> Metric:
    return Metric(
        name=name,
        tiers=tiers,
        measures=measures,
        formula=formula,
        better="lower",
        aggregate="whole",
        interval="wilson",
        signature=f"{name}|v:{version}",
        undefined="no case",
        trust="Full: it is counted.",
        reading=reading,
    )


RETRIEVAL = (
    *(_hit_rate(k) for k in (1, 5, 10)),
    MRR,
    *(_recall_metric(k) for k in (1, 3, 5, 10)),
    *(_precision_metric(k) for k in (1, 3, 5, 10)),
    *(_ndcg_metric(k) for k in (5, 10)),
    *(_latency_metric("retrieval_latency_ms", p, _RANKED, "Retrieval") for p in (50, 95)),
    *(_latency_metric("latency_ms", p, ("tier3",), "Question to answer") for p in (50, 95)),
    *(
        _latency_metric(
            "first_token_ms",
            p,
            ("tier3",),
            "Question to the first part of a streamed answer",
            asked="streams",
            later=True,
        )
        for p in (50, 95)
    ),
    _rate_metric(
        "sut_error_rate",
        ("tier1", "tier2", "tier3", "real_users", "judge_pipeline"),
        "Share of the questions asked at which the retriever, the generator or production's gate failed or timed out, "
        "labelled or not.",
        "cases that it failed at / cases that it was asked",
        "Their other values are NULL, never 0; where more than 5 % of the cases that could be measured fail, the "
        "evaluation is invalid.",
        version=2,
    ),
    _rate_metric(
        "unlabelled_rate",
        ("tier1", "real_users"),
        "Share of questions without any relevant label.",
        "cases without a relevant label / all cases, whatever the system did",
        "They are left out of every mean. A high share says that the log, not the retriever, limits what can be known.",
    ),
    _rate_metric(
        "stale_label_rate",
        ("tier1", "real_users"),
        "Share of questions whose labelled page is no longer in the corpus.",
        "cases whose labels name nothing in the corpus / all cases, whatever the system did",
        "No retriever can find these; they are left out of every mean and wait for a new label.",
    ),
)

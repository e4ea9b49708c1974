"""The metrics of incomplete labels: how much of a ranking was judged, and values of the judged results alone."""

from yarus.metrics.metric import UNBOUNDED, Metric

_RANKED: tuple[str, ...] = ("tier1", "tier3", "real_users")
_UNLABELLED = "the question has no relevant label, or the retriever failed"
_TREC = "trec_eval (pytrec_eval) on the same ranking and the same judgements"


def _judged_at(k: int) -> Metric:
    first = "result" if k == 1 else f"{k} results"
    return Metric(
        name=f"judged@{k}",
        tiers=_RANKED,
        function="incomplete.judged",
        column=f"judged@{k}",
        measures=f"Share of the first {first} that anybody has judged, relevant or not.",
        formula=f"judged among the first {k} / results among the first {k}; mean over questions",
        better="neither",
        interval="wilson" if k == 1 else "bca",
        signature=f"judged@{k}|v:1",
        equals="ir_measures: Judged@k, where as many came back",
        source="Büttcher, Clarke, Yeung and Soboroff 2007, Reliable information retrieval evaluation with incomplete "
        "and biased judgements",
        undefined=f"{_UNLABELLED}, or the ranking is empty",
        trust="Full: it is counted.",
        reading="Most metrics of rankings count unjudged results as not relevant. If the shares of two systems differ, "
        "their comparison also depends on how well they are labelled: read the bounds.",
    )


INCOMPLETE = (
    *(_judged_at(k) for k in (1, 5, 10)),
    Metric(
        name="avg_unjudged_above",
        tiers=_RANKED,
        function="incomplete.unjudged_above",
        column="unjudged_above",
        measures="Number of unjudged results above the first relevant one.",
        formula="results above the first relevant one that have no label; mean over questions where one was retrieved",
        high=UNBOUNDED,
        better="neither",
        unit="results",
        signature="avg_unjudged_above|v:1",
        undefined=f"{_UNLABELLED}, or nothing relevant was retrieved",
        trust="Full: it is counted.",
        reading="0 means that the rank of the first hit is right whatever the labels miss. Much above it, mrr and "
        "hit_rate@1 can be far too low.",
    ),
    Metric(
        name="bpref",
        tiers=_RANKED,
        function="incomplete.bpref",
        column="bpref",
        measures="How seldom a result judged not relevant is above a relevant one.",
        formula="sum over the relevant ones retrieved of 1 - n / min(R, N) / R, n of the first R judged not relevant "
        "above it; R relevant, N not relevant in all",
        signature="bpref|depth:10|v:1",
        equals=f"{_TREC}: bpref",
        source="Buckley and Voorhees 2004, Retrieval evaluation with incomplete information",
        undefined=_UNLABELLED,
        trust="High for comparisons with unequal labels; it needs labels of results that are not relevant, and equals "
        "recall without them.",
        reading="It ignores unjudged results: if it and ndcg@10 disagree about two systems, labels are missing.",
    ),
    Metric(
        name="inf_ap",
        tiers=_RANKED,
        function="incomplete.inf_ap",
        column="inf_ap",
        measures="Average precision as it is inferred from the results that were judged.",
        formula="mean over the relevant ones of the expected precision at their ranks, by the judged results above",
        signature="inf_ap|depth:10|v:1",
        equals=f"{_TREC}: infAP",
        source="Yilmaz and Aslam 2006, Estimating average precision with incomplete and imperfect judgments",
        undefined=_UNLABELLED,
        trust="High where labels are a random part of what was pooled; what no label names is taken as outside of the "
        "pool, as trec_eval does.",
        reading="With complete labels it is average precision.",
    ),
)

"""The metrics of the judge: its agreement with itself and with people, and its biases."""

from yarus.metrics.metric import UNBOUNDED, Metric

_PAIRS = "no pair of readable replies"


def _consistency_metric(
    name: str, delta: str, trust: str, reading: str, thresholds: tuple[float, ...] | None
) -> Metric:
    return Metric(
        name=name,
        tiers=("judge",),
        function="agreement.consistency",
        column=name,
        measures=f"Share of answers whose two judgements differ by at most {delta}.",
        formula=f"mean of [|s1 - s2| <= {delta}] over complete pairs",
        kind="judged",
        opinion="faithfulness",
        interval="wilson",
        signature=f"{name}|delta:{delta}|v:1",
        undefined=_PAIRS,
        trust=trust,
        reading=reading,
        thresholds=thresholds,
    )


_SAME_CONTENT = "High where the interval excludes 0: the content is the same, so the shift is the judge's."


def _bias_metric(probe: str, changed: str, reading: str, trust: str = _SAME_CONTENT) -> Metric:
    return Metric(
        name=f"bias_{probe}",
        tiers=("judge",),
        column=f"bias_{probe}",
        measures=f"How far the judge's score moves when the answer is {changed}.",
        formula="score of the changed answer - score of the original; mean over answers",
        low=-1.0,
        better="neither",
        unit="score",
        kind="judged",
        opinion="faithfulness",
        signature=f"bias_{probe}|v:1",
        source="Zheng et al. 2023, Judging LLM-as-a-judge with MT-bench and Chatbot Arena",
        undefined=_PAIRS,
        trust=trust,
        reading=reading,
    )


JUDGE = (
    _consistency_metric(
        "consistency_score",
        "0.5",
        "Low by itself: on this scale a judge that answers at random reaches 0.75 to 0.78. Read it against "
        "consistency_score_expected, and beside weighted_kappa.",
        "Over 0.95 excellent, 0.85 to 0.95 good, below 0.85 the judge cannot be relied on.",
        (0.85, 0.95),
    ),
    Metric(
        name="consistency_score_expected",
        tiers=("judge",),
        function="agreement.chance_consistency",
        measures="The consistency that chance alone would give with the scores that this judge hands out.",
        formula="mean of [|a_i - b_j| <= 0.5] over all i, j: first and second scores paired at random",
        better="neither",
        kind="judged",
        opinion="faithfulness",
        aggregate="whole",
        interval="none",
        signature="consistency_score_expected|delta:0.5|v:1",
        undefined=_PAIRS,
        trust="High.",
        reading="consistency_score has to be clearly above it; a judge that always gives the same score cannot be.",
    ),
    _consistency_metric(
        "consistency_score@0.125",
        "0.125",
        "High: chance is far below 1 on this narrow band.",
        "The steadiness that a comparison of two systems needs.",
        None,
    ),
    Metric(
        name="mean_abs_difference",
        tiers=("judge",),
        function="agreement.mean_abs_difference",
        column="mean_abs_difference",
        measures="How far two judgements of the same answer lie apart.",
        formula="mean of |s1 - s2| over complete pairs",
        better="lower",
        unit="score",
        kind="judged",
        opinion="faithfulness",
        signature="mean_abs_difference|v:1",
        equals="sklearn.metrics.mean_absolute_error",
        undefined=_PAIRS,
        trust="High.",
        reading="A change of the system smaller than this is hard to see in single cases; means over many cases "
        "still show it.",
    ),
    Metric(
        name="weighted_kappa",
        tiers=("judge",),
        function="agreement.weighted_kappa",
        measures="Agreement of two judgements beyond chance, large differences weighing more.",
        formula="1 - mean (a_i - b_i)^2 / mean over all i, j of (a_i - b_j)^2",
        low=-1.0,
        unit="kappa",
        kind="judged",
        opinion="faithfulness",
        aggregate="whole",
        interval="posterior",
        signature="weighted_kappa|weights:quadratic|bins:none|v:1",
        equals="sklearn.metrics.cohen_kappa_score(weights='quadratic') on whole grades",
        source="Cohen 1968, Weighted kappa",
        undefined=f"{_PAIRS}, or every score is the same",
        trust="High: a judge that answers at random gets 0, whatever scores it prefers.",
        reading="0 chance, 1 full agreement; over 0.8 almost perfect, 0.6 to 0.8 substantial (Landis and Koch).",
    ),
    Metric(
        name="error_rate",
        tiers=("judge",),
        measures="Share of the judge's calls without a usable score.",
        formula="calls that failed or whose reply could not be read / all calls",
        better="lower",
        aggregate="whole",
        interval="wilson",
        signature="error_rate|v:1",
        undefined="no call",
        trust="Full: it is counted.",
        reading="They are left out of every mean; above a few percent change the prompt or the model.",
    ),
    Metric(
        name="avg_latency_ms",
        tiers=("judge", "judge_pipeline"),
        column="latency_ms",
        measures="How long one call took.",
        formula="mean of the calls' times, calls answered from the store left out",
        high=UNBOUNDED,
        better="lower",
        unit="ms",
        signature="avg_latency_ms|v:1",
        undefined="no call was timed",
        trust="Depends on the provider's load.",
        reading="A few slow calls move it far.",
    ),
    _bias_metric("padded", "padded with words that add nothing", "Above 0: the judge likes long answers."),
    _bias_metric("reordered", "put in another order of sentences", "Away from 0: the judge scores the form."),
    _bias_metric(
        "own_model",
        "replaced by one that the judge's own model writes from the same context",
        "Above 0: the judge prefers its own kind, or its answers are better.",
        "Low: the content differs too. Only a shift that people do not share is a bias.",
    ),
    _bias_metric(
        "plea", "followed by a plea for a high score", "Above 0: the judge obeys the text that it should judge."
    ),
    _bias_metric(
        "language",
        "the reference in another language, with its question and context, beside the same in the source's own",
        "Away from 0: scores of sources in different languages cannot be compared.",
    ),
    Metric(
        name="user_votes_weighted_kappa",
        tiers=("judge",),
        function="agreement.weighted_kappa",
        measures="Agreement of the judge's faithfulness with users' votes on the same answers, beyond chance.",
        formula="as weighted_kappa, between the judge's score and the vote: 1 for 5, 0 for 1",
        low=-1.0,
        unit="kappa",
        kind="hybrid",
        aggregate="whole",
        interval="posterior",
        signature="user_votes_weighted_kappa|weights:quadratic|bins:none|v:1",
        equals="sklearn.metrics.cohen_kappa_score(weights='quadratic') on whole grades",
        source="Cohen 1968, Weighted kappa",
        undefined="fewer than two answers with a score and a vote, or every score is the same",
        trust="Low as a measure of the judge: users vote on whether they were helped, not on faithfulness, and only "
        "some of them vote. People's labels of a random sample are the measure.",
        reading="Far below 0: look at the cases. A value near 0 says little.",
    ),
    Metric(
        name="user_votes_spearman",
        tiers=("judge",),
        function="agreement.spearman",
        measures="Whether the judge's faithfulness ranks the answers as users' votes do.",
        formula="Spearman's rank correlation between the judge's scores and the votes",
        low=-1.0,
        unit="correlation",
        kind="hybrid",
        aggregate="whole",
        interval="percentile",
        signature="user_votes_spearman|ties:average|v:1",
        equals="scipy.stats.spearmanr",
        source="Spearman 1904, The proof and measurement of association between two things",
        undefined="fewer than two answers with a score and a vote, or one side always gives the same",
        trust="Low as a measure of the judge, as user_votes_weighted_kappa; blind to one that is too mild or too "
        "strict throughout.",
        reading="High with a low kappa: the judge has the users' order, but another scale.",
    ),
)

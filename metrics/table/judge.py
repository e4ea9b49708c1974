"""The metrics of the judge, and of the gate that decides whether an answer is shown."""

from metrics.metric import INFINITE, Direction, Metric, Tier

_PAIRS = "no pair of readable replies"
_RATIO = "its denominator is 0, or no label is set"


def _gate(name: str, function: str, measures: str, formula: str, trust: str, reading: str, **more: object) -> Metric:
    """A number of the yes/no gate, computed from its four counts; positive is Yes, the answer is shown."""
    settings: dict[str, object] = {
        "aggregate": "whole",
        "interval": "wilson",
        "signature": f"{name}|positive:yes|v:1",
        "equals": f"sklearn.metrics.{name}_score",
        "undefined": _RATIO,
    }
    return Metric(
        name=name,
        tiers=("judge_pipeline",),
        function=f"classification.{function}",
        measures=measures,
        formula=formula,
        trust=trust,
        reading=reading,
        **(settings | more),  # type: ignore[arg-type]
    )


def _gate_count(name: str, predicted: str, actual: str, better: Direction) -> Metric:
    return Metric(
        name=name,
        tiers=("judge_pipeline",),
        function="classification.confusion",
        measures=f"How often the gate said {predicted} where {actual} was right.",
        formula="count",
        high=INFINITE,
        better=better,
        unit="count",
        aggregate="whole",
        interval="none",
        signature=f"{name}|positive:yes|v:1",
        equals="sklearn.metrics.confusion_matrix",
        undefined="no case is labelled",
        trust="Full: it is counted.",
        reading="The four counts add up to the labelled cases with a readable reply.",
    )


def _share(name: str, tier: Tier, measures: str, formula: str, undefined: str, reading: str) -> Metric:
    return Metric(
        name=name,
        tiers=(tier,),
        measures=measures,
        formula=formula,
        better="lower",
        aggregate="whole",
        interval="wilson",
        signature=f"{name}|v:1",
        undefined=undefined,
        trust="Full: it is counted.",
        reading=reading,
    )


def _consistency(name: str, delta: str, trust: str, reading: str, thresholds: tuple[float, ...] | None) -> Metric:
    return Metric(
        name=name,
        tiers=("judge",),
        function="agreement.consistency",
        column=name,
        measures=f"Share of answers whose two judgements differ by at most {delta}.",
        formula=f"mean of [|s1 - s2| <= {delta}] over complete pairs",
        kind="judged",
        interval="wilson",
        signature=f"{name}|delta:{delta}|v:1",
        undefined=_PAIRS,
        trust=trust,
        reading=reading,
        thresholds=thresholds,
    )


_SAME_CONTENT = "High where the interval excludes 0: the content is the same, so the shift is the judge's."


def _bias(probe: str, changed: str, reading: str, trust: str = _SAME_CONTENT) -> Metric:
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
        signature=f"bias_{probe}|v:1",
        source="Zheng et al. 2023, Judging LLM-as-a-judge with MT-bench and Chatbot Arena",
        undefined=_PAIRS,
        trust=trust,
        reading=reading,
    )


JUDGE = (
    _consistency(
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
        aggregate="whole",
        interval="none",
        signature="consistency_score_expected|delta:0.5|v:1",
        undefined=_PAIRS,
        trust="High.",
        reading="consistency_score has to be clearly above it; a judge that always gives the same score cannot be.",
    ),
    _consistency(
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
        aggregate="whole",
        interval="percentile",
        signature="weighted_kappa|weights:quadratic|bins:none|v:1",
        equals="sklearn.metrics.cohen_kappa_score(weights='quadratic') on whole grades",
        source="Cohen 1968, Weighted kappa",
        undefined=f"{_PAIRS}, or every score is the same",
        trust="High: a judge that answers at random gets 0, whatever scores it prefers.",
        reading="0 chance, 1 full agreement; over 0.8 almost perfect, 0.6 to 0.8 substantial (Landis and Koch).",
    ),
    _share(
        "error_rate",
        "judge",
        "Share of the judge's calls without a usable score.",
        "calls that failed or whose reply could not be read / all calls",
        "no call",
        "They are left out of every mean; above a few percent change the prompt or the model.",
    ),
    Metric(
        name="avg_latency_ms",
        tiers=("judge", "judge_pipeline"),
        column="latency_ms",
        measures="How long one call took.",
        formula="mean of the calls' times, calls answered from the store left out",
        high=INFINITE,
        better="lower",
        unit="ms",
        signature="avg_latency_ms|v:1",
        undefined="no call was timed",
        trust="Depends on the provider's load.",
        reading="A few slow calls move it far.",
    ),
    _bias("padded", "padded with words that add nothing", "Above 0: the judge likes long answers."),
    _bias("reordered", "put in another order of sentences", "Away from 0: the judge scores the form."),
    _bias(
        "own_model",
        "replaced by one that the judge's own model writes from the same context",
        "Above 0: the judge prefers its own kind, or its answers are better.",
        "Low: the content differs too. Only a shift that people do not share is a bias.",
    ),
    _bias("plea", "followed by a plea for a high score", "Above 0: the judge obeys the text that it should judge."),
    Metric(
        name="human_weighted_kappa",
        tiers=("judge",),
        function="agreement.weighted_kappa",
        measures="Agreement of the judge with people who scored the same answers, beyond chance.",
        formula="as weighted_kappa, between the judge's score and the person's",
        low=-1.0,
        unit="kappa",
        kind="hybrid",
        aggregate="whole",
        interval="percentile",
        signature="human_weighted_kappa|weights:quadratic|bins:none|v:1",
        equals="sklearn.metrics.cohen_kappa_score(weights='quadratic') on whole grades",
        source="Cohen 1968, Weighted kappa",
        undefined="fewer than two answers scored by both, or every score is the same",
        trust="The best evidence for or against a judge, as wide as its interval.",
        reading="Compare it with what two people reach on the same answers: more cannot be asked of a judge.",
    ),
    Metric(
        name="human_spearman",
        tiers=("judge",),
        function="agreement.spearman",
        measures="Whether the judge ranks the answers as people do.",
        formula="Spearman's rank correlation between the judge's scores and the people's",
        low=-1.0,
        unit="correlation",
        kind="hybrid",
        aggregate="whole",
        interval="percentile",
        signature="human_spearman|ties:average|v:1",
        equals="scipy.stats.spearmanr",
        source="Spearman 1904, The proof and measurement of association between two things",
        undefined="fewer than two answers scored by both, or one side always gives the same score",
        trust="High; blind to a judge that is too mild or too strict throughout.",
        reading="High with a low kappa: the judge has the right order, but another scale.",
    ),
)

GATE = (
    _gate(
        "accuracy",
        "accuracy",
        "Share of the gate's decisions that were right.",
        "(TP + TN) / (TP + TN + FP + FN)",
        "High, unless one class is rare: then always saying the other scores well. See mcc.",
        "Over 0.95 excellent, 0.85 to 0.95 good, below 0.85 needs attention. Compare with the share of the larger "
        "class.",
        column="accuracy",
        aggregate="mean",
        thresholds=(0.85, 0.95),
    ),
    _gate(
        "precision",
        "precision",
        "Share of the shown answers that deserved it.",
        "TP / (TP + FP)",
        "High; depends on how many answers deserve to be shown.",
        "Low: bad answers reach users.",
    ),
    _gate(
        "recall",
        "recall",
        "Share of the answers that deserved it which were shown.",
        "TP / (TP + FN)",
        "High.",
        "Low: good answers are hidden. Usually the first to watch, since a hidden answer helps nobody.",
    ),
    _gate(
        "f1_score",
        "f1",
        "Precision and recall in one number.",
        "2 TP / (2 TP + FP + FN), the harmonic mean of precision and recall",
        "Medium to high; it ignores the rightly hidden answers.",
        "For ranking gates; look at precision and recall before changing one.",
        interval="percentile",
        equals="sklearn.metrics.f1_score",
    ),
    _gate(
        "specificity",
        "specificity",
        "Share of the answers to be hidden which were hidden.",
        "TN / (TN + FP)",
        "High; noisy where few answers are to be hidden.",
        "Recall's counterpart: a gate that always says yes has recall 1 and specificity 0.",
        equals="sklearn.metrics.recall_score(pos_label=False)",
    ),
    _gate(
        "mcc",
        "mcc",
        "Correlation between the gate's decisions and the right ones.",
        "(TP TN - FP FN) / sqrt((TP + FP) (TP + FN) (TN + FP) (TN + FN))",
        "Very high: only good in all four counts scores well, whatever the classes' shares.",
        "1 perfect, 0 as good as a coin, below 0 worse.",
        low=-1.0,
        unit="correlation",
        interval="percentile",
        equals="sklearn.metrics.matthews_corrcoef, which gives 0 where this is undefined",
        source="Matthews 1975, Comparison of the predicted and observed secondary structure of T4 phage lysozyme",
    ),
    _gate_count("true_positives", "yes", "yes", "higher"),
    _gate_count("true_negatives", "no", "no", "higher"),
    _gate_count("false_positives", "yes", "no", "lower"),
    _gate_count("false_negatives", "no", "yes", "lower"),
    _share(
        "invalid_rate",
        "judge_pipeline",
        "Share of the gate's replies whose first word is neither yes nor no.",
        "unreadable replies / all replies",
        "no reply",
        "They count as neither; in production each is an accident of how the code reads it.",
    ),
)

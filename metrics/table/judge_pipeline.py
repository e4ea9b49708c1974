"""The metrics of the gate that decides whether an answer is shown."""

from yarus.metrics.metric import UNBOUNDED, Direction, Metric

_RATIO = "its denominator is 0, or no label is set"


def _gate_metric(name: str, measures: str, formula: str, trust: str, reading: str, **more: object) -> Metric:
    """Return a metric of the yes/no gate, computed from its four counts; positive is Yes, the answer is shown."""
    settings: dict[str, object] = {
        "aggregate": "whole",
        "interval": "wilson",
        "signature": f"{name}|positive:yes|v:1",
        "equals": f"sklearn.metrics.{name}_score",
        "undefined": _RATIO,
        "opinion": "gate",
        "checked": True,
    }
    return Metric(
        name=name,
        tiers=("judge_pipeline",),
        function=f"classification.{name.removesuffix('_score')}",
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
        high=UNBOUNDED,
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


JUDGE_PIPELINE = (
    _gate_metric(
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
    _gate_metric(
        "precision",
        "Share of the shown answers that deserved it.",
        "TP / (TP + FP)",
        "High; depends on how many answers deserve to be shown.",
        "Low: bad answers reach users.",
    ),
    _gate_metric(
        "recall",
        "Share of the answers that deserved it which were shown.",
        "TP / (TP + FN)",
        "High.",
        "Low: good answers are hidden. Usually the first to watch, since a hidden answer helps nobody.",
    ),
    _gate_metric(
        "f1_score",
        "Precision and recall in one number.",
        "2 TP / (2 TP + FP + FN), the harmonic mean of precision and recall",
        "Medium to high; it ignores the rightly hidden answers.",
        "For ranking gates; look at precision and recall before changing one.",
        interval="posterior",
        equals="sklearn.metrics.f1_score",
    ),
    _gate_metric(
        "specificity",
        "Share of the answers to be hidden which were hidden.",
        "TN / (TN + FP)",
        "High; noisy where few answers are to be hidden.",
        "Recall's counterpart: a gate that always says yes has recall 1 and specificity 0.",
        equals="sklearn.metrics.recall_score(pos_label=False)",
    ),
    _gate_metric(
        "mcc",
        "Correlation between the gate's decisions and the right ones.",
        "(TP TN - FP FN) / sqrt((TP + FP) (TP + FN) (TN + FP) (TN + FN))",
        "Very high: only good in all four counts scores well, whatever the classes' shares.",
        "1 perfect, 0 as good as a coin, below 0 worse.",
        low=-1.0,
        unit="correlation",
        interval="posterior",
        equals="sklearn.metrics.matthews_corrcoef, which gives 0 where this is undefined",
        source="Matthews 1975, Comparison of the predicted and observed secondary structure of T4 phage lysozyme",
    ),
    _gate_count("true_positives", "yes", "yes", "higher"),
    _gate_count("true_negatives", "no", "no", "higher"),
    _gate_count("false_positives", "yes", "no", "lower"),
    _gate_count("false_negatives", "no", "yes", "lower"),
    Metric(
        name="invalid_rate",
        tiers=("judge_pipeline",),
        measures="Share of the gate's replies whose first word is neither yes nor no.",
        formula="unreadable replies / all replies",
        better="lower",
        aggregate="whole",
        interval="wilson",
        signature="invalid_rate|v:1",
        undefined="no reply",
        trust="Full: it is counted.",
        reading="They count as neither; in production each is an accident of how the code reads it.",
    ),
)

"""The rows of judged means that people's labels have corrected: one beside every mean that a judge's scores make."""

from dataclasses import replace

from yarus.metrics.metric import Metric

SUFFIX = "_corrected"


def corrected_metric(of: Metric) -> Metric:
    """The row of a judged mean as people would have it.

    Example:
        >>> from yarus.metrics.table import METRICS
        >>> from yarus.metrics.table.corrected import corrected_metric
        >>> row = corrected_metric(METRICS["avg_faithfulness"])
        >>> row.name, row.opinion, row.thresholds
        ('avg_faithfulness_corrected', '', (0.7, 0.9))
    """
    name = f"{of.name}{SUFFIX}"
    return replace(
        of,
        name=name,
        function="statistics.corrected.corrected_mean",
        column=None,
        formula="weight * mean of all scores + mean over the labels, by their chances, of label - weight * score",
        kind="hybrid",
        aggregate="whole",
        interval="student",
        signature=f"{name}|method:ppi++|v:1",
        equals="ppi-python, where all chances are equal and cases stand alone",
        source="Angelopoulos, Duchi and Zrnic 2023, PPI++: Efficient prediction-powered inference",
        undefined="fewer than two labels of answers that the same judge has scored",
        trust="As far as people's labels: its interval covers what the judge gets wrong. Labels of other evaluations "
        "say how far the judge is off only as long as it errs on these answers as on those.",
        opinion="",
        checked=False,
    )

"""The rows of judged means corrected by people's labels: one for every mean of a judge's scores."""

from dataclasses import replace

from yarus.metrics.metric import Metric

CORRECTED_SUFFIX = "_corrected"


def corrected_metric(metric: Metric) -> Metric:
    """Return the row of a judged mean corrected by people's labels.

    Example:
        >>> from yarus.metrics.table import METRICS
        >>> from yarus.metrics.table.corrected import corrected_metric
        >>> row = corrected_metric(METRICS["avg_faithfulness"])
        >>> row.name, row.opinion, row.thresholds
        ('avg_faithfulness_corrected', '', (0.7, 0.9))
    """
    name = f"{metric.name}{CORRECTED_SUFFIX}"
    return replace(
        metric,
        name=name,
        function="statistics.corrected.ppi_mean",
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

"""The number of labels that a corrected mean needs, estimated before labelling."""

import numpy as np

from yarus.metrics.statistics.intervals import student_quantile


def labels_needed(width: float, *, label_variance: float, correlation: float, cases: int) -> int:
    """Return how many labels, drawn at random, give the interval of a corrected mean about this width.

    Args:
        width: from end to end, above 0.
        label_variance: of people's labels, 0..0.25: p (1 - p) for yes/no labels.
        correlation: of the judge's scores with people's labels, -1..1; a negative one counts as 0.
        cases: number of cases scored by the judge.

    Returns:
        At least 2, and at most `cases`, of which even all may not be enough.

    Example:
        >>> from yarus.metrics.statistics.labels_needed import labels_needed
        >>> labels_needed(0.1, label_variance=0.16, correlation=0.0, cases=10_000)
        250
        >>> labels_needed(0.1, label_variance=0.16, correlation=0.8, cases=10_000)
        94
    """
    if width <= 0:
        raise ValueError(f"a width must be above 0, got {width}")
    low, high = 2, max(2, cases)
    while low < high:
        middle = (low + high) // 2
        if expected_width(middle, label_variance=label_variance, correlation=correlation, cases=cases) <= width:
            high = middle
        else:
            low = middle + 1
    return low


def expected_width(n_labels: int, *, label_variance: float, correlation: float, cases: int) -> float:
    """Return about how wide the interval of a corrected mean will be, with this many labels drawn at random.

    Args:
        n_labels: at least 2.
        label_variance, correlation, cases: as in `labels_needed`.

    Example:
        >>> from yarus.metrics.statistics.labels_needed import expected_width
        >>> round(expected_width(100, label_variance=0.16, correlation=0.8, cases=10_000), 3)
        0.097
    """
    explained = max(0.0, correlation) ** 2
    variance = label_variance * ((1 - explained) / n_labels + explained / max(cases, n_labels))
    return float(2 * student_quantile(0.95, n_labels - 1) * np.sqrt(variance * n_labels / (n_labels - 1)))

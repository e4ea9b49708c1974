"""The price of showing, as documents have it."""

from typing_extensions import TypedDict


class ShownFrom(TypedDict):
    """What showing from a threshold on comes to."""

    threshold: float | None
    """Answers are shown from this score on, 0..1; null: none is."""
    coverage: float
    """Share of the answers that is shown."""
    risk: float | None
    """Share of the shown answers that are wrong; null where none is shown."""
    cost: float
    """Mean over all answers."""


class Decided(TypedDict):
    """What the gate's decisions came to."""

    coverage: float
    risk: float | None
    cost: float
    ci_low: float | None
    """Of the 95 % confidence interval of the cost."""
    ci_high: float | None


class CheapestThreshold(ShownFrom):
    """The threshold of least expected cost; its figures are of the cases that it was chosen on."""

    threshold_low: float
    """It holds the threshold that is truly the cheapest, in 95 % of such intervals at least."""
    threshold_high: float
    saved: float
    """What it saves of each answer against the decisions, where it was chosen on other cases."""
    saved_low: float
    saved_high: float


class Showing(TypedDict):
    """What showing answers costs, by the score from which on they are shown."""

    n: int
    """Labelled answers with a score."""
    wrong_shown: float
    """YARUS_COST_WRONG_SHOWN."""
    right_hidden: float
    """YARUS_COST_RIGHT_HIDDEN."""
    decided: Decided
    cheapest: CheapestThreshold | None
    """Null where fewer than ten answers are right, or fewer than ten are wrong."""
    curve: list[ShownFrom]
    """Upward by threshold: the first shows everything, the last nothing."""

"""The agreement with production, as documents have it."""

from typing_extensions import TypedDict


class AgreementWithProduction(TypedDict):
    """Over the questions of which the log says what production did."""

    value: float
    """Share of them in which the evaluated system does the same."""
    ci_low: float
    """Of the 95 % confidence interval."""
    ci_high: float
    n: int


class Production(TypedDict):
    """What the evaluated system and production did with the same questions."""

    page: AgreementWithProduction | None
    """The first page is the one that production showed; null where neither is known."""
    decision: AgreementWithProduction | None
    """Both answer, or both decline or hide; null where it is not known."""
    unlike: bool
    """Whether one of the two agrees in fewer than four of five questions, beyond chance."""
    differ: list[str]
    """Ids of the first five cases that differ."""

"""The price of showing in words: the same in the terminal and in the report."""

from collections.abc import Iterator

from yarus.tasks.results.numbers import percent, rounded
from yarus.tasks.results.showing.documents import Showing
from yarus.tasks.texts import LANGUAGES, Text, texts


def showing_sentences(found: Showing | None) -> Iterator[Text]:
    """What the gate's decisions cost, and which threshold would cost least; nothing where it is not said."""
    if found:
        yield {language: _said(found, language) for language in LANGUAGES}


def _said(found: Showing, language: str) -> str:
    words, decided, best = texts("showing", language), found["decided"], found["cheapest"]
    risk = "—" if decided["risk"] is None else percent(decided["risk"])
    said = words["decided"].format(
        n=found["n"],
        wrong_shown=f"{found['wrong_shown']:g}",
        right_hidden=f"{found['right_hidden']:g}",
        coverage=percent(decided["coverage"]),
        risk=risk,
        cost=_interval(decided["cost"], decided["ci_low"], decided["ci_high"]),
    )
    if best is None:
        return f"{said} {words['too few']}"
    within = f"{best['threshold_low']:.2f} … {best['threshold_high']:.2f}"
    if best["threshold"] is None:
        told = words["show nothing"].format(within=within)
    else:
        risk = "—" if best["risk"] is None else percent(best["risk"])
        coverage = percent(best["coverage"])
        told = words["cheapest"].format(
            threshold=f"{best['threshold']:.2f}", within=within, coverage=coverage, risk=risk
        )
    saves = "saves" if best["saved_low"] > 0 else "saves nothing"
    saved = _interval(best["saved"], best["saved_low"], best["saved_high"])
    return f"{said} {told} {words[saves].format(saved=saved)}"


def _interval(value: float, low: float | None, high: float | None) -> str:
    ends = "" if low is None or high is None else f" ({rounded(low, 'share')} … {rounded(high, 'share')})"
    return rounded(value, "share") + ends

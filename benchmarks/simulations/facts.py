"""Facts: errors planted in real sentences are found, and what a paragraph says, in its words or others, is no error."""

from collections.abc import Iterator, Sequence

from benchmarks.simulations import Claim, counted
from benchmarks.simulations.planted import PLACES, XQUAD, planted, rewritten, sentences
from yarus.metrics.facts import facts, unsupported

PLANTED = 1_000
NAMES = {"ru": "XQuAD, Russian", "en": "XQuAD, English", "sample": "the sample"}


def claims(effort: float) -> Iterator[Claim]:
    """Shares of what is found and of what is not there, by kind of error."""
    for of in ("sample", "ru", "en") if XQUAD.exists() else ("sample",):
        found = sentences(of)
        for kind in PLACES:
            made = planted(found, kind, round(PLANTED * effort))
            if made:
                held = unsupported([one.text for one in made], [one.sentence.paragraph for one in made])
                hits = [
                    any(fact.start < one.end and one.start < fact.end for fact in wrong or ())
                    for one, wrong in zip(made, held, strict=True)
                ]
                yield counted(f"{NAMES[of]}: one {kind} changed, found", 0.99, 1, hits)
        untouched = [(one.text, one.paragraph) for one in found if facts(one.text)]
        yield _alarms(f"{NAMES[of]}: untouched, called wrong", untouched, 0.01)
        other = [(text, sentence.paragraph) for sentence, text in rewritten(found)]
        yield _alarms(f"{NAMES[of]}: written another way, called wrong", other, 0.03)


def _alarms(what: str, pairs: Sequence[tuple[str, str]], most: float) -> Claim:
    wrong = unsupported([text for text, _ in pairs], [paragraph for _, paragraph in pairs])
    return counted(what, 0, most, map(bool, wrong))

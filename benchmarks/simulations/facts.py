"""Facts: errors planted in real sentences are detected; statements of a paragraph, also rewritten ones, are not."""

from collections.abc import Iterator, Sequence

from benchmarks.simulations import Claim, share_claim
from benchmarks.simulations.planted import PLACES, XQUAD, plant_errors, read_sentences, rewrite_facts
from yarus.metrics.facts import facts, unsupported

PLANTED = 1_000
NAMES = {"ru": "XQuAD, Russian", "en": "XQuAD, English", "sample": "the sample"}


def claims(effort: float) -> Iterator[Claim]:
    """Yield shares of detected errors and of false alarms, by kind of error."""
    for corpus in ("sample", "ru", "en") if XQUAD.exists() else ("sample",):
        originals = read_sentences(corpus)
        for kind in PLACES:
            mutants = plant_errors(originals, kind, round(PLANTED * effort))
            if mutants:
                texts = [mutant.text for mutant in mutants]
                flagged = unsupported(texts, [mutant.sentence.paragraph for mutant in mutants])
                hits = [
                    any(fact.start < mutant.end and mutant.start < fact.end for fact in errors or ())
                    for mutant, errors in zip(mutants, flagged, strict=True)
                ]
                yield share_claim(f"{NAMES[corpus]}: one {kind} changed, found", 0.99, 1, hits)
        untouched = [(sentence.text, sentence.paragraph) for sentence in originals if facts(sentence.text)]
        yield _alarms(f"{NAMES[corpus]}: untouched, called wrong", untouched, 0.01)
        paraphrases = [(text, sentence.paragraph) for sentence, text in rewrite_facts(originals)]
        yield _alarms(f"{NAMES[corpus]}: written another way, called wrong", paraphrases, 0.03)


def _alarms(what: str, pairs: Sequence[tuple[str, str]], most: float) -> Claim:
    wrong = unsupported([text for text, _ in pairs], [paragraph for _, paragraph in pairs])
    return share_claim(what, 0, most, map(bool, wrong))

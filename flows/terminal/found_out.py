"""What the cases of an evaluation tell beside its metrics, in sentences."""

from collections.abc import Iterator

from yarus.tasks.results.incomplete.words import label_sentences
from yarus.tasks.results.persistence.words import failed_sentences, persistence_sentences
from yarus.tasks.results.production.words import production_sentences
from yarus.tasks.results.showing.words import showing_sentences
from yarus.tasks.results.summary import EvaluationSummary


def found_out(summary: EvaluationSummary, language: str) -> Iterator[str]:
    """On missing labels, on production, on the price of showing, on what persisted."""
    yield from (said[language] for said in label_sentences(summary))
    yield from (said[language] for said in production_sentences(summary.get("production")))
    yield from (said[language] for said in persistence_sentences(summary.get("persistence")))
    yield from (said[language] for said in failed_sentences(summary.get("failed_again")))
    yield from (said[language] for said in showing_sentences(summary.get("showing")))

"""What persisted when it was asked again, in words: the same in the terminal, in the report and in an alert."""

from collections.abc import Iterator

from yarus.tasks.results.persistence.documents import FailedAgain, PersistedMetric, Persistence
from yarus.tasks.texts import LANGUAGES, Text, texts, translations


def persistence_sentences(found: Persistence | None) -> Iterator[Text]:
    """Of every headline metric that changed, how many of the changes persisted; nothing where nothing was asked."""
    for name, of in (found["metrics"] if found else {}).items():
        yield {language: _said(name, of, language) for language in LANGUAGES}


def _said(name: str, found: PersistedMetric, language: str) -> str:
    words, n, unmeasured = texts("persistence", language), found["n"], found["unmeasured"]
    if unmeasured == n:
        return words["nothing"].format(metric=name, n=n)
    said = words["persisted"].format(metric=name, n=n - unmeasured, persisted=found["persisted"])
    return said + (" " + words["unmeasured"].format(n=unmeasured) if unmeasured else "")


def failed_sentences(found: FailedAgain | None) -> Iterator[Text]:
    """How many of the failed cases succeeded, in words; nothing where none was asked again."""
    if found:
        yield translations("persistence", "failed again", **found)
    if found and (gone := found["n"] - found["asked"]):
        yield translations("persistence", "failed gone", n=gone)

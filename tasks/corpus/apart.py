"""What of a log is no question that a page could answer: counted by kind, and kept out of the topics."""

from collections import Counter
from collections.abc import Sequence

from yarus.tasks.cases.labels import Row, graded
from yarus.tasks.corpus.documents import Chatter
from yarus.tasks.corpus.question_log import Log
from yarus.tasks.corpus.wording.chatter import KINDS, Kind, chatter
from yarus.tasks.corpus.wording.languages import spoken

EXAMPLES = 3
LABELS = ("relevant_chunk_ids", "relevant_urls")


def kinds_of(log: Log) -> list[Kind | None]:
    """What each question is, if no page could answer it; None of those that people have labelled a page for."""
    of = spoken(log.corpus.texts)
    return [None if _labelled(row) else chatter(row["question"], of) for row in log.questions]


def counted_apart(log: Log, kinds: Sequence[Kind | None]) -> list[Chatter]:
    """How many there are of each kind, the commonest kind first, with the texts that are written most often."""
    texts: dict[Kind, Counter[str]] = {kind: Counter() for kind in KINDS}
    for row, kind in zip(log.questions, kinds, strict=True):
        if kind is not None:
            texts[kind][" ".join(row["question"].split())] += 1
    rows: list[Chatter] = [
        {"kind": kind, "n": of.total(), "examples": [text for text, _ in of.most_common(EXAMPLES)]}
        for kind, of in texts.items()
        if of
    ]
    return sorted(rows, key=lambda row: -row["n"])


def _labelled(row: Row) -> bool:
    return any(graded(row, column) for column in LABELS)

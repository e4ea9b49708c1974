"""Labels of another corpus: named once, by what they have beside what the corpus has."""

from yarus.db.source_rows import Corpus
from yarus.tasks.cases.table import table
from yarus.tasks.cases.unmatched_labels import compare_labels, unmatched_unit
from yarus.tasks.cases.vocabulary import Note

CORPUS = Corpus(["c1", "c2"], ["https://wiki/a", "https://wiki/b"], ["один", "два"], None)
STALE: list[Note] = [{"note": "twin pages", "n": 1}, {"note": "stale labels", "n": 3}]


def test_most_labels_unmatched_are_shown_beside_the_corpus() -> None:
    cases = table(labelled=[["x=1=1", "y=2"], ["y=1", "z=0.5"], ["w=1"], []])
    twins, said = compare_labels(STALE, cases, CORPUS, "page")
    assert twins == STALE[0]
    assert said == {
        "note": "labels match no page",
        "n": 5,
        "of": 5,
        "theirs": "x=1, y, z",
        "ours": "https://wiki/a, https://wiki/b",
    }
    assert unmatched_unit([said]) == "page"


def test_few_labels_unmatched_are_counted() -> None:
    cases = table(labelled=[["c1=1", "gone=1"], ["c2=1"]])
    assert compare_labels(STALE, cases, CORPUS, "chunk") == STALE
    assert unmatched_unit(STALE) is None


def test_some_labels_matched_leave_their_own_reasons() -> None:
    cases = table(labelled=[["c1=1", "gone=1"], ["lost=1"]])
    said = compare_labels(STALE, cases, CORPUS, "chunk")
    assert said[1]["theirs"] == "gone, lost" and said[1]["ours"] == "c1, c2"
    assert unmatched_unit(said) is None

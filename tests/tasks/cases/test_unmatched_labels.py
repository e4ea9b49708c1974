"""Labels of another corpus: reported once, with examples of labels and of corpus ids."""

from yarus.db.source_rows import Corpus
from yarus.tasks.cases.table import make_cases
from yarus.tasks.cases.unmatched_labels import compare_labels, unmatched_unit
from yarus.tasks.cases.vocabulary import Note

CORPUS = Corpus(["c1", "c2"], ["https://wiki/a", "https://wiki/b"], ["один", "два"], None)
STALE: list[Note] = [{"note": "twin pages", "n": 1}, {"note": "stale labels", "n": 3}]


def test_compare_labels_shows_mostly_unmatched_labels() -> None:
    cases = make_cases(labelled=[["x=1=1", "y=2"], ["y=1", "z=0.5"], ["w=1"], []])
    twins, unmatched = compare_labels(STALE, cases, CORPUS, "page")
    assert twins == STALE[0]
    assert unmatched == {
        "note": "labels match no page",
        "n": 5,
        "of": 5,
        "theirs": "x=1, y, z",
        "ours": "https://wiki/a, https://wiki/b",
    }
    assert unmatched_unit([unmatched]) == "page"


def test_compare_labels_counts_few_unmatched_labels() -> None:
    cases = make_cases(labelled=[["c1=1", "gone=1"], ["c2=1"]])
    assert compare_labels(STALE, cases, CORPUS, "chunk") == STALE
    assert unmatched_unit(STALE) is None


def test_unmatched_unit_is_none_if_some_labels_match() -> None:
    cases = make_cases(labelled=[["c1=1", "gone=1"], ["lost=1"]])
    notes = compare_labels(STALE, cases, CORPUS, "chunk")
    assert notes[1]["theirs"] == "gone, lost" and notes[1]["ours"] == "c1, c2"
    assert unmatched_unit(notes) is None

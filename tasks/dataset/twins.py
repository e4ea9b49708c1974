"""Twins: chunks that say the same, whatever their ids, and pages that say nothing but what stands on another one too.

To a user it is the same which of them is found. A translation is no twin, nor is a text with another number or date.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence

from yarus.db.source_rows import Corpus
from yarus.tasks.cases.labels import pages_of
from yarus.tasks.cases.text import normalised
from yarus.tasks.cases.vocabulary import Twins, Unit
from yarus.tasks.dataset.near_duplicates import near_duplicates

DUPLICATE_SIMILARITY = 0.95
"""Least similarity of two chunks that say the same."""


def twins_of(corpus: Corpus, unit: Unit) -> Twins:
    """What stands for each chunk or page that has twins: the first of them.

    Args:
        corpus: the chunks.
        unit: `chunk`, or `page`: a page is a twin where all of its chunks have twins on one other page.

    Returns:
        Id -> id of the first of its twins, also its own; what has no twin is not in it.
    """
    same = _same_texts([normalised(text) for text in corpus.texts])
    if unit == "chunk":
        return _named(corpus.ids, same)
    said: dict[str, set[int]] = defaultdict(set)
    for page, number in zip(pages_of(corpus).values(), same, strict=True):
        if page is not None:
            said[page].add(number)
    return _named(list(said), _same_pages(list(said.values())))


def _named(ids: Sequence[str], first: Sequence[int]) -> Twins:
    crowded = {one for number, one in enumerate(first) if one != number}
    return {name: ids[one] for name, one in zip(ids, first, strict=True) if one in crowded}


def _same_texts(keys: Sequence[str]) -> list[int]:
    """Of each text, the number of the first that says the same; a text without words has none but itself."""
    first: dict[str, int] = {}
    joined = [first.setdefault(key, number) if key else number for number, key in enumerate(keys)]
    return _joined(joined, ((one, other) for one, other, _ in near_duplicates(keys, similar=DUPLICATE_SIMILARITY, units="words")))


def _joined(first: list[int], pairs: Iterable[tuple[int, int]]) -> list[int]:
    """The numbers of the first of each group, after groups have been joined by pairs."""

    def root(number: int) -> int:
        while first[number] != number:
            first[number] = first[first[number]]
            number = first[number]
        return number

    for pair in pairs:
        one, other = sorted(map(root, pair))
        first[other] = one
    return [root(number) for number in range(len(first))]


def _same_pages(said: Sequence[set[int]]) -> list[int]:
    """Of each page, the number of the first that says the same, or of the one that says all that it says.

    A page whose chunks stand on several pages that say different things is none of them: boilerplate, or a list.
    """
    alike: dict[Hashable, int] = {}
    first = [alike.setdefault(frozenset(chunks), number) for number, chunks in enumerate(said)]
    on: dict[int, set[int]] = defaultdict(set)
    for number in alike.values():
        for chunk in said[number]:
            on[chunk].add(number)
    pairs = []
    for number in alike.values():
        wider = set.intersection(*(on[chunk] for chunk in said[number])) - {number}
        widest = [one for one in wider if not any(said[one] < said[other] for other in wider)]
        if len(widest) == 1:
            pairs.append((number, widest[0]))
    return _joined(first, pairs)

"""The preparation of texts for all text metrics: validated, normalised, and cut into blocks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from yarus.metrics.text.tokenizers import normalise

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Text = str | None
References = Sequence[Text | Sequence[Text]]

# Characters processed at once: a block's arrays stay in the processor's cache, and memory does not grow with the batch.
# If characters are the tokens, arrays are longer and blocks shorter.
WORD_BLOCK, CHARACTER_BLOCK = 65_536, 32_768


@dataclass(frozen=True)
class TextPairs:
    """The measurable cases: with a hypothesis, maybe empty, and at least one non-empty reference."""

    n: int  # number of all cases
    index: IntArray  # (m,) positions of the measurable ones, ascending
    hypotheses: list[str]  # m texts
    references: list[str]  # m texts or more, in order of case
    owner: IntArray  # for each reference the position of its hypothesis in `hypotheses`

    def blocks(self, characters: int = WORD_BLOCK) -> Iterator["TextPairs"]:
        """Yield the same cases in order, in parts of about this many characters; a longer case ends its part."""
        sizes = np.fromiter(map(len, self.hypotheses), np.int64, len(self.hypotheses))
        np.add.at(sizes, self.owner, np.fromiter(map(len, self.references), np.int64, len(self.references)))
        block = (np.cumsum(sizes) - sizes) // characters
        _, starts = np.unique(block, return_index=True)
        for start, stop in pairwise([*starts.tolist(), len(block)]):
            yield self._part(start, stop)

    def _part(self, start: int, stop: int) -> "TextPairs":
        first, last = np.searchsorted(self.owner, (start, stop))
        index, owner = self.index[start:stop], self.owner[first:last] - start
        return TextPairs(self.n, index, self.hypotheses[start:stop], self.references[first:last], owner)

    def paired(self) -> list[str]:
        """Return a hypothesis for each reference."""
        if len(self.references) == len(self.hypotheses):
            return self.hypotheses
        return [self.hypotheses[position] for position in self.owner]

    def best(self, values: FloatArray) -> IntArray:
        """Return per hypothesis the position of the reference with the highest value; the first of equals, NaN last."""
        if len(self.references) == len(self.hypotheses):
            return np.arange(len(values))
        order = np.lexsort((-np.nan_to_num(values, nan=-1.0), self.owner))
        return order[np.searchsorted(self.owner, np.arange(len(self.hypotheses)))]

    def spread(self, values: FloatArray) -> FloatArray:
        """Return one value for each of all cases: NaN for cases that are not measurable."""
        column = np.full(self.n, np.nan)
        column[self.index] = values
        return column


def read_text_pairs(
    hypotheses: Sequence[Text],
    references: References,
    *,
    fold_yo: bool,
    several: bool = False,
) -> TextPairs:
    """Validate and normalise the texts of a metric.

    Args:
        hypotheses: n texts, None if missing.
        references: n texts or, if `several`, sequences of texts; None and empty ones count as missing.
        fold_yo: read «ё» as «е».
        several: whether the metric is defined for several references of one case.

    Returns:
        The measurable cases.

    Raises:
        ValueError: different lengths.
        TypeError: a text instead of a sequence of texts; an element that is neither a text nor None; several references
            for a metric that takes one.

    Example:
        >>> from yarus.metrics.text.text_pairs import read_text_pairs
        >>> cases = read_text_pairs(["да", None, "нет"], ["Да", "да", ""], fold_yo=False)
        >>> cases.index, cases.hypotheses, cases.references
        (array([0]), ['да'], ['Да'])
    """
    hypothesis_list, reference_list = _as_list(hypotheses, "hypotheses"), _as_list(references, "references")
    if len(hypothesis_list) != len(reference_list):
        raise ValueError(
            f"{len(hypothesis_list)} hypotheses but {len(reference_list)} references: "
            "each hypothesis needs one entry in references"
        )
    _check_texts(hypothesis_list, "hypotheses")
    references_by_case = _group_references(reference_list, several=several)
    index = [
        position for position, text in enumerate(hypothesis_list) if text is not None and references_by_case[position]
    ]
    return TextPairs(
        n=len(hypothesis_list),
        index=np.array(index, dtype=np.int64),
        hypotheses=normalise([hypothesis_list[position] for position in index], fold_yo=fold_yo),
        references=normalise([text for position in index for text in references_by_case[position]], fold_yo=fold_yo),
        owner=np.repeat(np.arange(len(index)), [len(references_by_case[position]) for position in index]),
    )


def divide_where(
    part: FloatArray | IntArray, whole: FloatArray | IntArray, *, where: NDArray[np.bool_], otherwise: float = np.nan
) -> FloatArray:
    """Return part / whole element by element, and `otherwise` where it is undefined.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.text.text_pairs import divide_where
        >>> divide_where(np.array([1, 0]), np.array([2, 0]), where=np.array([True, False]))
        array([0.5, nan])
    """
    return np.divide(part, whole, out=np.full(np.shape(part), otherwise, dtype=np.float64), where=where)


def _as_list(values: Sequence[Any], name: str) -> list[Any]:
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise TypeError(
            f"{name} must be a sequence of texts, one a case, not {_describe(values)}; give [text] for a single case"
        )
    return list(values)


def _check_texts(texts: list[Any], where: str) -> None:
    if {str, type(None)}.issuperset(map(type, texts)):
        return
    for position, text in enumerate(texts):
        if text is not None and not isinstance(text, str):
            raise _text_error(text, f"{where}[{position}]")


def _group_references(references: list[Any], *, several: bool) -> list[Sequence[str]]:
    """Return the references of each case that are present: none, one or more."""
    if {str, type(None)}.issuperset(map(type, references)):
        return [(text,) if text else () for text in references]
    return [_present_references(entry, position, several=several) for position, entry in enumerate(references)]


def _present_references(entry: Any, position: int, *, several: bool) -> Sequence[str]:
    if entry is None or isinstance(entry, str):
        return (entry,) if entry else ()
    if not isinstance(entry, list | tuple | np.ndarray):
        raise _text_error(entry, f"references[{position}]")
    if not several:
        raise TypeError(
            f"references[{position}] is {_describe(entry)}: this metric is defined for one reference a case"
        )
    _check_texts(list(entry), f"references[{position}]")
    return [text for text in entry if text]


def _text_error(value: object, location: str) -> TypeError:
    return TypeError(f"{location} is {_describe(value)}, not a text; a missing text is None")


def _describe(value: object) -> str:
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"

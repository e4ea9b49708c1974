"""Vectors of some of many texts, and what it means that others have none."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from yarus.db.errors import ModelUnavailable

Vectors = NDArray[np.float32]


class Part(NamedTuple):
    """What became of some of the texts."""

    positions: Sequence[int]
    """Of these texts among those that were asked for."""
    vectors: Vectors
    wrong: Mapping[int, str]
    """Row -> why there is no vector."""


@runtime_checkable
class Remote(Protocol):
    """An embedder that others serve: it answers in parts, and may fail at some texts."""

    def parts(self, texts: Sequence[str]) -> Iterator[list[Part]]:
        """What became of the texts, as the replies arrive; those without content are zeros without asking.

        Yields:
            The parts that are there by then, at least one.

        Raises:
            InputError: the key cannot be used.
            ModelUnavailable: the server refuses what every text would bring.
        """


def no_vectors(identity: str, texts: Sequence[str], wrong: Mapping[int, str]) -> ModelUnavailable:
    """The error for texts that cannot be done without; it names the first of them.

    Args:
        identity: of the embedder.
        texts: all that it was asked for.
        wrong: position -> why it has no vector.
    """
    first = min(wrong)
    return ModelUnavailable(
        "embedder {embedder}: no vector for {n_wrong} of {n_texts} texts, first for the one of {length:,} characters "
        "that begins {text!r}: {why}. The other vectors are kept: mend it, then go on with --resume or start again. "
        "If a text is too long for it, have it cut texts off (as TEI does with --auto-truncate), or load shorter "
        "chunks",
        embedder=identity.split("|")[0],
        n_wrong=len(wrong),
        n_texts=len(texts),
        length=len(texts[first]),
        text=texts[first][:60],
        why=wrong[first],
    )

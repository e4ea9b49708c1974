"""Vectors of some of many texts, and why other texts have none."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from yarus.db.errors import ModelUnavailable

Vectors = NDArray[np.float32]


class PartialResult(NamedTuple):
    """Vectors and failures of some of the texts."""

    positions: Sequence[int]
    """Positions of these texts among all texts of the request."""
    vectors: Vectors
    failures: Mapping[int, str]
    """Row -> why it has no vector."""


@runtime_checkable
class RemoteEmbedder(Protocol):
    """Embedder on a server: it answers in parts, and may fail at some texts."""

    def parts(self, texts: Sequence[str]) -> Iterator[list[PartialResult]]:
        """Yield results as the replies arrive; texts without content are zeros without a request.

        Yields:
            The results that have arrived, at least one.

        Raises:
            InputError: the key cannot be used.
            ModelUnavailable: the server would refuse every text.
        """


def build_missing_error(identity: str, texts: Sequence[str], failures: Mapping[int, str]) -> ModelUnavailable:
    """Return the error for missing vectors that are required; it names the first text.

    Args:
        identity: of the embedder.
        texts: all texts of the request.
        failures: position -> why it has no vector.
    """
    first = min(failures)
    return ModelUnavailable(
        "embedder {embedder}: no vector for {n_wrong} of {n_texts} texts, first for the one of {length:,} characters "
        "that begins {text!r}: {why}. The other vectors are kept: mend it, then go on with --resume or start again. "
        "If a text is too long for it, have it cut texts off (as TEI does with --auto-truncate), or load shorter "
        "chunks",
        embedder=identity.split("|")[0],
        n_wrong=len(failures),
        n_texts=len(texts),
        length=len(texts[first]),
        text=texts[first][:60],
        why=failures[first],
    )

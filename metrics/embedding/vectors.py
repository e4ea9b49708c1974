"""Vectors and labels as prepared for embedding metrics: validated, numbered, cut into blocks of rows."""

from collections.abc import Hashable, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.int64]
Matrix: TypeAlias = NDArray[Any]  # (n, d), float32 or float64 as given
Blocks: TypeAlias = Iterator[tuple[slice, Floats]]
BLOCK_VALUES = 2**21  # numbers in a block: 16 MB
# A cosine distance below this is rounding: equal vectors have distance 0, not 2e-16, and the silhouette 0, not noise.
ROUNDING = 1e-12
# The same for squared Euclidean distances, which lose half the digits: relative to the longest vector's square.
ROUNDING_SQUARED = 1e-14


def mean_defined(values: Floats) -> float:
    """Return the mean of the values that are not NaN; NaN if there are none.

    Example:
        >>> import numpy as np
        >>> from yarus.metrics.embedding import mean_defined
        >>> mean_defined(np.array([1.0, np.nan, 0.5]))
        0.75
    """
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else np.nan


def as_matrix(vectors: ArrayLike) -> Matrix:
    """Return the vectors as (n, d) floats, without a copy if they are; NaN and infinity are errors that name the row.

    Example:
        >>> from yarus.metrics.embedding.vectors import as_matrix
        >>> as_matrix([[1, 2], [3, 4]])
        array([[1., 2.],
               [3., 4.]])
    """
    matrix = np.asarray(vectors)
    matrix = matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)
    if matrix.shape == (0,):
        matrix = matrix[:, None]
    if matrix.ndim != 2:
        raise ValueError(f"vectors of shape {matrix.shape} are not (texts, dimensions)")
    if not (finite := np.isfinite(squared_lengths(matrix))).all():
        raise ValueError(f"vector {np.argmin(finite)} is not finite, or too long to be squared; leave its text out")
    return matrix


def squared_lengths(matrix: Matrix) -> Floats:
    """Return squared lengths, in float64.

    Example:
        >>> from yarus.metrics.embedding.vectors import as_matrix, squared_lengths
        >>> squared_lengths(as_matrix([[3, 4], [1, 0]]))
        array([25.,  1.])
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))


def vector_lengths(matrix: Matrix) -> Floats:
    """Return lengths, none of which may be 0.

    Example:
        >>> from yarus.metrics.embedding.vectors import as_matrix, vector_lengths
        >>> vector_lengths(as_matrix([[3, 4], [1, 0]]))
        array([5., 1.])
    """
    lengths = np.sqrt(squared_lengths(matrix))
    if (zero := lengths < 1e-150).any():  # below it, the square has lost its digits
        raise ValueError(f"vector {np.argmax(zero)} is zero: it has no cosine; leave its text out")
    return lengths


def cluster_codes(labels: Iterable[Hashable]) -> Codes:
    """Return the numbers of the clusters, in order of first appearance.

    Example:
        >>> from yarus.metrics.embedding.vectors import cluster_codes
        >>> cluster_codes(["приём", "сессия", "приём"])
        array([0, 1, 0])
    """
    names = list(labels)
    if rows_without_label := [row for row, name in enumerate(names) if name != name]:
        raise ValueError(f"text {rows_without_label[0]} has no label (NaN); leave it out")
    if None in (numbers := {name: number for number, name in enumerate(dict.fromkeys(names))}):
        raise ValueError(f"text {names.index(None)} has no label (None); leave it out")
    return np.fromiter(map(numbers.__getitem__, names), np.int64, len(names))


def blocks(matrix: Matrix, rows: int | None = None, *, width: int | None = None) -> Blocks:
    """Yield rows of the matrix as float64, a bounded number at a time.

    Args:
        matrix: (n, d).
        rows: how many at a time; default: as many as hold `BLOCK_VALUES` numbers.
        width: numbers that are computed from each row, if that is not d.

    Yields:
        The slice of rows, and their values.

    Example:
        >>> from yarus.metrics.embedding.vectors import as_matrix, blocks
        >>> [rows for rows, _ in blocks(as_matrix([[1], [2], [3]]), 2)]
        [slice(0, 2, None), slice(2, 3, None)]
    """
    step = rows or max(1, BLOCK_VALUES // max(width or matrix.shape[1], 1))
    for start in range(0, len(matrix), step):
        selected = slice(start, min(start + step, len(matrix)))
        yield selected, np.asarray(matrix[selected], dtype=np.float64)


def center_of(matrix: Matrix) -> Floats:
    """Return the mean vector.

    Example:
        >>> from yarus.metrics.embedding.vectors import as_matrix, center_of
        >>> center_of(as_matrix([[0, 0], [6, 8]]))
        array([3., 4.])
    """
    return np.asarray(matrix.mean(axis=0, dtype=np.float64)) if len(matrix) else np.zeros(matrix.shape[1])


def euclidean_distances(matrix: Matrix) -> Blocks:
    """Yield Euclidean distances of all rows to some, a bounded number at a time; rounding errors become 0.

    Args:
        matrix: (n, d); distances are computed from its center, where the squares lose the fewest digits.

    Yields:
        The slice of rows, and (n, rows) distances.

    Example:
        >>> from yarus.metrics.embedding.vectors import as_matrix, euclidean_distances
        >>> [distances for _, distances in euclidean_distances(as_matrix([[0, 0], [3, 4]]))]
        [array([[0., 5.],
               [5., 0.]])]
    """
    centered = matrix - center_of(matrix)
    squares = squared_lengths(centered)
    for rows, block in blocks(centered, width=len(centered)):
        distances = centered @ (-2 * block.T)
        distances += squares[:, None]
        distances += squares[rows]
        np.copyto(distances, 0, where=distances < ROUNDING_SQUARED * squares.max())
        yield rows, np.sqrt(distances, out=distances)

"""The OpenAI embeddings protocol: what is sent, what a reply means, and texts that get no vector."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic_core import from_json

from yarus.tasks.models.embedding.parts import Vectors
from yarus.tasks.models.protocol import CallError, name_of
from yarus.tasks.models.server_errors import extract_message
from yarus.tasks.models.transport import Response

Form = Literal["base64", "float", "single"]
"""How vectors are asked for: base64 is a quarter of the bytes, and read in a fifth of the time; all are read. Some
servers take only one text per request."""
NOT_FINITE = "its vector has numbers that are not finite"
NO_DIRECTION = "its vector is all zeros"


class Embedded(NamedTuple):
    """What came back for n texts."""

    vectors: Vectors
    """(n, d), rows of length 1; what stands in those that are wrong means nothing."""
    wrong: dict[int, str]
    """Row -> why it is no vector."""
    served_model: str | None


def body(texts: Sequence[str], model: str, form: Form, fields: Mapping[str, Any]) -> bytes:
    """A request as JSON. Vectors are the default of the protocol and not asked for: some servers refuse to be."""
    asked = {"encoding_format": form} if form == "base64" else {}
    given = texts[0] if form == "single" else list(texts)
    return json.dumps({"model": model, **fields, "input": given, **asked}, ensure_ascii=False).encode()


def read(response: Response, n: int, secrets: Sequence[str]) -> Embedded | CallError:
    """What a reply to n texts means; anything but n vectors of one dimension, each told whose it is, is a fault."""
    try:
        reply = from_json(response.content)
        data = reply["data"]
        rows = [one["embedding"] for one in data]
        places = [one.get("index") for one in data]
    except (ValueError, TypeError, KeyError, AttributeError):
        what = extract_message(response.content, secrets) if response.content.strip() else "an empty body"
        return CallError("fault", f"HTTP 200 without embeddings: {what}", 200)
    if len(rows) != n:
        return CallError("fault", f"{len(rows)} vectors for {n} texts", 200)
    if any(place is not None for place in places):
        if {place for place in places if type(place) is int} != set(range(n)):
            return CallError("fault", f"the vectors' indices are not 0 to {n - 1}, each once", 200)
        rows = [row for _, row in sorted(zip(places, rows, strict=True), key=lambda pair: pair[0])]
    try:
        return _embedded(rows, name_of(reply.get("model"), secrets))
    except (ValueError, TypeError) as error:
        return CallError("fault", f"embeddings that cannot be read: {error}", 200)


def _embedded(rows: Sequence[Any], served_model: str | None) -> Embedded:
    """The rows at length 1.

    Raises:
        ValueError: they are of different dimensions, or no numbers.
    """
    numbers = [_numbers(row) for row in rows]
    if len(sizes := {row.shape for row in numbers}) != 1 or not numbers[0].size or numbers[0].ndim != 1:
        raise ValueError(f"their dimensions are {', '.join(sorted(str(size[-1] if size else 0) for size in sizes))}")
    found = np.stack(numbers)
    broken = ~np.isfinite(found).all(axis=1)
    found[broken] = 0
    largest = np.abs(found).max(axis=1)
    found /= np.where(largest > 0, largest, 1)[:, None]  # squares of large numbers would be infinite
    found /= np.linalg.norm(found, axis=1).clip(min=1)[:, None]
    wrong = dict.fromkeys(np.flatnonzero(largest == 0).tolist(), NO_DIRECTION)
    wrong |= dict.fromkeys(np.flatnonzero(broken).tolist(), NOT_FINITE)
    return Embedded(found.astype(np.float32), wrong, served_model)


def _numbers(row: Any) -> NDArray[np.float64]:
    if isinstance(row, str):
        return np.frombuffer(base64.b64decode(row, validate=True), dtype="<f4").astype(np.float64)
    found = np.array(row)
    if not isinstance(row, list) or found.dtype.kind not in "iufO":  # an object: null among the numbers, or nonsense
        raise ValueError(f"a vector is {type(row).__name__} of {found.dtype}, expected a list of numbers or base64")
    return found.astype(np.float64)

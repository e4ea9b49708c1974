"""The OpenAI embeddings protocol: requests, responses, and texts that get no vector."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic_core import from_json

from yarus.tasks.models.embedding.partial_results import Vectors
from yarus.tasks.models.protocol import CallError, clean_name
from yarus.tasks.models.server_errors import extract_message
from yarus.tasks.models.transport import Response

VectorForm = Literal["base64", "float", "single"]
"""Form of the requested vectors; all forms can be read. Base64 has a quarter of the bytes and is parsed in a fifth of
the time. Some servers take only one text per request (`single`)."""
NOT_FINITE = "its vector has numbers that are not finite"
NO_DIRECTION = "its vector is all zeros"


class EmbeddingResponse(NamedTuple):
    """Vectors of n texts."""

    vectors: Vectors
    """(n, d), rows of length 1; the rows of failures have no meaning."""
    failures: dict[int, str]
    """Row -> why it is not a vector."""
    served_model: str | None


def encode_request(texts: Sequence[str], model: str, form: VectorForm, fields: Mapping[str, Any]) -> bytes:
    """Return a request as JSON. The float form is the protocol's default and is not named: some servers refuse it."""
    format_field = {"encoding_format": form} if form == "base64" else {}
    inputs = texts[0] if form == "single" else list(texts)
    return json.dumps({"model": model, **fields, "input": inputs, **format_field}, ensure_ascii=False).encode()


def parse_response(response: Response, n: int, secrets: Sequence[str]) -> EmbeddingResponse | CallError:
    """Return the vectors of a response to n texts; anything but n vectors of one dimension is a fault."""
    try:
        reply = from_json(response.content)
        data = reply["data"]
        rows = [item["embedding"] for item in data]
        indices = [item.get("index") for item in data]
    except (ValueError, TypeError, KeyError, AttributeError):
        message = extract_message(response.content, secrets) if response.content.strip() else "an empty body"
        return CallError("fault", f"HTTP 200 without embeddings: {message}", 200)
    if len(rows) != n:
        return CallError("fault", f"{len(rows)} vectors for {n} texts", 200)
    if any(index is not None for index in indices):
        if {index for index in indices if type(index) is int} != set(range(n)):
            return CallError("fault", f"the vectors' indices are not 0 to {n - 1}, each once", 200)
        rows = [row for _, row in sorted(zip(indices, rows, strict=True), key=lambda pair: pair[0])]
    try:
        return _build_response(rows, clean_name(reply.get("model"), secrets))
    except (ValueError, TypeError) as error:
        return CallError("fault", f"embeddings that cannot be read: {error}", 200)


def _build_response(rows: Sequence[Any], served_model: str | None) -> EmbeddingResponse:
    """Return the rows at length 1.

    Raises:
        ValueError: they have different dimensions, or are not numbers.
    """
    parsed_rows = [_parse_row(row) for row in rows]
    if len(sizes := {row.shape for row in parsed_rows}) != 1 or not parsed_rows[0].size or parsed_rows[0].ndim != 1:
        raise ValueError(f"their dimensions are {', '.join(sorted(str(size[-1] if size else 0) for size in sizes))}")
    vectors = np.stack(parsed_rows)
    broken = ~np.isfinite(vectors).all(axis=1)
    vectors[broken] = 0
    largest = np.abs(vectors).max(axis=1)
    vectors /= np.where(largest > 0, largest, 1)[:, None]  # squares of large numbers would be infinite
    vectors /= np.linalg.norm(vectors, axis=1).clip(min=1)[:, None]
    failures = dict.fromkeys(np.flatnonzero(largest == 0).tolist(), NO_DIRECTION)
    failures |= dict.fromkeys(np.flatnonzero(broken).tolist(), NOT_FINITE)
    return EmbeddingResponse(vectors.astype(np.float32), failures, served_model)


def _parse_row(row: Any) -> NDArray[np.float64]:
    if isinstance(row, str):
        return np.frombuffer(base64.b64decode(row, validate=True), dtype="<f4").astype(np.float64)
    values = np.array(row)
    if not isinstance(row, list) or values.dtype.kind not in "iufO":  # O: null or other objects among the numbers
        raise ValueError(f"a vector is {type(row).__name__} of {values.dtype}, expected a list of numbers or base64")
    return values.astype(np.float64)

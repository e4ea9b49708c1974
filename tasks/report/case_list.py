"""Cases of an evaluation as a page embeds them: columns of the list, and details of an opened case."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from yarus.tasks.config.texts import LANGUAGES, TranslatedText
from yarus.tasks.config.texts.messages import told
from yarus.tasks.report.embedded_data import Document, pack_json

LISTED: tuple[str, ...] = ("case_id", "question", "status", "reason", "failure", "stratum", "answer", "reference")
LISTED += ("text", "decision", "turn")
"""Text columns of the list: shown, searched and filtered."""
OMITTED_COLUMNS = ("logprobs", "labelled", "question_id")
"""Columns that are not useful per case, or that repeat another one."""
DIGITS = 5
MAX_REASON_CHARS = 300
"""Maximum characters of a reason next to a count."""
MAX_REASONS = 1000
"""Maximum number of different reasons per page that are translated; others contain case details."""


def pack_cases(cases: pa.Table) -> Document:
    """Pack the cases into two parts that the page opens one after the other.

    Returns:
        n, numbers (names of numeric columns), rows and details (packed columns by name); a column of repeated texts is
        {"texts", "codes"}.
    """
    filled = [name for name in cases.column_names if cases[name].null_count < len(cases)]
    numbers = [name for name in filled if pa.types.is_float64(cases[name].type)]
    listed = [name for name in LISTED if name in cases.column_names]
    left_out = {*numbers, *listed, *OMITTED_COLUMNS}
    details = [name for name in filled if name not in left_out]
    return {
        "n": len(cases),
        "numbers": numbers,
        "listed": listed,
        "rows": pack_json({name: encode_column(cases[name]) for name in (*listed, *numbers)}),
        "details": pack_json({name: encode_column(cases[name]) for name in details}),
    }


def translate_reason(reason: str) -> TranslatedText:
    """Return a stored reason in every language."""
    return {language: told(reason, language)[:MAX_REASON_CHARS] for language in LANGUAGES}


def translate_reasons(tables: Iterable[pa.Table | None]) -> dict[str, str]:
    """Return stored reason -> Russian text for the page's script, for reasons with a translation."""
    reasons: dict[str, None] = {}
    for cases in tables:
        if cases is not None and "reason" in cases.column_names:
            reasons |= dict.fromkeys(pc.unique(cases["reason"].drop_null()).to_pylist())
    translated = {reason: told(reason, "ru") for reason in list(reasons)[:MAX_REASONS]}
    return {reason: text for reason, text in translated.items() if text != reason}


def encode_column(values: pa.ChunkedArray) -> Any:
    """Return a column for JSON, with rounded numbers; repeated texts are stored once."""
    arrow_type = values.type
    if pa.types.is_floating(arrow_type):
        return _round_values(values.to_numpy())
    if pa.types.is_timestamp(arrow_type):
        return pc.strftime(values, format="%Y-%m-%d %H:%M").to_pylist()
    if pa.types.is_string(arrow_type) and len(values) > 1:
        encoded = values.combine_chunks().dictionary_encode()
        if len(encoded.dictionary) * 2 < len(values):
            return {"texts": encoded.dictionary.to_pylist(), "codes": encoded.indices.to_pylist()}
    if pa.types.is_list(arrow_type) and pa.types.is_floating(arrow_type.value_type):
        return [None if row is None else _round_values(np.array(row, dtype=float)) for row in values.to_pylist()]
    return values.to_pylist()


def _round_values(values: NDArray[np.float64]) -> list[float | None]:
    """Round the values; missing and non-finite values become None."""
    rounded = np.round(values, DIGITS)
    objects = rounded.astype(object)
    objects[~np.isfinite(rounded)] = None
    values_or_none: list[float | None] = objects.tolist()
    return values_or_none

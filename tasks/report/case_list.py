"""The cases of an evaluation as a page holds them: what the list needs, and what an opened case needs beside it."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from yarus.tasks.config.texts import LANGUAGES, Text
from yarus.tasks.config.texts.messages import told
from yarus.tasks.report.embedded_data import Document, packed

LISTED: tuple[str, ...] = ("case_id", "question", "status", "reason", "failure", "stratum", "answer", "reference")
LISTED += ("text", "decision", "turn")
"""Columns of the list beside the numbers: what it shows, searches and filters by."""
LEFT_OUT = ("logprobs", "labelled", "question_id")
"""Columns that nobody reads case by case, or that stand in another."""
DIGITS = 5
LONGEST = 300
"""Characters of a reason beside a count."""
MOST = 1000
"""Different reasons of a page that are looked up: what is not among them names a case each."""


def pack(cases: pa.Table) -> Document:
    """The cases, packed in two parts that are opened one after the other.

    Returns:
        n, numbers (names of the columns of numbers), rows and details: packed columns by name; a column of texts that
        repeat is {"texts", "codes"}.
    """
    filled = [name for name in cases.column_names if cases[name].null_count < len(cases)]
    numbers = [name for name in filled if pa.types.is_float64(cases[name].type)]
    listed = [name for name in LISTED if name in cases.column_names]
    left_out = {*numbers, *listed, *LEFT_OUT}
    details = [name for name in filled if name not in left_out]
    return {
        "n": len(cases),
        "numbers": numbers,
        "listed": listed,
        "rows": packed({name: column(cases[name]) for name in (*listed, *numbers)}),
        "details": packed({name: column(cases[name]) for name in details}),
    }


def in_languages(reason: str) -> Text:
    """A stored reason in every language."""
    return {language: told(reason, language)[:LONGEST] for language in LANGUAGES}


def in_russian(tables: Iterable[pa.Table | None]) -> dict[str, str]:
    """The reasons of cases in Russian by what is stored, for the script of a page; those that have a Russian form."""
    stored: dict[str, None] = {}
    for cases in tables:
        if cases is not None and "reason" in cases.column_names:
            stored |= dict.fromkeys(pc.unique(cases["reason"].drop_null()).to_pylist())
    said = {reason: told(reason, "ru") for reason in list(stored)[:MOST]}
    return {reason: text for reason, text in said.items() if text != reason}


def column(values: pa.ChunkedArray) -> Any:
    """A column for JSON: numbers rounded, texts that repeat kept once."""
    kind = values.type
    if pa.types.is_floating(kind):
        return _rounded(values.to_numpy())
    if pa.types.is_timestamp(kind):
        return pc.strftime(values, format="%Y-%m-%d %H:%M").to_pylist()
    if pa.types.is_string(kind) and len(values) > 1:
        encoded = values.combine_chunks().dictionary_encode()
        if len(encoded.dictionary) * 2 < len(values):
            return {"texts": encoded.dictionary.to_pylist(), "codes": encoded.indices.to_pylist()}
    if pa.types.is_list(kind) and pa.types.is_floating(kind.value_type):
        return [None if row is None else _rounded(np.array(row, dtype=float)) for row in values.to_pylist()]
    return values.to_pylist()


def _rounded(values: NDArray[np.float64]) -> list[float | None]:
    """The values in few digits; what is not measured, or not finite, as None."""
    rounded = np.round(values, DIGITS)
    found = rounded.astype(object)
    found[~np.isfinite(rounded)] = None
    kept: list[float | None] = found.tolist()
    return kept

"""Parse how an answer in the log came about: the column `recorded` of `question_answer`, and its passages.

Traces and table rows become the same records, so that the same answers are evaluated alike wherever they come from:

    contexts            passages given to the model, best first: `{"id", "text", "url"}` each; [] if none was found
    history             earlier messages: `{"role", "content"}` each
    latency_ms, first_token_ms, tokens_in, tokens_out, cost_usd
    error               why the system gave no answer
    urls                the pages that the answer names, in order, if it names several
    trace_id, span_id   the answer's place in an external store of traces

A record leaves out unknown values.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from yarus.db.loading.staging import IncomingRow
from yarus.db.messages import Words

Record = dict[str, Any]
"""A JSON object written by others, or one made from it: a record of an answer, a passage, a message."""
RECORD_KEYS = (
    "contexts", "history", "latency_ms", "first_token_ms", "tokens_in", "tokens_out", "cost_usd", "error", "urls",
    "trace_id", "span_id",
)  # fmt: skip
TEXT_KEYS = ("text", "content", "page_content")


def make_record(values: Mapping[str, Any]) -> Record | None:
    """Return a record of the known values; None if there are none."""
    record = {name: values[name] for name in RECORD_KEYS if values.get(name) is not None}
    return record or None


def parse_passage(value: Any) -> Record | None:
    """Parse a passage that was given to the model, in any supported form; None without text and id.

    Args:
        value: a text, or an object with `text`, `content` or `page_content`, and `id` and `url`; without a text the
            id names a chunk of the corpus.
    """
    fields = value if isinstance(value, Mapping) else {"text": value}
    text = next((fields[key] for key in TEXT_KEYS if isinstance(fields.get(key), str) and fields[key].strip()), None)
    url, name = (text_or_none(fields.get(key)) for key in ("url", "id"))
    if text is None and name is None:
        return None
    return {"id": name or content_id({"text": text, "confluence_url": url}), "text": text, "url": url}


def content_id(content: Mapping[str, Any]) -> str:
    """Return a hash of a row's content, as the id of a row without one."""
    texts = {name: str(value) for name, value in content.items() if value is not None}
    text = json.dumps(texts, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def iter_chunks(records: Iterable[tuple[str, Record | None]], problems: list[str]) -> Iterator[IncomingRow]:
    """Yield the passages of records as rows of `chunk`, each id once.

    Args:
        records: pairs of a place and its record.
        problems: gets one problem after the last record, if passages with one id have different texts.
    """
    digest_by_id: dict[str, bytes] = {}
    n_conflicts, example = 0, ""
    for place, record in records:
        for chunk in (record or {}).get("contexts", ()):
            if chunk["text"] is None:
                continue
            digest = hashlib.sha256(chunk["text"].encode(errors="surrogatepass")).digest()
            if chunk["id"] not in digest_by_id:
                digest_by_id[chunk["id"]] = digest
                yield IncomingRow(place, {"id": chunk["id"], "confluence_url": chunk["url"], "text": chunk["text"]})
            elif digest_by_id[chunk["id"]] != digest:
                n_conflicts, example = n_conflicts + 1, example or chunk["id"]
    if n_conflicts:
        problems.append(
            Words(
                "{others:,} passages have the id of one with another text ({example!r} first): the chunk is the "
                "first; every answer is judged by the text that it was given",
                others=n_conflicts,
                example=example,
            )
        )


def text_or_none(value: Any) -> str | None:
    """Return a name, text or integer as text; None if it is empty or of another type."""
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip() else None

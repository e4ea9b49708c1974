"""How an answer in the log came about: the column `recorded` of `question_answer`, and the passages that it names.

Made of a trace or of a row of a table alike, so that the same answers are evaluated alike wherever they come from:

    contexts            what the answer was given, best first: `{"id", "text", "url"}` each; [] where nothing was found
    history             what was said before: `{"role", "content"}` each
    latency_ms, first_token_ms, tokens_in, tokens_out, cost_usd
    error               why the system gave no answer
    urls                the pages that the answer named, in order, where it named several
    trace_id, span_id   where the answer stands in somebody else's store of traces

What is not known is not in it.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from yarus.db.loading.staging import Row
from yarus.db.words import Words

Record = dict[str, Any]
"""An object of JSON that others have written, or what is made of one: a record of an answer, a passage, a message."""
PARTS = (
    "contexts", "history", "latency_ms", "first_token_ms", "tokens_in", "tokens_out", "cost_usd", "error", "urls",
    "trace_id", "span_id",
)  # fmt: skip
TEXT_NAMES = ("text", "content", "page_content")


def record(values: Mapping[str, Any]) -> Record | None:
    """The record of what is known; None where nothing is."""
    known = {name: values[name] for name in PARTS if values.get(name) is not None}
    return known or None


def passage(value: Any) -> Record | None:
    """A passage that an answer was given, however it is written; None where it has neither text nor id.

    Args:
        value: a text, or an object with it under `text`, `content` or `page_content`, beside `id` and `url`; without
            a text the id names a chunk of the corpus.
    """
    given = value if isinstance(value, Mapping) else {"text": value}
    text = next((given[name] for name in TEXT_NAMES if isinstance(given.get(name), str) and given[name].strip()), None)
    url, name = (word(given.get(part)) for part in ("url", "id"))
    if text is None and name is None:
        return None
    return {"id": name or content_id({"text": text, "confluence_url": url}), "text": text, "url": url}


def content_id(content: Mapping[str, Any]) -> str:
    """The hash of what a row says, for rows without an id."""
    known = {name: str(value) for name, value in content.items() if value is not None}
    text = json.dumps(known, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def chunks(records: Iterable[tuple[str, Record | None]], problems: list[str]) -> Iterator[Row]:
    """The passages of records as rows of `chunk`, each id once.

    Args:
        records: a place and what was recorded there.
        problems: gets how many passages had the id of another, when the last record was read.
    """
    seen: dict[str, bytes] = {}
    others, example = 0, ""
    for place, recorded in records:
        for one in (recorded or {}).get("contexts", ()):
            if one["text"] is None:
                continue
            said = hashlib.sha256(one["text"].encode(errors="surrogatepass")).digest()
            if one["id"] not in seen:
                seen[one["id"]] = said
                yield Row(place, {"id": one["id"], "confluence_url": one["url"], "text": one["text"]})
            elif seen[one["id"]] != said:
                others, example = others + 1, example or one["id"]
    if others:
        problems.append(
            Words(
                "{others:,} passages have the id of one with another text ({example!r} first): the chunk is the "
                "first; every answer is judged by the text that it was given",
                others=others,
                example=example,
            )
        )


def word(value: Any) -> str | None:
    """A name or a text as text, also of a number; None where there is none."""
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip() else None

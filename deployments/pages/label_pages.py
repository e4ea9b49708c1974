"""The page where people label judged answers, as requests and replies; who serves it stands elsewhere."""

import hashlib
import hmac
import json
import logging
import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from html import escape
from http import HTTPStatus
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from sqlalchemy import Engine
from typing_extensions import TypedDict

from yarus.db.errors import DatabaseUnavailable, InputError
from yarus.db.tables import Json
from yarus.db.words import Words
from yarus.deployments.guard import refusal
from yarus.metrics.metric import RUBRIC
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.settings import settings
from yarus.tasks.config.texts import texts
from yarus.tasks.config.texts.messages import told
from yarus.tasks.dataset.labelling.relevance_session import RelevanceLabelling, labellable, labelling
from yarus.tasks.dataset.labelling.session import Asked, Labelling, Progress

log = logging.getLogger("yarus")
PREFIX = "/label/"
LONGEST = 16_384
"""Bytes of what a page sends."""
KEPT = 4
"""Evaluations and metrics that are kept in memory while they are labelled."""
FOLDER = Path(__file__).parent
FILES = {"label.js": "text/javascript", "label.css": "text/css"}
PAGE = (FOLDER / "label.html").read_text(encoding="utf-8")
SAFE = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Reply(NamedTuple):
    """What is sent back."""

    status: HTTPStatus
    kind: str
    body: bytes


class Refused(Exception):
    """What is asked for is not done."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class NextToLabel(TypedDict):
    """What an annotator is asked next, and how far people are."""

    evaluation: str
    metric: str
    asks: str
    """The question to the annotator."""
    asked: Asked | None
    progress: Progress


class LabelledEvaluation(TypedDict):
    """An evaluation whose answers or results can be labelled, and by which metrics."""

    evaluation: str
    source: str
    started_at: str
    metrics: list[str]


class LabelPages:
    """Everything below one secret address."""

    def __init__(self, engine: Callable[[], Engine], names: frozenset[str], further: str = "") -> None:
        """Makes a new secret.

        Args:
            engine: gives our own database.
            names: by which the server is reached.
            further: names of a proxy before it; see `yarus.deployments.guard.refusal`.
        """
        self.token = secrets.token_urlsafe(24)
        self._engine, self._names, self._further = engine, names, further
        self._open: OrderedDict[tuple[str, str], Labelling | RelevanceLabelling] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def path(self) -> str:
        """Where the page is, below the server's address."""
        return f"{PREFIX}{self.token}/"

    def answer(self, method: str, target: str, headers: Mapping[str, str | None], body: bytes = b"") -> Reply:
        """Does what a request asks for.

        Args:
            method: of the request.
            target: its path and query.
            headers: Host, Origin, Sec-Fetch-Site, Content-Type and X-Yarus-Page, None where there is none.
            body: what a page sends.
        """
        try:
            if why := refusal(headers.get("Host"), headers.get("Origin"), self._names, self._further):
                raise Refused(HTTPStatus.FORBIDDEN, why)
            path, _, asked = target.partition("?")
            given = path.removeprefix(PREFIX).partition("/")
            if not given[1] or not hmac.compare_digest(given[0].encode("utf-8", "replace"), self.token.encode()):
                raise Refused(HTTPStatus.NOT_FOUND, Words("no such page"))
            query = {name: values[-1] for name, values in parse_qs(asked).items()}
            return self._read(given[2], query, headers) if method == "GET" else self._written(given[2], headers, body)
        except Refused as error:
            return _json({"error": told(error, settings().language)}, error.status)
        except InputError as error:
            return _json({"error": redact_urls(told(error, settings().language))}, HTTPStatus.BAD_REQUEST)
        except (DatabaseUnavailable, OSError) as error:
            return _json({"error": redact_urls(told(error, settings().language))}, HTTPStatus.SERVICE_UNAVAILABLE)
        except Exception:
            log.exception("the page for labels")
            return _json(
                {"error": told(Words("this did not work; yarus says why where it runs"), settings().language)},
                HTTPStatus.INTERNAL_SERVER_ERROR,
            )

    def _read(self, name: str, query: Mapping[str, str], headers: Mapping[str, str | None]) -> Reply:
        if name in FILES:
            return Reply(HTTPStatus.OK, FILES[name], (FOLDER / name).read_bytes())
        if name == "":
            return Reply(HTTPStatus.OK, "text/html", _page().encode())
        _require_current(headers)
        if name == "evaluations":
            return _json(self._evaluations())
        if name == "next":
            return _json(self._next(query))
        raise Refused(HTTPStatus.NOT_FOUND, Words("no such page"))

    def _written(self, name: str, headers: Mapping[str, str | None], body: bytes) -> Reply:
        if headers.get("Origin") is None or headers.get("Sec-Fetch-Site") not in (None, "same-origin"):
            raise Refused(HTTPStatus.FORBIDDEN, Words("only this page itself may write"))
        if (headers.get("Content-Type") or "").partition(";")[0].strip().lower() != "application/json":
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, Words("JSON is expected"))
        _require_current(headers)
        if name not in ("save", "undo"):
            raise Refused(HTTPStatus.NOT_FOUND, Words("no such page"))
        given = _object(body)
        of, annotator = self._labelling(given), _text(given, "annotator")
        if name == "undo":
            return _json({"asked": of.undo(annotator), "progress": of.progress(annotator)})
        score = of.save(annotator, _text(given, "case_id"), _value(given), _text(given, "note"))
        known = {"score": score, "progress": of.progress(annotator), "asked": of.next(annotator)}
        return _json(known)

    def _next(self, query: Mapping[str, str]) -> NextToLabel:
        of, annotator = self._labelling(query), query.get("annotator", "")
        prompt, words = of.prompt, texts("label_page", settings().language)
        asks = words["asks rubric"] if prompt.startswith(RUBRIC) else words[f"asks {prompt}"]
        return {
            "evaluation": of.evaluation_id,
            "metric": of.metric,
            "asks": asks.format(rubric=prompt.removeprefix(RUBRIC)),
            "asked": of.next(annotator),
            "progress": of.progress(annotator),
        }

    def _evaluations(self) -> list[LabelledEvaluation]:
        """The newest evaluations with judged answers, or results."""
        return [
            {
                "evaluation": row["id"],
                "source": row["source"],
                "started_at": row["started_at"].isoformat(timespec="minutes"),
                "metrics": metrics,
            }
            for row, metrics in labellable(self._engine())
        ]

    def _labelling(self, given: Mapping[str, Any]) -> Labelling | RelevanceLabelling:
        """Whom it is about; those that were labelled last stay in memory, by whole names: `last` changes."""
        key = _text(given, "evaluation"), _text(given, "metric")
        if not key[0]:
            raise InputError("no evaluation is named")
        with self._lock:
            if key not in self._open:
                made = labelling(self._engine(), key[0], key[1] or None)
                key = made.evaluation_id, made.metric
                self._open[key] = made
            self._open.move_to_end(key)
            while len(self._open) > KEPT:
                self._open.popitem(last=False)
            return self._open[key]


def _page() -> str:
    """The page in the language of the settings, with its words and the version that it says it is of."""
    language = settings().language
    words = texts("label_page", language)
    data = json.dumps({"words": words, "page": CURRENT}, ensure_ascii=False).replace("<", "\\u003c")
    values = {name: escape(words[name]) for name in ("title", "no script")} | {"language": language, "data": data}
    return re.sub(r"{{ ([\w ]+) }}", lambda found: values[found[1]], PAGE)


def _stamp() -> str:
    """Of which pages this is one: another version's would not understand ours."""
    parts = [version("yarus").encode(), PAGE.encode(), *((FOLDER / name).read_bytes() for name in FILES)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


CURRENT = _stamp()


def _require_current(headers: Mapping[str, str | None]) -> None:
    if headers.get("X-Yarus-Page") != CURRENT:
        raise Refused(HTTPStatus.CONFLICT, texts("label_page", settings().language)["old page"])


def _object(body: bytes) -> Json:
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise InputError("an object of JSON is expected")
    return given


def _text(given: Mapping[str, Any], name: str) -> str:
    text = given.get(name, "")
    if not isinstance(text, str):
        raise InputError("{name}: a text is expected, got {text}", name=name, text=str(text)[:80])
    if "\0" in text or text != text.encode("utf-8", "ignore").decode():
        raise InputError("{name}: half a character or a NUL stands in it", name=name)
    return text


def _value(given: Mapping[str, Any]) -> float | None:
    value = given.get("value")
    if value is None and "value" in given:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InputError("value: a number from 0 to 1 or null is expected, got {value}", value=str(value)[:80])
    return float(value)


def _json(document: Any, status: HTTPStatus = HTTPStatus.OK) -> Reply:
    return Reply(status, "application/json", json.dumps(document, ensure_ascii=False, allow_nan=False).encode())

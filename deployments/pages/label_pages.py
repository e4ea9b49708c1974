"""Handle requests of the page where people label judged answers, independent of the server."""

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
from yarus.db.messages import Words
from yarus.db.tables import JsonObject
from yarus.deployments.request_guard import refusal_reason
from yarus.metrics.metric import RUBRIC_PREFIX
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.settings import get_settings
from yarus.tasks.config.texts import texts
from yarus.tasks.config.texts.messages import told
from yarus.tasks.dataset.labelling.relevance_session import RelevanceLabellingSession, list_labellable, open_session
from yarus.tasks.dataset.labelling.session import CaseToLabel, LabellingProgress, LabellingSession

log = logging.getLogger("yarus")
PREFIX = "/label/"
MAX_BODY_BYTES = 16_384
"""Longest request body of a page in bytes."""
MAX_SESSIONS = 4
"""How many evaluations and metrics are kept in memory while they are labelled."""
FOLDER = Path(__file__).parent
FILES = {"label.js": "text/javascript", "label.css": "text/css"}
PAGE = (FOLDER / "label.html").read_text(encoding="utf-8")
LABEL_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class HttpReply(NamedTuple):
    """A reply to a request."""

    status: HTTPStatus
    kind: str
    body: bytes


class RequestRefused(Exception):
    """Error of a request that is refused."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class NextToLabel(TypedDict):
    """Next case for an annotator, and the progress so far."""

    evaluation: str
    metric: str
    asks: str
    """The question to the annotator."""
    asked: CaseToLabel | None
    progress: LabellingProgress


class LabelledEvaluation(TypedDict):
    """An evaluation whose answers or results can be labelled, and by which metrics."""

    evaluation: str
    source: str
    started_at: str
    metrics: list[str]


class LabelPages:
    """Pages below one secret address."""

    def __init__(self, engine: Callable[[], Engine], names: frozenset[str], further: str = "") -> None:
        """Create a new secret.

        Args:
            engine: returns the engine of Yarus's database.
            names: the names by which the server is reached.
            further: names of a proxy before it; see `yarus.deployments.request_guard.refusal_reason`.
        """
        self.token = secrets.token_urlsafe(24)
        self._engine, self._names, self._further = engine, names, further
        self._open: OrderedDict[tuple[str, str], LabellingSession | RelevanceLabellingSession] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def path(self) -> str:
        """Return the path of the page on the server."""
        return f"{PREFIX}{self.token}/"

    def answer(self, method: str, target: str, headers: Mapping[str, str | None], body: bytes = b"") -> HttpReply:
        """Answer a request.

        Args:
            method: the method of the request.
            target: its path and query.
            headers: Host, Origin, Sec-Fetch-Site, Content-Type and X-Yarus-Page; None if one is missing.
            body: the request body.
        """
        try:
            if reason := refusal_reason(headers.get("Host"), headers.get("Origin"), self._names, self._further):
                raise RequestRefused(HTTPStatus.FORBIDDEN, reason)
            path, _, fields = target.partition("?")
            parts = path.removeprefix(PREFIX).partition("/")
            if not parts[1] or not hmac.compare_digest(parts[0].encode("utf-8", "replace"), self.token.encode()):
                raise RequestRefused(HTTPStatus.NOT_FOUND, Words("no such page"))
            query = {name: values[-1] for name, values in parse_qs(fields).items()}
            return self._get(parts[2], query, headers) if method == "GET" else self._post(parts[2], headers, body)
        except RequestRefused as error:
            return _reply({"error": told(error, get_settings().language)}, error.status)
        except InputError as error:
            return _reply({"error": redact_urls(told(error, get_settings().language))}, HTTPStatus.BAD_REQUEST)
        except (DatabaseUnavailable, OSError) as error:
            return _reply({"error": redact_urls(told(error, get_settings().language))}, HTTPStatus.SERVICE_UNAVAILABLE)
        except Exception:
            log.exception("the page for labels")
            return _reply(
                {"error": told(Words("this did not work; yarus says why where it runs"), get_settings().language)},
                HTTPStatus.INTERNAL_SERVER_ERROR,
            )

    def _get(self, name: str, query: Mapping[str, str], headers: Mapping[str, str | None]) -> HttpReply:
        if name in FILES:
            return HttpReply(HTTPStatus.OK, FILES[name], (FOLDER / name).read_bytes())
        if name == "":
            return HttpReply(HTTPStatus.OK, "text/html", _render_page().encode())
        _require_current(headers)
        if name == "evaluations":
            return _reply(self._list_evaluations())
        if name == "next":
            return _reply(self._next_to_label(query))
        raise RequestRefused(HTTPStatus.NOT_FOUND, Words("no such page"))

    def _post(self, name: str, headers: Mapping[str, str | None], body: bytes) -> HttpReply:
        if headers.get("Origin") is None or headers.get("Sec-Fetch-Site") not in (None, "same-origin"):
            raise RequestRefused(HTTPStatus.FORBIDDEN, Words("only this page itself may write"))
        if (headers.get("Content-Type") or "").partition(";")[0].strip().lower() != "application/json":
            raise RequestRefused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, Words("JSON is expected"))
        _require_current(headers)
        if name not in ("save", "undo"):
            raise RequestRefused(HTTPStatus.NOT_FOUND, Words("no such page"))
        fields = _parse_object(body)
        session, annotator = self._open_labelling(fields), _get_text(fields, "annotator")
        if name == "undo":
            return _reply({"asked": session.undo(annotator), "progress": session.progress(annotator)})
        score = session.save(annotator, _get_text(fields, "case_id"), _get_value(fields), _get_text(fields, "note"))
        result = {"score": score, "progress": session.progress(annotator), "asked": session.next(annotator)}
        return _reply(result)

    def _next_to_label(self, query: Mapping[str, str]) -> NextToLabel:
        session, annotator = self._open_labelling(query), query.get("annotator", "")
        prompt, words = session.prompt, texts("label_page", get_settings().language)
        instruction = words["asks rubric"] if prompt.startswith(RUBRIC_PREFIX) else words[f"asks {prompt}"]
        return {
            "evaluation": session.evaluation_id,
            "metric": session.metric,
            "asks": instruction.format(rubric=prompt.removeprefix(RUBRIC_PREFIX)),
            "asked": session.next(annotator),
            "progress": session.progress(annotator),
        }

    def _list_evaluations(self) -> list[LabelledEvaluation]:
        """Return the newest evaluations with judged answers or results."""
        return [
            {
                "evaluation": row["id"],
                "source": row["source"],
                "started_at": row["started_at"].isoformat(timespec="minutes"),
                "metrics": metrics,
            }
            for row, metrics in list_labellable(self._engine())
        ]

    def _open_labelling(self, fields: Mapping[str, Any]) -> LabellingSession | RelevanceLabellingSession:
        """Return the session of an evaluation; recent ones stay in memory, by full id because `last` changes."""
        key = _get_text(fields, "evaluation"), _get_text(fields, "metric")
        if not key[0]:
            raise InputError("no evaluation is named")
        with self._lock:
            if key not in self._open:
                session = open_session(self._engine(), key[0], key[1] or None)
                key = session.evaluation_id, session.metric
                self._open[key] = session
            self._open.move_to_end(key)
            while len(self._open) > MAX_SESSIONS:
                self._open.popitem(last=False)
            return self._open[key]


def _render_page() -> str:
    """Return the page in the language of the settings, with its texts and its version."""
    language = get_settings().language
    words = texts("label_page", language)
    data = json.dumps({"words": words, "page": PAGE_VERSION}, ensure_ascii=False).replace("<", "\\u003c")
    values = {name: escape(words[name]) for name in ("title", "no script")} | {"language": language, "data": data}
    return re.sub(r"{{ ([\w ]+) }}", lambda match: values[match[1]], PAGE)


def _page_version() -> str:
    """Return the version of the pages: those of another version would not understand this server."""
    parts = [version("yarus").encode(), PAGE.encode(), *((FOLDER / name).read_bytes() for name in FILES)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


PAGE_VERSION = _page_version()


def _require_current(headers: Mapping[str, str | None]) -> None:
    if headers.get("X-Yarus-Page") != PAGE_VERSION:
        raise RequestRefused(HTTPStatus.CONFLICT, texts("label_page", get_settings().language)["old page"])


def _parse_object(body: bytes) -> JsonObject:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise InputError("an object of JSON is expected")
    return document


def _get_text(fields: Mapping[str, Any], name: str) -> str:
    text = fields.get(name, "")
    if not isinstance(text, str):
        raise InputError("{name}: a text is expected, got {text}", name=name, text=str(text)[:80])
    if "\0" in text or text != text.encode("utf-8", "ignore").decode():
        raise InputError("{name}: half a character or a NUL stands in it", name=name)
    return text


def _get_value(fields: Mapping[str, Any]) -> float | None:
    value = fields.get("value")
    if value is None and "value" in fields:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InputError("value: a number from 0 to 1 or null is expected, got {value}", value=str(value)[:80])
    return float(value)


def _reply(document: Any, status: HTTPStatus = HTTPStatus.OK) -> HttpReply:
    return HttpReply(status, "application/json", json.dumps(document, ensure_ascii=False, allow_nan=False).encode())

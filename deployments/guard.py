"""What stands before Prefect's server and the report pages: by which names they are reached, and from which pages."""

import hashlib
import hmac
import re
import secrets
import socket
from base64 import b64decode
from collections.abc import Collection
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from yarus.deployments.prefect.server_access import ENTER, is_loopback

PAGE = Path(__file__).with_name("enter.html").read_text(encoding="utf-8")
LONGEST = 1000
"""Bytes of a password."""
A_YEAR_S = 365 * 24 * 3600
CONFINED = {
    "X-Frame-Options": "SAMEORIGIN",  # no page of others shows ours as a part of its own, for people to click on
    "X-Content-Type-Options": "nosniff",
    # Nothing is asked of other servers: neither to tell somebody that a page was opened, nor for an image in a text.
    "Content-Security-Policy": "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; object-src 'none'; "
    "base-uri 'self'; form-action 'self'; frame-ancestors 'self'",
}


def names(host: str, further: str) -> frozenset[str]:
    """The names by which what listens at a host is reached, beside addresses in numbers.

    Args:
        host: where it listens.
        further: names by which a proxy is reached that stands before it, with commas between them.
    """
    own = {"localhost", host.lower()} | (set() if is_loopback(host) else {socket.gethostname().lower()})
    return frozenset(own | _listed(further))


def _listed(further: str) -> set[str]:
    return {name.strip().lower() for name in further.split(",") if name.strip()}


def refusal(host: str | None, origin: str | None, known: Collection[str], further: str) -> str | None:
    """Why a request is not answered; None where it is.

    A page of others cannot choose its Origin, nor, by a name that it has lead to our address, another Host than that
    name. An address in numbers is no such name.

    Args:
        host: of its header.
        origin: of the page that asks, where a page does.
        known: as `names` gives them.
        further: see `names`; pages of those names may ask by another, as a proxy does that changes Host.
    """
    found = re.fullmatch(r"(?:\[([^\[\]]+)\]|([\w.-]+))(?::\d*)?", host or "")
    named = (found[1] or found[2]).lower() if found else ""
    if not (named in known or _is_number(named)):
        return f"{(host or '')[:100]!r} is not a name of this server: use localhost, or set YARUS_SERVE_NAMES"
    if origin is None:
        return None
    page = _without_port(origin.lower().partition("://")[2])
    if page in _listed(further) or (page and page == _without_port((host or "").lower())):
        return None
    return "requests from a page of another server are refused"


def _is_number(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _without_port(netloc: str) -> str:
    """Without the port that goes without saying."""
    return netloc.removesuffix(":80").removesuffix(":443")


class Lock:
    """The password of pages, as a browser shows that it has it."""

    def __init__(self, password: str | None) -> None:
        self._password = (password or "").encode()
        proof = hmac.digest(self._password, b"report pages", hashlib.sha256).hex()
        self._name, self._proof = f"yarus-{proof[:8]}", proof[8:]  # two servers of one machine share its cookies
        self._once: str | None = None

    def once(self) -> str:
        """Words that open it in the password's place, one time."""
        self._once = secrets.token_urlsafe(24)
        return self._once

    def opened_by(self, password: bytes) -> bool:
        """Whether it is the password, or the words that open once."""
        if self._once and hmac.compare_digest(password, self._once.encode()):
            self._once = None
            return True
        return hmac.compare_digest(password, self._password)

    def open(self, cookies: str | None, authorization: str | None) -> bool:
        """Whether a request with these headers is let in: it has our cookie, or the password itself."""
        if not self._password:
            return True
        try:
            found = SimpleCookie(cookies or "").get(self._name)
        except CookieError:
            found = None
        if found and hmac.compare_digest(found.value.encode(), self._proof.encode()):
            return True
        scheme, _, given = (authorization or "").partition(" ")
        try:
            return scheme.lower() == "basic" and self.opened_by(b64decode(given, validate=True))
        except ValueError:
            return False

    @property
    def cookie(self) -> str:
        """What a browser is given that has the password: it opens the report pages and nothing else."""
        return f"{self._name}={self._proof}; Path=/; Max-Age={A_YEAR_S}; HttpOnly; SameSite=Lax"


class Guard:
    """Before Prefect's application: refuses foreign names and pages, and logs browsers in."""

    def __init__(self, application: ASGIApp, host: str, further: str, password: str | None) -> None:
        self._application, self._further, self._lock = application, further, Lock(password)
        self._names = names(host, further)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] not in ("http", "websocket"):
            await self._application(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if why := refusal(headers.get("host"), headers.get("origin"), self._names, self._further):
            answer = PlainTextResponse(why, 403) if scope["type"] == "http" else _closed
            await answer(scope, receive, send)
        elif scope["type"] == "http" and scope["path"] == ENTER:
            await (await self._entered(Request(scope, receive)))(scope, receive, send)
        else:
            await self._application(scope, receive, _confined(send) if scope["type"] == "http" else send)

    async def _entered(self, request: Request) -> Response:
        if request.method != "POST":
            return HTMLResponse(PAGE, headers=CONFINED)
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) <= LONGEST and self._lock.opened_by(await request.body()):
            return Response(status_code=204, headers={"Set-Cookie": self._lock.cookie})
        return PlainTextResponse("no", 403)


async def _closed(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "websocket.close", "code": 1008})


def _confined(send: Send) -> Send:
    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(CONFINED)
        await send(message)

    return with_headers

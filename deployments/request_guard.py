"""Guard Prefect's server and the report pages: allowed host names, page origins and passwords."""

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

from yarus.deployments.prefect.server_access import LOGIN_PATH, is_loopback

LOGIN_PAGE = Path(__file__).with_name("enter.html").read_text(encoding="utf-8")
MAX_PASSWORD_BYTES = 1000
"""Longest password in bytes."""
YEAR_S = 365 * 24 * 3600
SECURITY_HEADERS = {
    "X-Frame-Options": "SAMEORIGIN",  # other pages cannot embed ours in a frame
    "X-Content-Type-Options": "nosniff",
    # Nothing is loaded from other servers, neither trackers nor images in texts.
    "Content-Security-Policy": "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; object-src 'none'; "
    "base-uri 'self'; form-action 'self'; frame-ancestors 'self'",
}


def allowed_hosts(host: str, further: str) -> frozenset[str]:
    """Return the host names by which a server is reached, besides numeric addresses.

    Args:
        host: the host it listens on.
        further: names of a proxy before it, separated by commas.
    """
    own_names = {"localhost", host.lower()} | (set() if is_loopback(host) else {socket.gethostname().lower()})
    return frozenset(own_names | _split_names(further))


def _split_names(further: str) -> set[str]:
    return {name.strip().lower() for name in further.split(",") if name.strip()}


def refusal_reason(host: str | None, origin: str | None, allowed: Collection[str], further: str) -> str | None:
    """Return why a request is refused; None if it is allowed.

    A page of another site cannot choose its Origin, and a name that it directs to our address is visible as the Host. A
    numeric address is not such a name.

    Args:
        host: the Host header.
        origin: the Origin of the requesting page, if there is one.
        allowed: the names from `allowed_hosts`.
        further: see `allowed_hosts`; pages of these names are allowed under another Host: a proxy may change it.
    """
    match = re.fullmatch(r"(?:\[([^\[\]]+)\]|([\w.-]+))(?::\d*)?", host or "")
    host_name = (match[1] or match[2]).lower() if match else ""
    if not (host_name in allowed or _is_number(host_name)):
        return f"{(host or '')[:100]!r} is not a name of this server: use localhost, or set YARUS_SERVE_ALLOWED_HOSTS"
    if origin is None:
        return None
    page = _without_port(origin.lower().partition("://")[2])
    if page in _split_names(further) or (page and page == _without_port((host or "").lower())):
        return None
    return "requests from a page of another server are refused"


def _is_number(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _without_port(netloc: str) -> str:
    """Return the address without a default port."""
    return netloc.removesuffix(":80").removesuffix(":443")


class PageAuth:
    """The password of pages, and the cookie by which a browser proves it."""

    def __init__(self, password: str | None) -> None:
        self._password = (password or "").encode()
        proof = hmac.digest(self._password, b"report pages", hashlib.sha256).hex()
        self._name, self._proof = f"yarus-{proof[:8]}", proof[8:]  # two servers of one machine share cookies
        self._once: str | None = None

    def make_token(self) -> str:
        """Return a token that opens the pages once instead of the password."""
        self._once = secrets.token_urlsafe(24)
        return self._once

    def accepts(self, password: bytes) -> bool:
        """Return whether it is the password or the one-time token."""
        if self._once and hmac.compare_digest(password, self._once.encode()):
            self._once = None
            return True
        return hmac.compare_digest(password, self._password)

    def allows(self, cookies: str | None, authorization: str | None) -> bool:
        """Return whether a request with these headers is allowed: it has our cookie or the password."""
        if not self._password:
            return True
        try:
            cookie = SimpleCookie(cookies or "").get(self._name)
        except CookieError:
            cookie = None
        if cookie and hmac.compare_digest(cookie.value.encode(), self._proof.encode()):
            return True
        scheme, _, credentials = (authorization or "").partition(" ")
        try:
            return scheme.lower() == "basic" and self.accepts(b64decode(credentials, validate=True))
        except ValueError:
            return False

    @property
    def cookie(self) -> str:
        """Return the cookie for a browser that has the password; it opens only the report pages."""
        return f"{self._name}={self._proof}; Path=/; Max-Age={YEAR_S}; HttpOnly; SameSite=Lax"


class AccessMiddleware:
    """Middleware before Prefect's application: refuses foreign names and pages, and logs browsers in."""

    def __init__(self, application: ASGIApp, host: str, further: str, password: str | None) -> None:
        self._application, self._further, self._auth = application, further, PageAuth(password)
        self._names = allowed_hosts(host, further)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] not in ("http", "websocket"):
            await self._application(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if why := refusal_reason(headers.get("host"), headers.get("origin"), self._names, self._further):
            answer = PlainTextResponse(why, 403) if scope["type"] == "http" else _close_websocket
            await answer(scope, receive, send)
        elif scope["type"] == "http" and scope["path"] == LOGIN_PATH:
            await (await self._handle_login(Request(scope, receive)))(scope, receive, send)
        else:
            await self._application(scope, receive, _add_headers(send) if scope["type"] == "http" else send)

    async def _handle_login(self, request: Request) -> Response:
        if request.method != "POST":
            return HTMLResponse(LOGIN_PAGE, headers=SECURITY_HEADERS)
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) <= MAX_PASSWORD_BYTES and self._auth.accepts(await request.body()):
            return Response(status_code=204, headers={"Set-Cookie": self._auth.cookie})
        return PlainTextResponse("no", 403)


async def _close_websocket(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "websocket.close", "code": 1008})


def _add_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(SECURITY_HEADERS)
        await send(message)

    return send_with_headers

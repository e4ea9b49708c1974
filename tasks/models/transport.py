"""Exchanges with servers that are not ours, bounded as a whole: in time, and in bytes as they are once unpacked.

httpx's errors over aiohttp's connections: httpx's own connection pool costs 0.4 ms of CPU a call, and far more above
some ten connections, its requests and responses 0.1 ms; aiohttp's 0.1 ms in all at any number, and its limit of time
holds for name resolution, headers and body together, where httpx's begins again with every byte.
"""

import asyncio
import io
import ssl
import threading
import urllib.request
import weakref
import zlib
from collections.abc import Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import aiohttp
import httpx
from fsspec.asyn import get_loop
from yarl import URL

from db.errors import InputError

T = TypeVar("T")
LARGEST_BYTES = 16 << 20  # of one reply, unpacked: a hundred contexts with their vectors; what is longer is a fault
LONGEST_TEXT = 4_000_000  # characters of one answer with its contexts: a million tokens, the most that any judge reads
ACCEPTED = {"accept": "application/json", "accept-encoding": "gzip"}  # headers of a request: what we can read
JSON = {"content-type": "application/json"}  # what we send
LARGE = 1 << 20  # bytes of a request that aiohttp wants to send in parts; slower for small ones
GZIP = 16 + zlib.MAX_WBITS  # zlib's name of the format


class Response(NamedTuple):
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    """By their names in any case."""
    content: bytes
    """Unpacked."""


class Transport:
    """Keeps connections open between exchanges; sends to one address. How many at once is the caller's business."""

    def __init__(self, url: str) -> None:
        """Takes the address; made where an event loop runs.

        Raises:
            InputError: the environment names a proxy that cannot be used.
        """
        self._url = URL(url)
        self._proxy = _proxy(self._url)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=_ssl_context(), keepalive_timeout=30),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),  # `exchange` limits the whole
            auto_decompress=False,  # which has no limit
        )

    async def exchange(
        self, content: bytes, headers: httpx.Headers, timeout_s: float, *, method: str = "POST"
    ) -> Response:
        """Sends a request and reads the whole response; a redirect is not followed, for it may lead anywhere.

        Args:
            content: its body.
            headers: sent as they are written; they show no key when they are printed.
            timeout_s: for all of it.
            method: of the request.

        Raises:
            httpx.TimeoutException: it was not over in time.
            httpx.DecodingError: the reply is too large, or packed in a way that was not asked for, or not whole.
            httpx.TransportError: no connection, or it broke, or what came was no HTTP.
        """
        with _as_httpx(timeout_s):
            async with (
                asyncio.timeout(timeout_s),
                self._session.request(
                    method,
                    self._url,
                    data=content if len(content) <= LARGE else io.BytesIO(content),
                    headers=[(name.decode(), value.decode()) for name, value in headers.raw],
                    allow_redirects=False,
                    proxy=self._proxy,
                ) as response,
            ):
                plain = await _read(response.content, response.headers.get("Content-Encoding"))
                return Response(response.status, response.headers, plain)

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._session.close()


class FromThreads:
    """A `Transport` for callers in threads; its connections live in fsspec's event loop, which has a thread already."""

    def __init__(self, url: str) -> None:
        """Takes the address."""

        async def opened() -> Transport:
            return Transport(url)

        self._transport = in_background(opened()).result()
        closed_with(self, self._transport)

    def exchange(self, content: bytes, headers: httpx.Headers, timeout_s: float) -> Response:
        """See `Transport`."""
        return in_background(self._transport.exchange(content, headers, timeout_s)).result()


def in_background(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Has work done in fsspec's event loop, for a caller in another thread."""
    return asyncio.run_coroutine_threadsafe(work, get_loop())


def closed_with(owner: object, transport: Transport) -> None:
    """Has a transport of fsspec's loop closed when nobody has its owner any more."""
    weakref.finalize(owner, _close, transport)


def _close(transport: Transport) -> None:
    """Waits in the main thread, which may be about to end; another may be the loop's own."""
    closing = in_background(transport.aclose())
    if threading.current_thread() is threading.main_thread():
        closing.result(1)


@lru_cache
def _ssl_context() -> ssl.SSLContext:
    """One for all: making it takes 20 ms."""
    return httpx.create_ssl_context()


def _proxy(url: URL) -> str | None:
    """What the environment says (HTTPS_PROXY, ALL_PROXY, NO_PROXY).

    Raises:
        InputError: of a kind that we do not speak; its address may hold a password, and is not repeated.
    """
    proxies = urllib.request.getproxies()
    if urllib.request.proxy_bypass(f"{url.host}:{url.port}"):
        return None
    found = proxies.get(url.scheme) or proxies.get("all")
    if found and not found.lower().startswith(("http://", "https://")):
        raise InputError(
            f"the proxy of the environment for {url.scheme}://{url.host} is not an http:// address: correct "
            f"{url.scheme.upper()}_PROXY (or ALL_PROXY), or name the host in NO_PROXY"
        )
    return found


async def _read(stream: aiohttp.StreamReader, packing: str | None) -> bytes:
    """The body, unpacked as it comes, so that no more of it is ever held than is allowed."""
    gzip = zlib.decompressobj(GZIP) if packing and packing.lower() != "identity" else None
    if gzip and packing and packing.lower() not in ("gzip", "x-gzip"):
        raise httpx.DecodingError(f"Content-Encoding: {packing[:60]}, where only gzip was asked for")
    parts = []
    left = LARGEST_BYTES
    async for part in stream.iter_any():
        plain = gzip.decompress(part, left + 1) if gzip else part
        left -= len(plain)
        if gzip and gzip.unused_data:
            raise httpx.DecodingError("Content-Encoding: gzip, and more after its end")
        if left < 0:
            raise httpx.DecodingError(
                f"the reply is larger than {LARGEST_BYTES:,} bytes (unpacked); nothing of it was used. "
                "Have the server send less"
            )
        parts.append(plain)
    if gzip and parts and not gzip.eof:
        raise httpx.DecodingError("Content-Encoding: gzip, but the body ends before that does")
    return b"".join(parts)


@contextmanager
def _as_httpx(timeout_s: float) -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise httpx.ReadTimeout(f"no reply within {timeout_s:.3g} s") from None
    except zlib.error as error:
        raise httpx.DecodingError(f"Content-Encoding: gzip, but the body is not: {error}") from None
    except (aiohttp.ClientConnectorError, aiohttp.ClientProxyConnectionError) as error:
        raise httpx.ConnectError(_words(error)) from None
    except (aiohttp.ClientError, asyncio.LimitOverrunError, ConnectionError) as error:
        raise httpx.RemoteProtocolError(_words(error)) from None


def _words(error: Exception) -> str:
    """One line without the headers that aiohttp's errors may carry."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"the server's certificate is not trusted ({error.certificate_error})"
    if isinstance(error, aiohttp.ClientResponseError):
        return " ".join(f"not HTTP: {error.message}".split())
    return " ".join(str(error).split()) or type(error).__name__

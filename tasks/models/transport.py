"""Exchanges with servers that are not ours, bounded as a whole: in time, and in bytes as they are once unpacked.

httpx's errors over aiohttp's connections: httpx's own connection pool costs 0.4 ms of CPU a call, and far more above
some ten connections, its requests and responses 0.1 ms; aiohttp's 0.1 ms in all at any number, and its limit of time
holds for name resolution, headers and body together, where httpx's begins again with every byte.
"""

import asyncio
import io
import re
import ssl
import threading
import time
import urllib.request
import weakref
import zlib
from bisect import bisect_left
from collections.abc import Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import aiohttp
import httpx
from fsspec.asyn import get_loop
from yarl import URL

from yarus.db.errors import InputError

T = TypeVar("T")
LARGEST_BYTES = 16 << 20  # of one reply, unpacked: a hundred contexts with their vectors; what is longer is a fault
LONGEST_TEXT = 4_000_000  # characters of one answer with its contexts: a million tokens, the most that any judge reads
ACCEPTED = {"accept": "application/json", "accept-encoding": "gzip"}  # headers of a request: what we can read
JSON = {"content-type": "application/json"}  # what we send
EVENTS = "text/event-stream"
LARGE = 1 << 20  # bytes of a request that aiohttp wants to send in parts; slower for small ones
GZIP = 16 + zlib.MAX_WBITS  # zlib's name of the format
DONE = re.compile(rb"(?:^|[\r\n])data: ?\[DONE\]")  # how OpenAI's protocol ends a stream, whatever the connection does
LINGER_S = 0.5  # how long a stream that has said so is waited for, so that its connection can be used again


class Response(NamedTuple):
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    """By their names in any case."""
    content: bytes
    """Unpacked."""


class Incoming:
    """A response as it comes: how much of its body was there when. It outlives an exchange that breaks off."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.kind = ""
        """Its media type."""
        self.content = bytearray()
        self.is_over = False
        """Whether the stream itself has said that nothing more comes."""
        self._sent_at = time.perf_counter()
        self._sizes: list[int] = []
        self._times: list[float] = []

    @property
    def is_framed(self) -> bool:
        """Whether its end can be told from a connection that broke."""
        return "content-length" in self.headers or "chunked" in self.headers.get("transfer-encoding", "").lower()

    def sent(self) -> None:
        """The request is about to be sent."""
        self._sent_at = time.perf_counter()

    def begun(self, status: int, headers: Mapping[str, str]) -> None:
        """The headers have come; they are known by their names in any case."""
        self.status, self.headers = status, headers
        self.kind = headers.get("content-type", "").partition(";")[0].strip().lower()

    def add(self, part: bytes) -> None:
        """More of the body has come."""
        before = len(self.content)
        self.content += part
        self._sizes.append(len(self.content))
        self._times.append(time.perf_counter())
        if not self.is_over and self.kind == EVENTS:
            self.is_over = DONE.search(self.content, max(0, before - len("\ndata: [DONE]"))) is not None

    def ms_until(self, size: int) -> float:
        """Milliseconds from sending the request until so many bytes of the body had come, from 1 to all of them."""
        return (self._times[bisect_left(self._sizes, size)] - self._sent_at) * 1_000


class Transport:
    """Keeps connections open between exchanges; sends to one address. How many at once is the caller's business."""

    def __init__(self, url: str, ca_file: Path | None = None) -> None:
        """Take the address and a file of further trusted certificates; needs a running event loop.

        Raises:
            InputError: the environment names a proxy that cannot be used, or the file has no certificates.
        """
        self._url = URL(url)
        self._proxy = proxy_of(self._url)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=_ssl_context(ca_file), keepalive_timeout=30),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),  # `exchange` limits the whole
            auto_decompress=False,  # which has no limit
        )

    async def exchange(
        self,
        content: bytes,
        headers: httpx.Headers,
        timeout_s: float,
        *,
        method: str = "POST",
        incoming: Incoming | None = None,
    ) -> Response:
        """Sends a request and reads the whole response; a redirect is not followed, for it may lead anywhere.

        Args:
            content: its body.
            headers: sent as they are written; they show no key when they are printed.
            timeout_s: for all of it.
            method: of the request.
            incoming: where the response is put as it comes.

        Raises:
            httpx.TimeoutException: it was not over in time.
            httpx.DecodingError: the reply is too large, or packed in a way that was not asked for, or not whole.
            httpx.TransportError: no connection, or it broke, or what came was no HTTP.
        """
        coming = incoming or Incoming()
        with _as_httpx(timeout_s):
            coming.sent()
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
                coming.begun(response.status, response.headers)
                await _read(response.content, response.headers.get("Content-Encoding"), coming)
                return Response(response.status, response.headers, bytes(coming.content))

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

    def exchange(
        self, content: bytes, headers: httpx.Headers, timeout_s: float, incoming: Incoming | None = None
    ) -> Response:
        """See `Transport`."""
        return in_background(self._transport.exchange(content, headers, timeout_s, incoming=incoming)).result()


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
def _ssl_context(ca_file: Path | None) -> ssl.SSLContext:
    """One for all who trust the same: making it takes 20 ms."""
    context = httpx.create_ssl_context()
    if ca_file is not None:
        try:
            context.load_verify_locations(ca_file.expanduser())
        except (OSError, ssl.SSLError, RuntimeError) as error:
            raise InputError(
                "the file of certificates {file} (…__CA_FILE) cannot be used: {error}. It must be PEM",
                file=ca_file,
                error=error,
            ) from None
    return context


def proxy_of(url: URL) -> str | None:
    """The proxy of an address: what the environment says (HTTPS_PROXY, ALL_PROXY, NO_PROXY).

    Raises:
        InputError: of a kind that we do not speak; its address may hold a password, and is not repeated.
    """
    proxies = urllib.request.getproxies()
    if urllib.request.proxy_bypass(f"{url.host}:{url.port}"):
        return None
    found = proxies.get(url.scheme) or proxies.get("all")
    if found and not found.lower().startswith(("http://", "https://")):
        raise InputError(
            "the proxy of the environment for {scheme}://{host} is not an http:// address: correct {variable}_PROXY "
            "(or ALL_PROXY), or name the host in NO_PROXY",
            scheme=url.scheme,
            host=url.host,
            variable=url.scheme.upper(),
        )
    return found


async def _read(stream: aiohttp.StreamReader, packing: str | None, coming: Incoming) -> None:
    """The body, unpacked as it comes, so that no more of it is ever held than is allowed."""
    gzip = zlib.decompressobj(GZIP) if packing and packing.lower() != "identity" else None
    if gzip and packing and packing.lower() not in ("gzip", "x-gzip"):
        raise httpx.DecodingError(f"Content-Encoding: {packing[:60]}, where only gzip was asked for")
    left = LARGEST_BYTES
    while part := await stream.readany():
        plain = gzip.decompress(part, left + 1) if gzip else part
        left -= len(plain)
        if gzip and gzip.unused_data:
            raise httpx.DecodingError("Content-Encoding: gzip, and more after its end")
        if left < 0:
            raise httpx.DecodingError(
                f"the reply is larger than {LARGEST_BYTES:,} bytes (unpacked); nothing of it was used. "
                "Have the server send less"
            )
        coming.add(plain)
        if coming.is_over:
            await _rest(stream)
            return
    if gzip and coming.content and not gzip.eof:
        raise httpx.DecodingError("Content-Encoding: gzip, but the body ends before that does")


async def _rest(stream: aiohttp.StreamReader) -> None:
    """What comes after the end of a stream, which is nothing but the end of its body, soon or never."""
    with suppress(TimeoutError, aiohttp.ClientError, ConnectionError):
        async with asyncio.timeout(LINGER_S):
            while await stream.readany():
                pass


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

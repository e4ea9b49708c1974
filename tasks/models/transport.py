"""Exchanges with foreign servers, limited as a whole: in time, and in unpacked bytes.

Errors are httpx's, connections aiohttp's. httpx's own connection pool costs 0.4 ms of CPU per call, and far more above
ten connections; its requests and responses cost 0.1 ms. aiohttp costs 0.1 ms in all, at any number of connections. Its
time limit covers name resolution, headers and body together; httpx's starts again with every byte.
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
MAX_REPLY_BYTES = 16 << 20  # of one unpacked reply: a hundred contexts with their vectors; longer replies are faults
MAX_TEXT_CHARACTERS = 4_000_000  # of one answer with its contexts: a million tokens, the most that any judge reads
ACCEPT_HEADERS = {"accept": "application/json", "accept-encoding": "gzip"}  # what Yarus can read
JSON_HEADERS = {"content-type": "application/json"}  # what Yarus sends
EVENT_STREAM_TYPE = "text/event-stream"
LARGE_REQUEST_BYTES = 1 << 20  # aiohttp wants to send larger requests in parts; slower for small ones
GZIP_WINDOW_BITS = 16 + zlib.MAX_WBITS  # zlib's name of the format
STREAM_END = re.compile(rb"(?:^|[\r\n])data: ?\[DONE\]")  # end of a stream in OpenAI's protocol
LINGER_S = 0.5  # wait for the end of the body, so that the connection can be used again


class Response(NamedTuple):
    """Response of a server."""

    status: int
    headers: Mapping[str, str]
    """By their names in any case."""
    content: bytes
    """Unpacked."""


class IncomingResponse:
    """Response as it arrives, with the time of each part of its body; kept if the exchange breaks off."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.kind = ""
        """Its media type."""
        self.content = bytearray()
        self.is_over = False
        """Whether the stream itself has announced its end."""
        self._sent_at = time.perf_counter()
        self._sizes: list[int] = []
        self._times: list[float] = []

    @property
    def is_framed(self) -> bool:
        """Return whether the end of the response can be distinguished from a broken connection."""
        return "content-length" in self.headers or "chunked" in self.headers.get("transfer-encoding", "").lower()

    def mark_sent(self) -> None:
        """Record that the request is about to be sent."""
        self._sent_at = time.perf_counter()

    def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Take status and headers; the headers are looked up by names in any case."""
        self.status, self.headers = status, headers
        self.kind = headers.get("content-type", "").partition(";")[0].strip().lower()

    def add(self, part: bytes) -> None:
        """Take another part of the body."""
        before = len(self.content)
        self.content += part
        self._sizes.append(len(self.content))
        self._times.append(time.perf_counter())
        if not self.is_over and self.kind == EVENT_STREAM_TYPE:
            self.is_over = STREAM_END.search(self.content, max(0, before - len("\ndata: [DONE]"))) is not None

    def ms_until(self, size: int) -> float:
        """Return the milliseconds from sending the request until `size` bytes of the body (at least 1) had come."""
        return (self._times[bisect_left(self._sizes, size)] - self._sent_at) * 1_000


class Transport:
    """Open connections to one address. The caller limits the number of simultaneous exchanges."""

    def __init__(self, url: str, ca_file: Path | None = None) -> None:
        """Take the address and a file of further trusted certificates; needs a running event loop.

        Raises:
            InputError: the environment names a proxy that cannot be used, or the file has no certificates.
        """
        self._url = URL(url)
        self._proxy = find_proxy(self._url)
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
        incoming: IncomingResponse | None = None,
    ) -> Response:
        """Send a request and read the whole response; redirects are not followed.

        Args:
            content: its body.
            headers: sent as they are written; printing them does not show keys.
            timeout_s: for the whole exchange.
            method: of the request.
            incoming: receives the response as it arrives.

        Raises:
            httpx.TimeoutException: it was not over in time.
            httpx.DecodingError: the reply is too large, incomplete, or packed in another way than requested.
            httpx.TransportError: the connection failed or broke, or the response is not HTTP.
        """
        response_progress = incoming or IncomingResponse()
        with _raise_httpx_errors(timeout_s):
            response_progress.mark_sent()
            async with (
                asyncio.timeout(timeout_s),
                self._session.request(
                    method,
                    self._url,
                    data=content if len(content) <= LARGE_REQUEST_BYTES else io.BytesIO(content),
                    headers=[(name.decode(), value.decode()) for name, value in headers.raw],
                    allow_redirects=False,
                    proxy=self._proxy,
                ) as response,
            ):
                response_progress.start(response.status, response.headers)
                await _read(response.content, response.headers.get("Content-Encoding"), response_progress)
                return Response(response.status, response.headers, bytes(response_progress.content))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._session.close()


class BlockingTransport:
    """A `Transport` for callers in threads; its connections live in fsspec's event loop, which has its own thread."""

    def __init__(self, url: str) -> None:
        """Take the address."""

        async def open_transport() -> Transport:
            return Transport(url)

        self._transport = run_in_background(open_transport()).result()
        close_with_owner(self, self._transport)

    def exchange(
        self, content: bytes, headers: httpx.Headers, timeout_s: float, incoming: IncomingResponse | None = None
    ) -> Response:
        """See `Transport`."""
        return run_in_background(self._transport.exchange(content, headers, timeout_s, incoming=incoming)).result()


def run_in_background(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Run a coroutine in fsspec's event loop, for a caller in another thread."""
    return asyncio.run_coroutine_threadsafe(coroutine, get_loop())


def close_with_owner(owner: object, transport: Transport) -> None:
    """Close a transport of fsspec's loop when its owner is garbage-collected."""
    weakref.finalize(owner, _close, transport)


def _close(transport: Transport) -> None:
    """Close the transport; wait for it only in the main thread, because another thread may be the loop's own."""
    closing = run_in_background(transport.aclose())
    if threading.current_thread() is threading.main_thread():
        closing.result(1)


@lru_cache
def _ssl_context(ca_file: Path | None) -> ssl.SSLContext:
    """Return one context for all clients that trust the same certificates: making one takes 20 ms."""
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


def find_proxy(url: URL) -> str | None:
    """Return the proxy of an address by the environment (HTTPS_PROXY, ALL_PROXY, NO_PROXY).

    Raises:
        InputError: the proxy is of another kind; the message does not repeat its address, which may hold a password.
    """
    proxies = urllib.request.getproxies()
    if urllib.request.proxy_bypass(f"{url.host}:{url.port}"):
        return None
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if proxy and not proxy.lower().startswith(("http://", "https://")):
        raise InputError(
            "the proxy of the environment for {scheme}://{host} is not an http:// address: correct {variable}_PROXY "
            "(or ALL_PROXY), or name the host in NO_PROXY",
            scheme=url.scheme,
            host=url.host,
            variable=url.scheme.upper(),
        )
    return proxy


async def _read(stream: aiohttp.StreamReader, encoding: str | None, incoming: IncomingResponse) -> None:
    """Read the body and unpack it as it comes, so that memory is limited."""
    gzip = zlib.decompressobj(GZIP_WINDOW_BITS) if encoding and encoding.lower() != "identity" else None
    if gzip and encoding and encoding.lower() not in ("gzip", "x-gzip"):
        raise httpx.DecodingError(f"Content-Encoding: {encoding[:60]}, where only gzip was asked for")
    remaining = MAX_REPLY_BYTES
    while part := await stream.readany():
        unpacked = gzip.decompress(part, remaining + 1) if gzip else part
        remaining -= len(unpacked)
        if gzip and gzip.unused_data:
            raise httpx.DecodingError("Content-Encoding: gzip, and more after its end")
        if remaining < 0:
            raise httpx.DecodingError(
                f"the reply is larger than {MAX_REPLY_BYTES:,} bytes (unpacked); nothing of it was used. "
                "Have the server send less"
            )
        incoming.add(unpacked)
        if incoming.is_over:
            await _drain_stream(stream)
            return
    if gzip and incoming.content and not gzip.eof:
        raise httpx.DecodingError("Content-Encoding: gzip, but the body ends before that does")


async def _drain_stream(stream: aiohttp.StreamReader) -> None:
    """Read the rest of the body after the end of a stream, as long as it comes soon."""
    with suppress(TimeoutError, aiohttp.ClientError, ConnectionError):
        async with asyncio.timeout(LINGER_S):
            while await stream.readany():
                pass


@contextmanager
def _raise_httpx_errors(timeout_s: float) -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise httpx.ReadTimeout(f"no reply within {timeout_s:.3g} s") from None
    except zlib.error as error:
        raise httpx.DecodingError(f"Content-Encoding: gzip, but the body is not: {error}") from None
    except (aiohttp.ClientConnectorError, aiohttp.ClientProxyConnectionError) as error:
        raise httpx.ConnectError(_error_text(error)) from None
    except (aiohttp.ClientError, asyncio.LimitOverrunError, ConnectionError) as error:
        raise httpx.RemoteProtocolError(_error_text(error)) from None


def _error_text(error: Exception) -> str:
    """Return one line without the headers that aiohttp's errors may carry."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"the server's certificate is not trusted ({error.certificate_error})"
    if isinstance(error, aiohttp.ClientResponseError):
        return " ".join(f"not HTTP: {error.message}".split())
    return " ".join(str(error).split()) or type(error).__name__

"""httpx's transport interface over aiohttp's connections.

httpx's own connection pool costs 0.4 ms of CPU a call, and far more above some ten connections; this one 0.1 ms at any
number. Judging is waiting for the network, and the rest of the core belongs to the evaluation.
"""

import asyncio
import ssl
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import aiohttp
import httpx
from yarl import URL

LARGEST_BYTES = 16 << 20  # of one reply: what is longer is a fault, not an answer


class Transport(httpx.AsyncBaseTransport):
    """Keeps connections open between calls; sends to one address. How many at once is the caller's business."""

    def __init__(self, url: str) -> None:
        self._url = URL(url)
        self._proxy = _proxy(self._url)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=_ssl_context(), keepalive_timeout=30),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),  # the caller limits the whole exchange
            auto_decompress=False,  # httpx does
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Sends a request and reads the whole response.

        Raises:
            httpx.TransportError: no connection, or it broke, or what came was no HTTP.
        """
        with _as_httpx(request):
            async with self._session.request(
                request.method,
                self._url,
                data=request.content,
                headers=request.headers,
                allow_redirects=False,
                proxy=self._proxy,
            ) as response:
                content = await _read(response.content)
                return httpx.Response(response.status, headers=response.raw_headers, content=content, request=request)

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._session.close()


@lru_cache
def _ssl_context() -> ssl.SSLContext:
    """One for all: making it takes 20 ms."""
    return httpx.create_ssl_context()


def _proxy(url: URL) -> str | None:
    """What the environment says (HTTPS_PROXY, NO_PROXY)."""
    host = url.host or ""
    return None if urllib.request.proxy_bypass(host) else urllib.request.getproxies().get(url.scheme)


async def _read(stream: aiohttp.StreamReader) -> bytes:
    parts = []
    left = LARGEST_BYTES
    async for part in stream.iter_any():
        left -= len(part)
        if left < 0:
            raise aiohttp.ClientPayloadError(f"more than {LARGEST_BYTES:,} bytes")
        parts.append(part)
    return b"".join(parts)


@contextmanager
def _as_httpx(request: httpx.Request) -> Iterator[None]:
    try:
        yield
    except (aiohttp.ClientConnectorError, aiohttp.ClientProxyConnectionError) as error:
        raise httpx.ConnectError(_words(error), request=request) from None
    except (aiohttp.ClientError, asyncio.LimitOverrunError, ConnectionError) as error:
        raise httpx.RemoteProtocolError(_words(error), request=request) from None


def _words(error: Exception) -> str:
    """One line without the headers that aiohttp's errors may carry."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"the server's certificate is not trusted ({error.certificate_error})"
    if isinstance(error, aiohttp.ClientResponseError):
        return f"not HTTP: {error.message}"
    return " ".join(str(error).split()) or type(error).__name__

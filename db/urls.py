"""Canonical URLs, which identify pages."""

import html
import re
from functools import lru_cache
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

_TRACKING = {"yclid", "gclid", "fbclid", "_openstat", "from", "ref", "src"}
_NO_URL = {"", "none", "null"}


@lru_cache(maxsize=100_000)
def canonical_url(url: str | None) -> str | None:
    """Return one URL for all addresses of a page.

    Entities are unescaped, scheme and host lower-cased, fragment and tracking parameters dropped, and the other
    parameters sorted. For Confluence only `pageId` is kept (`preview=` names an attachment shown over the same page).

    Args:
        url: URL as in the log; `''`, `None` and the words `None` and `null` mean that it is missing.

    Returns:
        The canonical form, or None without a URL.
    """
    if url is None or url.strip().lower() in _NO_URL:
        return None
    # Only entities that end in a semicolon: html.unescape also takes "&region=5" for "®ion=5".
    unescaped = re.sub(r"&#?\w+;", lambda entity: html.unescape(entity[0]), url.strip())
    try:
        parts = urlsplit(unescaped)
    except ValueError:  # not a valid URL ("http://[x"), but it still identifies one page
        return unescaped
    query = parse_qsl(parts.query, keep_blank_values=True)
    page_id = next((value for name, value in query if name.lower() == "pageid"), None)
    if page_id is not None:
        query = [("pageId", page_id)]
    else:
        query = sorted((name, value) for name, value in query if not _is_tracking(name.lower()))
    path = unquote(parts.path).rstrip("/")
    return urlunsplit((parts.scheme.lower(), parts.netloc.lower(), path, urlencode(query, errors="replace"), ""))


def _is_tracking(name: str) -> bool:
    return name.startswith("utm_") or name in _TRACKING

"""The identity of a page: its canonical URL."""

import html
import re
from functools import lru_cache
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

_TRACKING = {"yclid", "gclid", "fbclid", "_openstat", "from", "ref", "src"}
_NO_URL = {"", "none", "null"}


@lru_cache(maxsize=100_000)
def canonical_url(url: str | None) -> str | None:
    """One name for all addresses of a page.

    Unescapes, lower-cases scheme and host, drops the fragment and tracking parameters, sorts the rest. For Confluence
    the `pageId` decides, whatever else the query says (`preview=` names an attachment shown over the same page).

    Args:
        url: as the log has it; `''`, `None` and the words `None` and `null` are no URL.

    Returns:
        The canonical form, or None where there is no URL.
    """
    if url is None or url.strip().lower() in _NO_URL:
        return None
    # Only entities that end in a semicolon: html.unescape also takes "&region=5" for "®ion=5".
    plain = re.sub(r"&#?\w+;", lambda entity: html.unescape(entity[0]), url.strip())
    try:
        parts = urlsplit(plain)
    except ValueError:  # no URL by the rules, "http://[x", but still the same page wherever it stands
        return plain
    query = parse_qsl(parts.query, keep_blank_values=True)
    page_id = next((value for name, value in query if name.lower() == "pageid"), None)
    if page_id is not None:
        query = [("pageId", page_id)]
    else:
        query = sorted((name, value) for name, value in query if not _tracks(name.lower()))
    path = unquote(parts.path).rstrip("/")
    return urlunsplit((parts.scheme.lower(), parts.netloc.lower(), path, urlencode(query, errors="replace"), ""))


def _tracks(name: str) -> bool:
    return name.startswith("utm_") or name in _TRACKING

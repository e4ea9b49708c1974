"""The identity of a page: its canonical URL."""

import html
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

_TRACKING = ("utm_", "yclid", "gclid", "fbclid", "_openstat", "from", "ref", "src")
_NO_URL = {"", "none", "null"}


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
    parts = urlsplit(html.unescape(url.strip()))
    query = parse_qsl(parts.query, keep_blank_values=True)
    page_id = next((value for name, value in query if name.lower() == "pageid"), None)
    if page_id is not None:
        query = [("pageId", page_id)]
    else:
        query = sorted((name, value) for name, value in query if not name.lower().startswith(_TRACKING))
    path = unquote(parts.path).rstrip("/")
    return urlunsplit((parts.scheme.lower(), parts.netloc.lower(), path, urlencode(query), ""))

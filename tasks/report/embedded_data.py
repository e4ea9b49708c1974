"""Data in pages: JSON that is safe in a script element, or compressed JSON for large data."""

import base64
import gzip
import json
from functools import cache
from typing import Any

from markupsafe import Markup
from plotly.offline import get_plotlyjs

Document = dict[str, Any]
"""Data that a template or a script of a page reads."""
COMPRESSION_LEVEL = 4
"""Level of compression: a third of the time of the best level, and a few percent larger."""
ESCAPES = {character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def to_script_json(document: Any) -> Markup:
    """Return the document as JSON for a script element; texts with `</script>` or `<!--` cannot end the element.

    Raises:
        ValueError: the document contains NaN or infinity, which JSON does not have.
    """
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character, escape in ESCAPES.items():
        text = text.replace(character, escape)
    return Markup(text)  # noqa: S704 - escaped above


def pack_json(document: Any) -> str:
    """Return the document as compressed JSON in base64."""
    return _compress(json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")))


@cache
def pack_plotly() -> str:
    """Return Plotly's script, compressed, in base64."""
    return _compress(get_plotlyjs())


def _compress(text: str) -> str:
    # A lone surrogate, which JSON allows and UTF-8 does not, becomes a question mark.
    raw = text.encode("utf-8", errors="replace")
    return base64.b64encode(gzip.compress(raw, COMPRESSION_LEVEL, mtime=0)).decode("ascii")

"""Canonical URLs: one page has one URL, two pages have two."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarus.db.urls import canonical_url


def test_canonical_url_escapes_lone_surrogates() -> None:
    assert canonical_url("https://a.example/p?q=\ud83d") == "https://a.example/p?q=%3F"


CONFLUENCE = "https://confluence.utmn.ru/pages/viewpage.action?pageId=8028"


@pytest.mark.parametrize(
    ("raw", "canonical"),
    [
        # No URL: the log's words for a missing one.
        (None, None),
        ("", None),
        ("   ", None),
        ("None", None),
        ("null", None),
        ("NULL", None),
        # Confluence: the pageId decides.
        (CONFLUENCE, CONFLUENCE),
        (f"{CONFLUENCE}&preview=%2F8028%2F9000%2Fprikaz.pdf", CONFLUENCE),
        (f"{CONFLUENCE}&amp;preview=/8028/9000/prikaz.pdf", CONFLUENCE),
        ("https://confluence.utmn.ru/pages/viewpage.action?preview=/1/2&pageId=8028", CONFLUENCE),
        ("HTTPS://Confluence.UTMN.ru/pages/viewpage.action?pageID=8028#section", CONFLUENCE),
        # Scheme and host in lower case, the path unchanged; no fragment, no trailing slash.
        ("HTTP://Example.ORG/A/b/#top", "http://example.org/A/b"),
        ("http://example.org", "http://example.org"),
        ("http://example.org/", "http://example.org"),
        # Unescaped.
        ("http://example.org/%D0%BF%D1%80%D0%B8%D1%91%D0%BC", "http://example.org/приём"),
        ("http://example.org/приём", "http://example.org/приём"),
        ("http://example.org/?a=1&amp;b=2", "http://example.org?a=1&b=2"),
        # Parameters sorted; only tracking ones dropped.
        ("http://example.org/x?b=2&a=1", "http://example.org/x?a=1&b=2"),
        ("http://example.org/x?utm_source=vk&a=1&yclid=5&gclid=6&fbclid=7&from=mail", "http://example.org/x?a=1"),
        ("http://example.org/x?fromDate=2024&reference=7", "http://example.org/x?fromDate=2024&reference=7"),
        # `&region=` begins like the entity `&reg`; `&copy=` is an entity without its semicolon.
        ("http://example.org/x?a=1&region=5&copy=2", "http://example.org/x?a=1&copy=2&region=5"),
        ("http://example.org/x?a=1&amp;region=5&amp;copy=2", "http://example.org/x?a=1&copy=2&region=5"),
        # Not a valid web address: still a name.
        ("squad:Нормандцы", "squad:Нормандцы"),
        (" страница из памяти ", "страница из памяти"),
        ("http://[::1/x", "http://[::1/x"),
    ],
)
def test_canonical_url_of_examples(raw: str | None, canonical: str | None) -> None:
    assert canonical_url(raw) == canonical


@pytest.mark.slow("breadth: any text")
@given(st.text(max_size=60))
def test_canonical_url_accepts_any_text(text: str) -> None:
    canonical = canonical_url(text)
    assert canonical is None or isinstance(canonical, str)


@given(page=st.integers(1, 10**9), preview=st.text("abc/%&=", max_size=12))
def test_canonical_url_depends_only_on_the_page_id(page: int, preview: str) -> None:
    url = f"https://c.example/pages/viewpage.action?pageId={page}"
    assert canonical_url(f"{url}&preview={preview}") == canonical_url(url)
    assert canonical_url(url) != canonical_url(f"{url}0")

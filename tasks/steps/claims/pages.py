"""Pages or chunks that a system names in its answer, or with it."""

from collections.abc import Container, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from yarus.db.urls import canonical_url
from yarus.metrics.facts import facts
from yarus.tasks.cases.text import CHARACTERS_PER_TOKEN
from yarus.tasks.cases.vocabulary import ANSWERED_STATUSES
from yarus.tasks.evaluation.work_folder import PAGE_TOKENS

MAX_NAMED_PAGES = 20
"""Most named pages of an answer that are read."""


class NamedPage(NamedTuple):
    """A page that a system names."""

    id: str
    text: str | None
    """Its text, of a long page the beginning; None if the corpus does not have it."""
    cut: bool
    """Whether it is too long, or named after too many others, to be read completely: its support is unknown."""
    retrieved: bool
    """Whether the system reports it as retrieved; else its address is in the answer."""


def find_named_pages(
    case: Mapping[str, Any], texts: Mapping[str, str], hosts: Container[str]
) -> list[NamedPage] | None:
    """Return the pages that a case's system names, each once.

    Args:
        case: with `status`, `answer` and `retrieved`.
        texts: of the corpus, by the ids that `retrieved` has.
        hosts: of its pages, as `list_hosts` gives them.

    Returns:
        First the retrieved pages, then those whose address is in the answer and has a host of the corpus, even if the
        corpus lacks the page. None if the system has not answered, or names no pages.
    """
    if case["status"] not in ANSWERED_STATUSES or not case["answer"]:
        return None
    linked = [page for page in find_links(case["answer"]).values() if page in texts or _host_of_page(page) in hosts]
    if case["retrieved"] is None and not linked:
        return None
    retrieved = dict.fromkeys(case["retrieved"] or ())
    page_ids = dict.fromkeys((*retrieved, *linked))
    return [_make_named_page(name, texts.get(name), name in retrieved, number) for number, name in enumerate(page_ids)]


def list_hosts(texts: Mapping[str, str]) -> frozenset[str]:
    """Return the hosts of a corpus's pages; none if its unit is the chunk."""
    return frozenset(host for page in texts if "://" in page and (host := _host_of_page(page)))


def find_links(answer: str) -> dict[str, str]:
    """Return the addresses in an answer: as written there -> canonical page."""
    if "." not in answer:
        return {}
    pairs = ((fact.text, canonical_url(fact.text)) for fact in facts(answer) if fact.kind == "url")
    return {text: page for text, page in pairs if page is not None}


def page_label(number: int) -> str:
    """Return the name of a page among the sources of a case, by its number from 0 on."""
    return f"page_{number + 1}"


def _host_of_page(page: str) -> str:
    try:
        return urlsplit(page).netloc
    except ValueError:  # `http://[x` is not an address, and is kept as text
        return ""


def _make_named_page(name: str, text: str | None, retrieved: bool, number: int) -> NamedPage:
    is_cut = text is not None and (number >= MAX_NAMED_PAGES or len(text) >= PAGE_TOKENS * CHARACTERS_PER_TOKEN)
    return NamedPage(name, text, is_cut, retrieved)

"""The pages, or chunks, that a system names beside its answer, and in it."""

from collections.abc import Container, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from yarus.db.urls import canonical_url
from yarus.metrics.facts import facts
from yarus.tasks.cases.text import CHARACTERS_A_TOKEN
from yarus.tasks.cases.vocabulary import SAID
from yarus.tasks.evaluation.work_folder import PAGE_TOKENS

MOST = 20
"""Named pages of an answer that are read."""


class Named(NamedTuple):
    """A page that a system names."""

    id: str
    text: str | None
    """What stands on it, of a long page the beginning; None where the corpus does not have it."""
    cut: bool
    """Whether it is too long, or named after too many others, to be read as a whole: what it supports is not known."""
    retrieved: bool
    """Whether the system says that it retrieved it; else its address stands in the answer."""


def named_pages(case: Mapping[str, Any], texts: Mapping[str, str], hosts: Container[str]) -> list[Named] | None:
    """The pages that a case's system names, each once.

    Args:
        case: with `status`, `answer` and `retrieved`.
        texts: of the corpus, by the ids that `retrieved` has.
        hosts: of its pages, as `hosts_of` gives them.

    Returns:
        First what it retrieved, then the pages whose address stands in the answer: those of the corpus, and those that
        would be beside them if there were such pages; an address elsewhere in the world is none of the corpus's. None
        where it has not answered, or says nothing of pages.
    """
    if case["status"] not in SAID or not case["answer"]:
        return None
    linked = [page for page in links(case["answer"]).values() if page in texts or _host(page) in hosts]
    if case["retrieved"] is None and not linked:
        return None
    retrieved = dict.fromkeys(case["retrieved"] or ())
    every = dict.fromkeys((*retrieved, *linked))
    return [_named(name, texts.get(name), name in retrieved, n) for n, name in enumerate(every)]


def hosts_of(texts: Mapping[str, str]) -> frozenset[str]:
    """Where the pages of a corpus stand; nowhere, where its unit is the chunk."""
    return frozenset(host for page in texts if "://" in page and (host := _host(page)))


def links(answer: str) -> dict[str, str]:
    """The addresses in an answer, as they stand there -> as pages are named."""
    if "." not in answer:
        return {}
    told = ((fact.text, canonical_url(fact.text)) for fact in facts(answer) if fact.kind == "url")
    return {text: page for text, page in told if page is not None}


def label(number: int) -> str:
    """What a named page is called among the sources of a case, by its number from 0 on."""
    return f"page_{number + 1}"


def _host(page: str) -> str:
    try:
        return urlsplit(page).netloc
    except ValueError:  # `http://[x` is no address, and stays as it is in logs and answers
        return ""


def _named(name: str, text: str | None, retrieved: bool, number: int) -> Named:
    long = text is not None and (number >= MOST or len(text) >= PAGE_TOKENS * CHARACTERS_A_TOKEN)
    return Named(name, text, long, retrieved)

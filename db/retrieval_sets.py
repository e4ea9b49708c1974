"""Retrieval sets whose queries are themselves documents of the corpus, such as BEIR's ArguAna and Quora."""

import re

PAGE_PREFIX = "beir:"
"""Prefix of a document's page; no other source has such pages."""


def page_of_document(document_id: str) -> str:
    """Return the page of a document of a retrieval set."""
    return f"{PAGE_PREFIX}{document_id}"


def is_query_document(query: str, document: str) -> bool:
    """Return whether a document with a query's id is that query: at least half of one text is the other.

    Ids alone do not decide: if a set counts queries and documents from 1, document 1 is not query 1.

    Args:
        query: text of the query.
        document: text of the document, which may begin with a title.
    """
    short, long = sorted((_normalize_words(query), _normalize_words(document)), key=len)
    return bool(short) and 2 * len(short) >= len(long) and f" {short} " in f" {long} "


def _normalize_words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))

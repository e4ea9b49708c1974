"""Retrieval sets whose queries are documents of the corpus themselves, such as BEIR's ArguAna and Quora."""

import re

PAGE = "beir:"
"""What the page of a document begins with: no other source has such pages."""


def page_of_document(document_id: str) -> str:
    """The page of a document of a retrieval set."""
    return f"{PAGE}{document_id}"


def is_query_document(query: str, document: str) -> bool:
    """Whether a document with the id of a query is that query: half or more of one text is the other.

    Ids alone do not tell: sets that count queries and documents from 1 have a document 1 that is not query 1.

    Args:
        query: its text.
        document: the text, which may begin with a title.
    """
    short, long = sorted((_words(query), _words(document)), key=len)
    return bool(short) and 2 * len(short) >= len(long) and f" {short} " in f" {long} "


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))

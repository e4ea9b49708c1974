"""The agreement with production in words: the same in the terminal and in the report."""

from collections.abc import Iterator

from yarus.tasks.results.numbers import percent
from yarus.tasks.results.production.documents import AgreementWithProduction, Production
from yarus.tasks.texts import LANGUAGES, Text, texts


def production_sentences(found: Production | None) -> Iterator[Text]:
    """How far the system does what production did; and that it does not, where that is so."""
    if found:
        yield {language: _said(found, language) for language in LANGUAGES}


def _said(found: Production, language: str) -> str:
    words = texts("production", language)
    parts = [
        words[what].format(agreement=_interval(one), n=one["n"])
        for what, one in (("page", found["page"]), ("decision", found["decision"]))
        if one is not None
    ]
    said = words["like"].format(parts="; ".join(parts))
    if found["unlike"]:
        said += " " + words["unlike"]
    return said + (" " + words["differ"].format(cases=", ".join(found["differ"])) if found["differ"] else "")


def _interval(one: AgreementWithProduction) -> str:
    return f"{percent(one['value'])} ({percent(one['ci_low'])} … {percent(one['ci_high'])})"

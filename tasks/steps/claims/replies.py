"""What a judge says of claims (those of a text, and which sources support each) and of nuggets. Nothing is guessed."""

import hashlib
from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Any, NamedTuple, TypeVar

from yarus.db.words import Words
from yarus.tasks.cases.text import same_said
from yarus.tasks.models.verdicts import NoVerdict, Verdict, read_list, unreadable

NAME = 4
"""Letters of a claim's name, where they tell it from the others."""


class Claim(NamedTuple):
    """One thing that a text says."""

    text: str
    sentence: int | None
    """Number of the sentence that says it, from 1 on; None where the judge names none that there is."""


Claims = Verdict[list[Claim]] | NoVerdict
Supported = dict[str, frozenset[str]]
"""Name of a claim -> the sources that support it; a claim that is missing has no verdict."""
Support = Verdict[Supported] | NoVerdict
Had = Verdict[dict[str, float]] | NoVerdict
"""Name of a nugget -> how much of it the answer has; a nugget that is missing has no verdict."""
WORTH = {"full": 1.0, "partial": 0.5, "none": 0.0}
H = TypeVar("H", bound=Hashable)


def read_claims(text: str, sentences: int) -> Claims:
    """Reads `{"claims": [{"sentence": number, "claim": text}]}`; a claim that comes back twice counts once.

    Args:
        text: the reply as received.
        sentences: how many the text has.

    Returns:
        The claims in their order, none where the text says nothing; or `parse_error`, also where a single entry cannot
        be read: without it the text would seem to say less.
    """
    entries = read_list(text, "claims")
    if isinstance(entries, NoVerdict):
        return entries
    found: dict[str, Claim] = {}
    for number, entry in enumerate(entries):
        said = entry.get("claim")
        if not isinstance(said, str) or not said.strip():
            return unreadable(
                Words(
                    "claim {number} of {n_entries} is {said!r:.60}, not a text",
                    number=number,
                    n_entries=len(entries),
                    said=said,
                )
            )
        place = entry.get("sentence")
        known = isinstance(place, int) and not isinstance(place, bool) and 1 <= place <= sentences
        claim = " ".join(said.split())
        found.setdefault(same_said(claim), Claim(claim, place if known else None))
    return Verdict(list(found.values()), "")


def read_support(text: str, claims: Collection[str], sources: Collection[str]) -> Support:
    """Reads `{"verdicts": [{"id": name, "supported_by": [names]}]}`.

    What is said of claims or sources that nobody asked about says nothing: the claim has no verdict, as one that was
    left out, or got two that differ.

    Args:
        text: the reply as received.
        claims, sources: their names.

    Returns:
        The claims that have a verdict; `parse_error` where none has.
    """

    def by(entry: dict[str, Any]) -> frozenset[str] | None:
        given = entry.get("supported_by")
        named = frozenset(map(_name, given)) if isinstance(given, list) else None
        return named if named is not None and named <= known else None

    known = set(sources)
    return _parse_verdicts(text, claims, by, "claims")


def read_had(text: str, nuggets: Collection[str]) -> Had:
    """Reads `{"verdicts": [{"id": name, "support": "full", "partial" or "none"}]}` as `read_support` does.

    Args:
        text: the reply as received.
        nuggets: their names.

    Returns:
        1, 0.5 or 0 of the nuggets that have a verdict; `parse_error` where none has.
    """

    def worth(entry: dict[str, Any]) -> float | None:
        said = entry.get("support")
        return WORTH.get(said.strip().casefold()) if isinstance(said, str) else None

    return _parse_verdicts(text, nuggets, worth, "nuggets")


def names(claims: Iterable[str]) -> dict[str, str]:
    """Names for claims, each -> its claim: by what it says, not by its number, so that a renumbered reply shows."""
    found: dict[str, str] = {}
    for claim in claims:
        digest = hashlib.sha256(claim.encode("utf-8", "surrogatepass")).hexdigest()
        length = next(n for n in range(NAME, len(digest) + 1) if found.get(digest[:n], claim) == claim)
        found[digest[:length]] = claim
    return found


def _parse_verdicts(
    text: str, asked: Collection[str], read: Callable[[dict[str, Any]], H | None], what: str
) -> Verdict[dict[str, H]] | NoVerdict:
    """What the entries say of each that was asked about, where they say one thing."""
    entries = read_list(text, "verdicts")
    if isinstance(entries, NoVerdict):
        return entries
    found: dict[str, set[H | None]] = {}
    for entry in entries:
        if (name := _name(entry.get("id"))) in asked:
            found.setdefault(name, set()).add(read(entry))
    known = {name: said for name, (said, *others) in found.items() if said is not None and not others}
    if asked and not known:
        return unreadable(Words("no verdict on any of {n_asked} {what}", n_asked=len(asked), what=what))
    return Verdict(known, "")


def _name(given: Any) -> str:
    """A name as it was given to the judge, who may copy the tag with its code, or take digits for a number."""
    if isinstance(given, int) and not isinstance(given, bool):
        return f"{given:0{NAME}d}"
    return given.strip(" <>[]").partition("-")[0].casefold() if isinstance(given, str) else ""

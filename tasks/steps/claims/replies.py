"""What a judge says of claims: the claims of a text, and which sources support each. Nothing is guessed."""

import hashlib
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from tasks.cases.text import normalised
from tasks.models.verdicts import NoVerdict, Verdict, read_object, unreadable

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


def read_claims(text: str, sentences: int) -> Claims:
    """Reads `{"claims": [{"sentence": number, "claim": text}]}`; a claim that comes back twice counts once.

    Args:
        text: the reply as received.
        sentences: how many the text has.

    Returns:
        The claims in their order, none where the text says nothing; or `parse_error`, also where a single entry cannot
        be read: without it the text would seem to say less.
    """
    entries = _entries(text, "claims")
    if isinstance(entries, NoVerdict):
        return entries
    found: dict[str, Claim] = {}
    for number, entry in enumerate(entries):
        said = entry.get("claim")
        if not isinstance(said, str) or not said.strip():
            return unreadable(f"claim {number} of {len(entries)} is {said!r:.60}, not a text")
        place = entry.get("sentence")
        known = isinstance(place, int) and not isinstance(place, bool) and 1 <= place <= sentences
        claim = " ".join(said.split())
        found.setdefault(normalised(claim) or claim, Claim(claim, place if known else None))
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
    entries = _entries(text, "verdicts")
    if isinstance(entries, NoVerdict):
        return entries
    found: dict[str, set[frozenset[str] | None]] = {}
    for entry in entries:
        name, by = _name(entry.get("id")), entry.get("supported_by")
        named = frozenset(map(_name, by)) if isinstance(by, list) else None
        if name in claims:
            found.setdefault(name, set()).add(named if named is not None and named <= set(sources) else None)
    known = {name: by for name, (by, *others) in found.items() if by is not None and not others}
    if claims and not known:
        return unreadable(f"no verdict on any of {len(claims)} claims")
    return Verdict(known, "")


def names(claims: Iterable[str]) -> dict[str, str]:
    """Names for claims, each -> its claim: by what it says, not by its number, so that a renumbered reply shows."""
    found: dict[str, str] = {}
    for claim in claims:
        digest = hashlib.sha256(claim.encode("utf-8", "surrogatepass")).hexdigest()
        length = next(n for n in range(NAME, len(digest) + 1) if found.get(digest[:n], claim) == claim)
        found[digest[:length]] = claim
    return found


def _entries(text: str, name: str) -> list[dict[str, Any]] | NoVerdict:
    reply = read_object(text)
    if isinstance(reply, NoVerdict):
        return reply
    entries = reply.get(name)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        what = f"{name!r} is {entries!r:.60}, not a list of objects" if name in reply else f"no key {name!r}"
        return unreadable(what)
    return entries


def _name(given: Any) -> str:
    """A name as it was given to the judge, who may copy the tag with its code."""
    return given.strip(" <>[]").partition("-")[0].casefold() if isinstance(given, str) else ""

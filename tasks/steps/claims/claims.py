"""Checking claims: what the answer and the reference say, and which texts support it; replies are read strictly."""

import asyncio
import hashlib
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from functools import partial, reduce
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from typing_extensions import TypedDict

from yarus.db.tables import Json
from yarus.db.words import Words
from yarus.metrics.claims import NAMES, Verdicts, claim_metrics
from yarus.tasks.cases.privacy.masking import mask, own_key, restored
from yarus.tasks.cases.table import Case, with_columns
from yarus.tasks.cases.text import WORD, parts, same_said, sentences
from yarus.tasks.cases.vocabulary import SAID
from yarus.tasks.evaluation.identity import configured
from yarus.tasks.evaluation.repeats import first_repeat
from yarus.tasks.evaluation.run import Run
from yarus.tasks.evaluation.work_folder import read_texts
from yarus.tasks.models.calls import Call, Model
from yarus.tasks.models.progress import gathered
from yarus.tasks.models.prompts import Prompt, prompts
from yarus.tasks.models.verdicts import NoVerdict, Verdict, ask_for, failure, read_list, unreadable, value_of
from yarus.tasks.steps.claims.pages import hosts_of, label, links, named_pages
from yarus.tasks.steps.judging.judge import with_verdicts
from yarus.tasks.steps.opened import open_model

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

    def by(entry: Json) -> frozenset[str] | None:
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

    def worth(entry: Json) -> float | None:
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
    text: str, asked: Collection[str], read: Callable[[Json], H | None], what: str
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


Given = dict[str, Verdict[Any] | NoVerdict]
SIDES = ("answer", "reference")
NAMING = 3
"""Words beside an address in a sentence that says nothing but where to read on."""


class Checked(NamedTuple):
    """The claims of a case."""

    claims: dict[str, list[Claim]]
    """Of answer and reference, where they were found."""
    sources: set[str]
    """What they were checked against: answer, reference, passages and named pages."""
    supported: dict[str, frozenset[str]]
    """Claim -> the sources that support it; a claim that is missing has no verdict."""


async def check_claims(run: Run, cases: pa.Table) -> pa.Table:
    """Adds the claims with what supports them, and the metrics of claims, where they were asked for.

    Answer and reference are split into claims, and all claims of a case are checked in one call, against each other,
    the passages of the context and the pages that the system names. A reference is split once for all evaluations, with
    this model and prompt. Where only citations were asked for, the answer's sentences are checked, against the named
    pages. A refusal claims nothing, and has none of the reference's claims. What the judge fails at is NULL and makes
    the case's status.
    """
    if not (run.config.claims or run.config.citations):
        return cases
    configuration = configured(run)
    known, rows = prompts(configuration), cases.to_pylist()
    # Before texts are taken apart: what stands around a name tells that it is one.
    hide = partial(mask, key=own_key(), language=configuration.language) if configuration.mask_calls else str
    pages = _pages(run, rows) if run.config.citations is not None else [{} for _ in rows]
    async with open_model(run, "judge", configuration) as model:
        judge = _Judge(model, known, first_repeat(run.id, run.parameters), hide)
        ask = judge.claims if run.config.claims is not None else judge.citations
        both = await gathered("check_claims", map(ask, rows, pages), lambda one: failure(*one[1].values()))
    checked = [one for one, _ in both]
    cases = with_columns(
        with_verdicts(cases, [given for _, given in both]),
        claims=[one and _stored(one, row, hide) for one, row in zip(checked, rows, strict=True)],
    )
    if run.config.claims is None:
        return cases
    found = claim_metrics([one and _verdicts(one, row) for one, row in zip(checked, rows, strict=True)])
    whole = [row.get("passage_starts") is None for row in rows]  # nobody has noted where its passages begin
    found["context_precision"][whole] = np.nan
    return with_columns(cases, **{name: found[name] for name in NAMES})


class _Judge:
    """Who is asked about claims."""

    def __init__(self, model: Model, known: Mapping[str, Prompt], repeat: int, hide: Callable[[str], str]) -> None:
        self.model, self.known, self.repeat, self.hide = model, known, repeat, hide

    async def claims(self, case: Case, pages: Mapping[str, str]) -> tuple[Checked | None, Given]:
        """The claims of a case, None where nothing is to be checked; and every verdict that they come from."""
        texts = _texts(case)
        if texts is None:
            return None, {}
        sides = {side: texts[side] for side in SIDES if side in texts}
        split = dict(zip(sides, await asyncio.gather(*(self.split(*side) for side in sides.items())), strict=True))
        given: Given = {f"claims_of_{side}": verdict for side, verdict in split.items()}
        claims = {side: verdict.value for side, verdict in split.items() if isinstance(verdict, Verdict)}
        others = {of for of in SIDES if claims.get(SIDES[1 - SIDES.index(of)])} | (texts.keys() - {*SIDES})
        checked, support = await self.check(claims, {name: texts[name] for name in texts if name in others} | {**pages})
        return checked, given | support

    async def citations(self, case: Case, pages: Mapping[str, str]) -> tuple[Checked | None, Given]:
        """The sentences of an answer as claims of it, held against the pages that the system names."""
        if case["status"] not in SAID or not case["answer"]:
            return None, {}
        return await self.check({"answer": _statements(self.hide(case["answer"]))}, pages)

    async def check(self, claims: dict[str, list[Claim]], sources: Mapping[str, str]) -> tuple[Checked, Given]:
        """What supports the claims; of sources with the same text one is sent."""
        asked = [claim.text for of in claims.values() for claim in of]
        first: dict[str, str] = {}
        same = {name: first.setdefault(text, name) for name, text in sources.items()}
        sent = {name: text for text, name in first.items()}
        if not asked or not sent:
            return Checked(claims, {*sources}, {}), {}
        support = await self.support(asked, sent)
        by_name = names(asked)
        supported = {
            by_name[name]: frozenset(name for name in same if same[name] in by)
            for name, by in (value_of(support) or {}).items()
        }
        return Checked(claims, {*sources}, supported), {"claim_support": support}

    async def split(self, side: str, text: str) -> Claims:
        """The claims of a text; those of a reference stay as they are, also where an evaluation is repeated."""
        numbered = {f"sentence_{number}": said for number, said in enumerate(sentences(self.hide(text)), start=1)}
        call = Call(self.known["claims"], {"sentences": numbered}, 0 if side == "reference" else self.repeat)
        return await ask_for(self.model, call, partial(read_claims, sentences=len(numbered)))

    async def support(self, claims: list[str], sources: Mapping[str, str]) -> Support:
        """Which sources support each claim."""
        named = names(claims)
        call = Call(self.known["support"], {"sources": sources, "claims": named}, self.repeat)
        return await ask_for(self.model, call, partial(read_support, claims=named.keys(), sources=sources.keys()))


def _texts(case: Case) -> dict[str, str] | None:
    """Answer, reference and passages of a case by name, where there are such; None where it was not measured.

    Of a question that nothing answers the reference claims nothing.
    """
    refused = case["status"] == "sut_refusal"
    if not refused and (case["status"] not in SAID or not case["answer"]):
        return None
    answer = None if refused else case["answer"]
    reference = case.get("reference") if case.get("answerable") is not False else None
    passages = parts(case["context"], case.get("passage_starts"))
    texts = {"answer": answer, "reference": reference}
    texts |= {f"passage_{number}": text for number, text in enumerate(passages, start=1)}
    return {name: text for name, text in texts.items() if text and text.strip()}


def _pages(run: Run, cases: list[Case]) -> list[dict[str, str]]:
    """What stands on the pages that each case's system names, by what they are called among the sources."""
    texts = read_texts(run)
    hosts = hosts_of(texts)
    named = [named_pages(case, texts, hosts) or [] for case in cases]
    return [{label(number): page.text for number, page in enumerate(of) if page.text and not page.cut} for of in named]


def _statements(answer: str) -> list[Claim]:
    """The sentences of an answer, but for those that only name a page: «Подробнее: https://…»; nor is «1.» any."""
    found: list[Claim] = []
    numbers: list[Claim] = []
    for number, said in enumerate(sentences(answer), start=1):
        named = [*links(said)]
        if not named or len(WORD.findall(reduce(lambda text, one: text.replace(one, " "), named, said))) > NAMING:
            (found if any(map(str.isalpha, said)) else numbers).append(Claim(said, number))
    return found or numbers


def _verdicts(checked: Checked, case: Case) -> Verdicts:
    """Of a refusal the reference's claims are all missing in the answer, which takes no judge."""
    passages = sorted(name for name in checked.sources if name.startswith("passage_"))
    said, needed = ([claim.text for claim in checked.claims.get(side, ())] for side in SIDES)
    refused = case["status"] == "sut_refusal"
    return Verdicts(
        _against(checked, said, ["reference"])[:, 0],
        np.zeros(len(needed)) if refused else _against(checked, needed, ["answer"])[:, 0],
        _against(checked, said, passages),
        _against(checked, needed, passages),
    )


def _against(checked: Checked, claims: list[str], sources: list[str]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Which of the sources support each claim, (claims, sources); NaN without a verdict, or without the source."""
    found = np.full((len(claims), len(sources)), np.nan)
    for row, claim in enumerate(claims):
        if (by := checked.supported.get(claim)) is not None:
            found[row] = [float(name in by) if name in checked.sources else np.nan for name in sources]
    return found


class StoredClaim(TypedDict):
    """A claim as it is kept with its case."""

    of: str
    claim: str
    sentence: str | None
    supported_by: list[str] | None


def _stored(checked: Checked, case: Case, hide: Callable[[str], str]) -> list[StoredClaim]:
    """The claims as they are kept with the case: as the case has them, whatever the judge was shown."""
    said = {side: sentences(hide(case[side] or "")) for side in SIDES if side in checked.claims}

    def shown(text: str, side: str) -> str:
        return text if hide is str else restored(text, [case[side] or ""], own_key())

    return [
        {
            "of": side,
            "claim": shown(claim.text, side),
            "sentence": shown(said[side][claim.sentence - 1], side) if claim.sentence else None,
            "supported_by": None if (by := checked.supported.get(claim.text)) is None else _sorted(by - {side}),
        }
        for side, claims in checked.claims.items()
        for claim in claims
    ]


def _sorted(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (len(name), name))

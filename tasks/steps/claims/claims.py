"""Check claims: extract the claims of answer and reference, and find supporting texts; replies are parsed strictly."""

import asyncio
import hashlib
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from functools import partial, reduce
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from typing_extensions import TypedDict

from yarus.db.messages import Words
from yarus.db.tables import JsonObject
from yarus.metrics.claims import NAMES, Verdicts, claim_metrics
from yarus.tasks.cases.privacy.masking import load_own_key, mask, restore_originals
from yarus.tasks.cases.table import Case, set_columns
from yarus.tasks.cases.text import WORD_PATTERN, claim_key, split_context, split_sentences
from yarus.tasks.cases.vocabulary import ANSWERED_STATUSES
from yarus.tasks.evaluation.identity import effective_settings
from yarus.tasks.evaluation.repeats import first_repeat_number
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.evaluation.work_folder import read_texts
from yarus.tasks.models.calls import Call, Model
from yarus.tasks.models.progress import gather_cases
from yarus.tasks.models.prompts import Prompt, read_prompts
from yarus.tasks.models.verdicts import (
    MissingVerdict,
    Verdict,
    ask_for_verdict,
    build_parse_error,
    describe_failure,
    get_value,
    parse_list,
)
from yarus.tasks.steps.claims.pages import find_links, find_named_pages, list_hosts, page_label
from yarus.tasks.steps.judging.judge import add_verdicts
from yarus.tasks.steps.open_models import open_model

NAME_LENGTH = 4
"""Letters of a claim's name, unless more are needed to distinguish it."""


class Claim(NamedTuple):
    """One statement of a text."""

    text: str
    sentence: int | None
    """Number of its sentence, from 1 on; None if the judge names no existing one."""


ClaimsVerdict = Verdict[list[Claim]] | MissingVerdict
SupportingSources = dict[str, frozenset[str]]
"""Name of a claim -> its supporting sources; missing claims have no verdict."""
SupportVerdict = Verdict[SupportingSources] | MissingVerdict
NuggetVerdict = Verdict[dict[str, float]] | MissingVerdict
"""Name of a nugget -> how much of it the answer has; missing nuggets have no verdict."""
SUPPORT_SCORES = {"full": 1.0, "partial": 0.5, "none": 0.0}
H = TypeVar("H", bound=Hashable)


def parse_claims(text: str, sentences: int) -> ClaimsVerdict:
    """Parse `{"claims": [{"sentence": number, "claim": text}]}`; repeated claims count once.

    Args:
        text: the reply as received.
        sentences: how many the text has.

    Returns:
        The claims in their order, empty if the text has none. `parse_error` if any entry cannot be read: without it the
        text would seem to have fewer claims.
    """
    entries = parse_list(text, "claims")
    if isinstance(entries, MissingVerdict):
        return entries
    claims: dict[str, Claim] = {}
    for number, entry in enumerate(entries):
        text_of_claim = entry.get("claim")
        if not isinstance(text_of_claim, str) or not text_of_claim.strip():
            return build_parse_error(
                Words(
                    "claim {number} of {n_entries} is {said!r:.60}, not a text",
                    number=number,
                    n_entries=len(entries),
                    said=text_of_claim,
                )
            )
        sentence = entry.get("sentence")
        is_known = isinstance(sentence, int) and not isinstance(sentence, bool) and 1 <= sentence <= sentences
        claim = " ".join(text_of_claim.split())
        claims.setdefault(claim_key(claim), Claim(claim, sentence if is_known else None))
    return Verdict(list(claims.values()), "")


def parse_support(text: str, claims: Collection[str], sources: Collection[str]) -> SupportVerdict:
    """Parse `{"verdicts": [{"id": name, "supported_by": [names]}]}`.

    A claim has no verdict if it is missing, has two different ones, or names an unknown source.

    Args:
        text: the reply as received.
        claims, sources: their names.

    Returns:
        The claims that have a verdict; `parse_error` if none has.
    """

    def read_sources(entry: JsonObject) -> frozenset[str] | None:
        values = entry.get("supported_by")
        source_names = frozenset(map(_normalise_name, values)) if isinstance(values, list) else None
        return source_names if source_names is not None and source_names <= known_sources else None

    known_sources = set(sources)
    return _parse_verdicts(text, claims, read_sources, "claims")


def parse_nugget_support(text: str, nuggets: Collection[str]) -> NuggetVerdict:
    """Parse `{"verdicts": [{"id": name, "support": "full", "partial" or "none"}]}` as `parse_support` does.

    Args:
        text: the reply as received.
        nuggets: their names.

    Returns:
        1, 0.5 or 0 for each nugget with a verdict; `parse_error` if none has one.
    """

    def read_score(entry: JsonObject) -> float | None:
        support = entry.get("support")
        return SUPPORT_SCORES.get(support.strip().casefold()) if isinstance(support, str) else None

    return _parse_verdicts(text, nuggets, read_score, "nuggets")


def name_claims(claims: Iterable[str]) -> dict[str, str]:
    """Return short names for claims, name -> claim; they depend on content, not position, so that renumbering shows."""
    claims_by_name: dict[str, str] = {}
    for claim in claims:
        digest = hashlib.sha256(claim.encode("utf-8", "surrogatepass")).hexdigest()
        length = next(n for n in range(NAME_LENGTH, len(digest) + 1) if claims_by_name.get(digest[:n], claim) == claim)
        claims_by_name[digest[:length]] = claim
    return claims_by_name


def _parse_verdicts(
    text: str, requested: Collection[str], read_entry: Callable[[JsonObject], H | None], kind: str
) -> Verdict[dict[str, H]] | MissingVerdict:
    """Return the value of each requested name, if its entries agree."""
    entries = parse_list(text, "verdicts")
    if isinstance(entries, MissingVerdict):
        return entries
    values_by_name: dict[str, set[H | None]] = {}
    for entry in entries:
        if (name := _normalise_name(entry.get("id"))) in requested:
            values_by_name.setdefault(name, set()).add(read_entry(entry))
    agreed = {name: value for name, (value, *others) in values_by_name.items() if value is not None and not others}
    if requested and not agreed:
        return build_parse_error(Words("no verdict on any of {n_asked} {what}", n_asked=len(requested), what=kind))
    return Verdict(agreed, "")


def _normalise_name(value: Any) -> str:
    """Normalise a name as the judge returns it; it may copy the tag with its code, or turn digits into a number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:0{NAME_LENGTH}d}"
    return value.strip(" <>[]").partition("-")[0].casefold() if isinstance(value, str) else ""


VerdictsByPrompt = dict[str, Verdict[Any] | MissingVerdict]
SIDES = ("answer", "reference")
MAX_NAMING_WORDS = 3
"""Most words beside an address in a sentence that only refers to a page."""


class CheckedClaims(NamedTuple):
    """The claims of a case."""

    claims: dict[str, list[Claim]]
    """Claims of answer and reference, if extracted."""
    sources: set[str]
    """Sources that they were checked against: answer, reference, passages and named pages."""
    supported: dict[str, frozenset[str]]
    """Claim -> its supporting sources; missing claims have no verdict."""


async def check_claims(run: EvaluationRun, cases: pa.Table) -> pa.Table:
    """Add the claims with their supporting sources, and the metrics of claims, if requested.

    Answer and reference are split into claims. All claims of a case are checked in one call, against each other, the
    passages of the context and the pages that the system names. A reference is split once for all evaluations with this
    model and prompt. If only citations were requested, the answer's sentences are checked against the named pages.

    A refusal has no claims, and none of the reference's. If the judge fails, values are NULL and the case gets the
    status.
    """
    if not (run.config.claims or run.config.citations):
        return cases
    configuration = effective_settings(run)
    prompts_by_name, rows = read_prompts(configuration), cases.to_pylist()
    # Mask before texts are split: names are recognised by the words around them.
    mask_text = (
        partial(mask, key=load_own_key(), language=configuration.language) if configuration.mask_model_input else str
    )
    pages = _named_pages(run, rows) if run.config.citations is not None else [{} for _ in rows]
    async with open_model(run, "judge", configuration) as model:
        judge = _Judge(model, prompts_by_name, first_repeat_number(run.id, run.parameters), mask_text)
        ask = judge.claims if run.config.claims is not None else judge.citations
        results = await gather_cases(
            "check_claims", map(ask, rows, pages), lambda result: describe_failure(*result[1].values())
        )
    checked = [result for result, _ in results]
    cases = set_columns(
        add_verdicts(cases, [verdicts for _, verdicts in results]),
        claims=[result and _stored_claims(result, row, mask_text) for result, row in zip(checked, rows, strict=True)],
    )
    if run.config.claims is None:
        return cases
    metrics = claim_metrics([result and _metric_input(result, row) for result, row in zip(checked, rows, strict=True)])
    lacks_starts = [row.get("passage_starts") is None for row in rows]  # the starts of its passages are unknown
    metrics["context_precision"][lacks_starts] = np.nan
    return set_columns(cases, **{name: metrics[name] for name in NAMES})


class _Judge:
    """The judge of claims, with its prompts."""

    def __init__(self, model: Model, prompts: Mapping[str, Prompt], repeat: int, mask: Callable[[str], str]) -> None:
        self.model, self.prompts, self.repeat, self.mask = model, prompts, repeat, mask

    async def claims(self, case: Case, pages: Mapping[str, str]) -> tuple[CheckedClaims | None, VerdictsByPrompt]:
        """Return the claims of a case, None if there is nothing to check, and all verdicts they come from."""
        texts = _case_texts(case)
        if texts is None:
            return None, {}
        sides = {side: texts[side] for side in SIDES if side in texts}
        by_side = dict(zip(sides, await asyncio.gather(*(self.split(*side) for side in sides.items())), strict=True))
        verdicts: VerdictsByPrompt = {f"claims_of_{side}": verdict for side, verdict in by_side.items()}
        claims = {side: verdict.value for side, verdict in by_side.items() if isinstance(verdict, Verdict)}
        names = {side for side in SIDES if claims.get(SIDES[1 - SIDES.index(side)])} | (texts.keys() - {*SIDES})
        checked, support = await self.check(claims, {name: texts[name] for name in texts if name in names} | {**pages})
        return checked, verdicts | support

    async def citations(self, case: Case, pages: Mapping[str, str]) -> tuple[CheckedClaims | None, VerdictsByPrompt]:
        """Check the sentences of an answer, as its claims, against the pages that the system names."""
        if case["status"] not in ANSWERED_STATUSES or not case["answer"]:
            return None, {}
        return await self.check({"answer": _split_statements(self.mask(case["answer"]))}, pages)

    async def check(
        self, claims: dict[str, list[Claim]], sources: Mapping[str, str]
    ) -> tuple[CheckedClaims, VerdictsByPrompt]:
        """Find the supporting sources of claims; of sources with equal text one is sent."""
        claim_texts = [claim.text for side_claims in claims.values() for claim in side_claims]
        first_by_text: dict[str, str] = {}
        representative = {name: first_by_text.setdefault(text, name) for name, text in sources.items()}
        sent_sources = {name: text for text, name in first_by_text.items()}
        if not claim_texts or not sent_sources:
            return CheckedClaims(claims, {*sources}, {}), {}
        support = await self.support(claim_texts, sent_sources)
        by_name = name_claims(claim_texts)
        supported = {
            by_name[name]: frozenset(name for name in representative if representative[name] in supporting)
            for name, supporting in (get_value(support) or {}).items()
        }
        return CheckedClaims(claims, {*sources}, supported), {"claim_support": support}

    async def split(self, side: str, text: str) -> ClaimsVerdict:
        """Split a text into claims; those of a reference are stored, even if an evaluation is repeated."""
        sentences = {f"sentence_{n}": sentence for n, sentence in enumerate(split_sentences(self.mask(text)), start=1)}
        call = Call(self.prompts["claims"], {"sentences": sentences}, 0 if side == "reference" else self.repeat)
        return await ask_for_verdict(self.model, call, partial(parse_claims, sentences=len(sentences)))

    async def support(self, claims: list[str], sources: Mapping[str, str]) -> SupportVerdict:
        """Ask which sources support each claim."""
        claims_by_name = name_claims(claims)
        call = Call(self.prompts["support"], {"sources": sources, "claims": claims_by_name}, self.repeat)
        return await ask_for_verdict(
            self.model, call, partial(parse_support, claims=claims_by_name.keys(), sources=sources.keys())
        )


def _case_texts(case: Case) -> dict[str, str] | None:
    """Return the existing texts of a case by name: answer, reference and passages; None if it was not measured.

    The reference of an unanswerable question has no claims.
    """
    is_refusal = case["status"] == "sut_refusal"
    if not is_refusal and (case["status"] not in ANSWERED_STATUSES or not case["answer"]):
        return None
    answer = None if is_refusal else case["answer"]
    reference = case.get("reference") if case.get("answerable") is not False else None
    passages = split_context(case["context"], case.get("passage_starts"))
    texts = {"answer": answer, "reference": reference}
    texts |= {f"passage_{number}": text for number, text in enumerate(passages, start=1)}
    return {name: text for name, text in texts.items() if text and text.strip()}


def _named_pages(run: EvaluationRun, cases: list[Case]) -> list[dict[str, str]]:
    """Return the texts of the pages that each case's system names, by source name."""
    texts = read_texts(run)
    hosts = list_hosts(texts)
    pages_by_case = [find_named_pages(case, texts, hosts) or [] for case in cases]
    return [
        {page_label(number): page.text for number, page in enumerate(pages) if page.text and not page.cut}
        for pages in pages_by_case
    ]


def _split_statements(answer: str) -> list[Claim]:
    """Return the sentences of an answer, without those that only name a page, and without bare numbers such as «1.»."""
    statements: list[Claim] = []
    numbers: list[Claim] = []
    for number, sentence in enumerate(split_sentences(answer), start=1):
        addresses = [*find_links(sentence)]
        if (
            not addresses
            or len(WORD_PATTERN.findall(reduce(lambda text, address: text.replace(address, " "), addresses, sentence)))
            > MAX_NAMING_WORDS
        ):
            (statements if any(map(str.isalpha, sentence)) else numbers).append(Claim(sentence, number))
    return statements or numbers


def _metric_input(checked: CheckedClaims, case: Case) -> Verdicts:
    """Return the input of claim metrics; a refusal lacks all of the reference's claims, without asking the judge."""
    passages = sorted(name for name in checked.sources if name.startswith("passage_"))
    answer_claims, reference_claims = ([claim.text for claim in checked.claims.get(side, ())] for side in SIDES)
    is_refusal = case["status"] == "sut_refusal"
    return Verdicts(
        _matrix(checked, answer_claims, ["reference"])[:, 0],
        np.zeros(len(reference_claims)) if is_refusal else _matrix(checked, reference_claims, ["answer"])[:, 0],
        _matrix(checked, answer_claims, passages),
        _matrix(checked, reference_claims, passages),
    )


def _matrix(checked: CheckedClaims, claims: list[str], sources: list[str]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return which sources support each claim, (claims, sources); NaN without a verdict, or without the source."""
    matrix = np.full((len(claims), len(sources)), np.nan)
    for row, claim in enumerate(claims):
        if (supporting := checked.supported.get(claim)) is not None:
            matrix[row] = [float(name in supporting) if name in checked.sources else np.nan for name in sources]
    return matrix


class StoredClaim(TypedDict):
    """A claim as stored with its case."""

    of: str
    claim: str
    sentence: str | None
    supported_by: list[str] | None


def _stored_claims(checked: CheckedClaims, case: Case, mask_text: Callable[[str], str]) -> list[StoredClaim]:
    """Return the claims as stored with the case: in the case's own words, though the judge saw masked text."""
    sentences_by_side = {side: split_sentences(mask_text(case[side] or "")) for side in SIDES if side in checked.claims}

    def restore(text: str, side: str) -> str:
        return text if mask_text is str else restore_originals(text, [case[side] or ""], load_own_key())

    return [
        {
            "of": side,
            "claim": restore(claim.text, side),
            "sentence": restore(sentences_by_side[side][claim.sentence - 1], side) if claim.sentence else None,
            "supported_by": None
            if (supporting := checked.supported.get(claim.text)) is None
            else _sort_names(supporting - {side}),
        }
        for side, claims in checked.claims.items()
        for claim in claims
    ]


def _sort_names(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (len(name), name))

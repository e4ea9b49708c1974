"""The system under test answers: our own retriever and generator, a service, or a callable."""

import asyncio
import threading

import pyarrow as pa

from yarus.db.errors import InputError
from yarus.db.retrieval_sets import page_of_document
from yarus.db.urls import canonical_url
from yarus.db.words import Words
from yarus.tasks.cases.outcomes import Done, with_failures, with_outcomes
from yarus.tasks.cases.ranked.own_documents import own_of
from yarus.tasks.cases.refusals import declined
from yarus.tasks.cases.table import with_columns
from yarus.tasks.cases.text import BETWEEN, fit, starts
from yarus.tasks.evaluation.identity import configured
from yarus.tasks.evaluation.run import Run
from yarus.tasks.evaluation.work_folder import read_stored_corpus
from yarus.tasks.models.cost.prices import cost_usd
from yarus.tasks.steps.generate import generate
from yarus.tasks.steps.retrieve import TIMED, rank
from yarus.tasks.steps.reuse_answers import reuse_answers, stored
from yarus.tasks.systems.sut import Answered, System, system
from yarus.tasks.systems.user_code import era


async def answer_ideal(run: Run, cases: pa.Table) -> pa.Table:
    """Adds our generator's answers from the ideal context, or those that were given before."""
    if stored(run):
        return await asyncio.to_thread(reuse_answers, run, cases)
    return await generate(run, cases)


async def answer(run: Run, cases: pa.Table) -> pa.Table:
    """Adds what the system retrieved and answered, and how long both took; its failure makes the case `sut_error`."""
    if stored(run):
        return await asyncio.to_thread(reuse_answers, run, cases)
    return await (_ours if run.resolved["sut"] == "local" else _theirs)(run, cases)


async def _ours(run: Run, cases: pa.Table) -> pa.Table:
    """Our retriever over the chunk table, then our generator on the texts that it found."""
    questions, k = cases["question"].to_pylist(), run.resolved["k"]
    rankings = await asyncio.to_thread(
        rank, run, questions, k, unit="chunk", timed=-(-TIMED // run.n_batches), own=own_of(cases)
    )
    texts = await asyncio.to_thread(_texts, run)
    tokens = run.resolved["context_tokens"]
    # An id that is not in the corpus has no text to answer from; it stays in the ranking, and is noted at the end.
    passages = [[texts[chunk][0] for chunk in ranking.ids if chunk in texts] for ranking in rankings]
    contexts = [fit(of, tokens) for of in passages]
    by_page = run.resolved["unit"] == "page"
    ids = [[_page(texts, chunk) if by_page else chunk for chunk in ranking.ids] for ranking in rankings]
    failed = [ranking.error is not None for ranking in rankings]
    errors = {number: ranking.error for number, ranking in enumerate(rankings) if ranking.error is not None}
    cases = with_columns(
        with_failures(cases, errors),
        retrieved=[None if fail else list(dict.fromkeys(found)) for found, fail in zip(ids, failed, strict=True)],
        retrieval_latency_ms=[ranking.latency_ms for ranking in rankings],
        context=[context or None for context, _ in contexts],
        passage_starts=[starts(of, context) for of, (context, _) in zip(passages, contexts, strict=True)],
        truncated=[cut for _, cut in contexts],
    )
    cases = await generate(run, cases)
    both = zip(cases["retrieval_latency_ms"].to_pylist(), cases["latency_ms"].to_pylist(), strict=True)
    return with_columns(cases, latency_ms=[None if None in pair else sum(pair) for pair in both])


async def _theirs(run: Run, cases: pa.Table) -> pa.Table:
    asked = await asyncio.to_thread(_opened, run)
    dialogs = cases["dialog"].to_pylist() if "dialog" in cases.column_names else ()
    found = await asked.answers(cases["question"].to_pylist(), dialogs)
    configuration = configured(run)
    refusals, price = configuration.refusals, configuration.prices.get(configuration.sut_service.model or "")
    contexts = [BETWEEN.join(said.contexts or ()) for said in found]
    if dialogs and run.resolved.get("takes_history"):
        cases = with_columns(cases, history=[list(said.history) or None for said in found])
    return with_columns(
        with_outcomes(cases, [_answered(said, refusals) for said in found]),
        retrieved=[_pages(said, own) for said, own in zip(found, own_of(cases), strict=True)],
        context=[context or None for context in contexts],
        passage_starts=[starts(said.contexts or [], whole) for said, whole in zip(found, contexts, strict=True)],
        answer=[said.text for said in found],
        path=[said.path for said in found],
        latency_ms=[said.latency_ms for said in found],
        first_token_ms=[said.first_token_ms for said in found],
        tokens_in=[said.tokens_in for said in found],
        tokens_out=[said.tokens_out for said in found],
        cost_usd=[cost_usd(price, said.tokens_in, said.tokens_out) for said in found],
    )


def _answered(said: Answered, refusals: list[str]) -> Done:
    if said.text is None:
        return Done("failed", said.error)
    why = declined(said.text, refusals, said.path)
    return Done("refused", why) if why else Done("answered")


def _pages(said: Answered, own: str | None) -> list[str] | None:
    """The pages that the system named, best first, without the question itself; None if it failed or does not say."""
    if said.urls is None:
        return None
    pages = dict.fromkeys(page for url in said.urls if (page := canonical_url(url)))
    return [page for page in pages if own is None or page != page_of_document(own)]


def _texts(run: Run) -> dict[str, tuple[str, str]]:
    """Text and page of every chunk."""
    corpus = read_stored_corpus(run)
    pages = [canonical_url(url) or chunk for chunk, url in zip(corpus.ids, corpus.urls, strict=True)]
    return dict(zip(corpus.ids, zip(corpus.texts, pages, strict=True), strict=True))


def _page(texts: dict[str, tuple[str, str]], chunk: str) -> str:
    return texts[chunk][1] if chunk in texts else canonical_url(chunk) or chunk


def _opened(run: Run) -> System:
    """The system, one for all batches: a callable need not bear two threads, a service keeps its connections."""
    with _OPENING:
        place = run.id, era()
        if place not in _OPEN:
            _OPEN.clear()
            found = system(run.resolved["sut"], configured(run))
            if run.resolved.get("takes_history", found.takes_history) != found.takes_history:
                then = Words("took no history") if found.takes_history else Words("took history")
                raise InputError(
                    "the system {sut!r} {then} when evaluation {evaluation} began, and now it is otherwise: let it be "
                    "as it was, or run the tier anew",
                    sut=run.resolved["sut"],
                    then=then,
                    evaluation=run.id,
                )
            _OPEN[place] = found
        return _OPEN[place]


_OPENING = threading.Lock()
_OPEN: dict[tuple[str, int], System] = {}

"""The system under test answers: our own retriever and generator, a service, or a callable."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from db.urls import canonical_url
from tasks.cases import with_columns
from tasks.generate import configured, generate, is_refusal
from tasks.load import read_stored_corpus
from tasks.load_answers import fit
from tasks.parameters import Tier3
from tasks.retrieve import TIMED, rank
from tasks.run import Run
from tasks.systems import Answered, Ask, asker, checked


async def answer(run: Run, cases: pa.Table) -> pa.Table:
    """Adds what the system retrieved and answered, and how long both took; its failure makes the case `sut_error`."""
    return await (_ours if run.resolved["sut"] == "local" else _theirs)(run, cases)


async def _ours(run: Run, cases: pa.Table) -> pa.Table:
    """Our retriever over the chunk table, then our generator on the texts that it found."""
    parameters = run.parameters
    if not isinstance(parameters, Tier3):
        raise TypeError(f"{run.tier} asks no system")
    questions, k = cases["question"].to_pylist(), run.resolved["k"]
    rankings = await asyncio.to_thread(rank, run, questions, k, unit="chunk", timed=-(-TIMED // run.n_batches))
    texts = await asyncio.to_thread(_texts, run)
    contexts = [fit([texts[chunk][0] for chunk in ranking.ids], parameters.context_tokens) for ranking in rankings]
    ids = [
        [texts[chunk][1] if run.resolved["unit"] == "page" else chunk for chunk in ranking.ids] for ranking in rankings
    ]
    failed = [ranking.error is not None for ranking in rankings]
    cases = with_columns(
        cases,
        status=[
            "sut_error" if fail and status == "ok" else status
            for fail, status in zip(failed, cases["status"].to_pylist(), strict=True)
        ],
        reason=[
            ranking.error if fail else reason
            for ranking, fail, reason in zip(rankings, failed, cases["reason"].to_pylist(), strict=True)
        ],
        retrieved=[None if fail else list(dict.fromkeys(found)) for found, fail in zip(ids, failed, strict=True)],
        retrieval_latency_ms=[ranking.latency_ms for ranking in rankings],
        context=[context for context, _ in contexts],
        truncated=[cut for _, cut in contexts],
    )
    cases = await generate(run, cases)
    both = zip(cases["retrieval_latency_ms"].to_pylist(), cases["latency_ms"].to_pylist(), strict=True)
    return with_columns(cases, latency_ms=[None if None in pair else sum(pair) for pair in both])


async def _theirs(run: Run, cases: pa.Table) -> pa.Table:
    configuration = configured(run)
    ask, concurrency = asker(run.resolved["sut"], configuration.sut_service)
    questions = cases["question"].to_pylist()
    with ThreadPoolExecutor(concurrency) as pool:
        loop = asyncio.get_running_loop()
        found = await asyncio.gather(*(loop.run_in_executor(pool, _ask, ask, question) for question in questions))
    statuses, reasons = cases["status"].to_pylist(), cases["reason"].to_pylist()
    for number, said in enumerate(found):
        if statuses[number] == "ok" and said.text is None:
            statuses[number], reasons[number] = "sut_error", said.error
        elif statuses[number] == "ok" and said.text is not None and is_refusal(said.text, configuration.refusals):
            statuses[number], reasons[number] = "sut_refusal", "the system declined to answer"
    return with_columns(
        cases,
        status=statuses,
        reason=reasons,
        retrieved=[_pages(said) for said in found],
        context=["\n\n".join(said.contexts) or None for said in found],
        answer=[said.text for said in found],
        latency_ms=[None if said.error else said.latency_ms for said in found],
        tokens_in=[None] * len(found),
        tokens_out=[None] * len(found),
        cost_usd=[None] * len(found),
    )


def _ask(ask: Ask, question: str) -> Answered:
    start = time.perf_counter()
    try:
        text, urls, contexts = checked(ask(question))
    except Exception as error:  # noqa: BLE001 - a system that is not ours may fail in any way; it becomes a status
        return Answered(None, [], [], 0.0, f"{type(error).__name__}: {error}")
    return Answered(text, urls, contexts, (time.perf_counter() - start) * 1_000)


def _pages(said: Answered) -> list[str] | None:
    """The pages that the system named, best first; None where it failed."""
    if said.error is not None:
        return None
    return list(dict.fromkeys(page for url in said.urls if (page := canonical_url(url))))


def _texts(run: Run) -> dict[str, tuple[str, str]]:
    """Text and page of every chunk."""
    corpus = read_stored_corpus(run)
    pages = [canonical_url(url) or chunk for chunk, url in zip(corpus.ids, corpus.urls, strict=True)]
    return dict(zip(corpus.ids, zip(corpus.texts, pages, strict=True), strict=True))

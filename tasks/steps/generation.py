"""The system under test answers: our own retriever and generator, a service, or a callable."""

import asyncio
from collections.abc import Callable
from itertools import count

import pyarrow as pa
from typing_extensions import TypedDict

from yarus.db.errors import InputError
from yarus.db.retrieval_sets import page_of_document
from yarus.db.urls import canonical_url
from yarus.db.words import Words
from yarus.tasks.cases.outcomes import Done, declined, fail, with_failures, with_outcomes
from yarus.tasks.cases.own_documents import own_of
from yarus.tasks.cases.table import rows_of, values_of, with_columns
from yarus.tasks.cases.text import BETWEEN, fit, starts
from yarus.tasks.config.parameters import Tier2
from yarus.tasks.evaluation.identity import configured
from yarus.tasks.evaluation.repeats import first_repeat
from yarus.tasks.evaluation.run import Run
from yarus.tasks.evaluation.work_folder import read_stored_corpus
from yarus.tasks.models.calls import Call, Reply, RoleName
from yarus.tasks.models.prices import cost_usd
from yarus.tasks.models.progress import tick
from yarus.tasks.models.prompts import Prompt, prompts
from yarus.tasks.steps.opened import open_model, open_system
from yarus.tasks.steps.recorded import reuse_answers, stored
from yarus.tasks.steps.search import TIMED, rank
from yarus.tasks.systems.sut import Answered, System


async def generate(run: Run, cases: pa.Table) -> pa.Table:
    """Adds `answer` and what it cost; a generator that fails makes a `sut_error`, one that declines a `sut_refusal`."""
    configuration = configured(run)
    prompt = prompts(configuration)["generation"]
    parameters = run.parameters
    repeats, logprobs = (parameters.repeats, parameters.logprobs) if isinstance(parameters, Tier2) else (1, False)
    wanted = [n for n, status in enumerate(values_of(cases, "status")) if status == "ok"]
    first = first_repeat(run.id, parameters)
    rows = cases.take(pa.array(wanted, pa.int64())).to_pylist()
    asked = [(case, first + repeat) for case in rows for repeat in range(repeats)]
    calls = [_call(prompt, case, repeat, logprobs) for case, repeat in asked]
    async with open_model(run, "generator", configuration) as model:
        replies = await model.complete(calls, _told("answer_ideal" if run.tier == "tier2" else "answer", repeats))
    by_case = {number: replies[place * repeats : (place + 1) * repeats] for place, number in enumerate(wanted)}
    return _with_answers(cases, by_case, configuration.refusals)


def _told(step: str, repeats: int) -> Callable[[Reply], None]:
    """Counts a case when as many replies came as are asked of it."""
    come = count(1)

    def told(reply: Reply) -> None:
        if next(come) % repeats == 0:
            tick(step, None if reply.status == "ok" else reply.reason)

    return told


def totals(replies: list[Reply], before: int | float | None, name: str) -> int | float | None:
    """Tokens or money of the replies that were bought now, added to what was there; None where nobody counted."""
    spent = [getattr(reply, name) for reply in replies if not reply.from_store]
    counted = [value for value in (*spent, before) if value is not None]
    return sum(counted) if counted else None


class RecordedCall(TypedDict):
    """A call as the table of cases keeps it, in its column `calls`."""

    role: RoleName
    prompt: str
    repeat: int
    model: str | None
    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    latency_ms: float | None
    stored: bool
    finish_reason: str | None
    reply: str | None


def recorded(role: RoleName, prompt: str, repeat: int, reply: Reply) -> RecordedCall:
    """A call as the table of cases keeps it; a stand-in's 0 milliseconds are not measured.

    Args:
        role: of the model.
        prompt: its name, or that of the metric that it is asked for.
        repeat: how often the same had been asked before.
        reply: what came back.
    """
    shown = role == "generator" and reply.status == "ok" and reply.raw.strip() != reply.text.strip()
    return {
        "role": role,
        "prompt": prompt,
        "repeat": repeat,
        "model": reply.served_model or reply.requested_model or None,
        "tokens_in": reply.tokens_in,
        "tokens_out": reply.tokens_out,
        "cost_usd": reply.cost_usd,
        "latency_ms": reply.latency_ms or None,
        "stored": reply.from_store,
        "finish_reason": reply.finish_reason,
        "reply": reply.raw if shown else None,
    }


def _call(prompt: Prompt, case: dict[str, str], repeat: int, logprobs: bool) -> Call:
    return Call(prompt, {"question": case["question"], "context": case["context"] or ""}, repeat, logprobs=logprobs)


def _with_answers(cases: pa.Table, by_case: dict[int, list[Reply]], refusals: list[str]) -> pa.Table:
    done = [_generated(by_case[number][0], refusals) if number in by_case else Done() for number in range(len(cases))]
    first = ((number, replies[0]) for number, replies in by_case.items())
    unasked = (
        (number, reply.status, reply.reason)
        for number, reply in first
        if reply.status != "ok" and reply.status != "error"
    )
    cases = fail(with_outcomes(cases, done), unasked)
    every = [by_case.get(number, []) for number in range(len(cases))]
    ok = [[reply for reply in replies if reply.status == "ok"] for replies in every]
    return with_columns(
        cases,
        answer=[
            replies[0].text if of.outcome in ("answered", "refused") else None
            for replies, of in zip(every, done, strict=True)
        ],
        answers=[[reply.text for reply in replies] if len(replies) > 1 else None for replies in ok],
        logprobs=[replies[0].logprobs if replies else None for replies in every],
        latency_ms=[replies[0].latency_ms if replies else None for replies in every],
        tokens_in=[totals(replies, None, "tokens_in") for replies in every],
        tokens_out=[totals(replies, None, "tokens_out") for replies in every],
        cost_usd=[totals(replies, None, "cost_usd") for replies in every],
        calls=[[recorded("generator", "generation", n, reply) for n, reply in enumerate(replies)] for replies in every],
    )


def _generated(reply: Reply, refusals: list[str]) -> Done:
    if reply.status == "error":
        return Done("failed", reply.reason)
    if reply.status != "ok":  # it was not asked
        return Done()
    if reply.truncated and not reply.text.strip():
        return Done("failed", Words("cut off before the answer (YARUS_GENERATOR__MAX_TOKENS)"))
    why = declined(reply.text, refusals)
    return Done("refused", why) if why else Done("answered")


async def answer_ideal(run: Run, cases: pa.Table) -> pa.Table:
    """Adds our generator's answers from the ideal context, or those that were given before."""
    if stored(run):
        return await asyncio.to_thread(reuse_answers, run, cases)
    return await generate(run, cases)


async def answer(run: Run, cases: pa.Table) -> pa.Table:
    """Adds what the system retrieved and answered, and how long both took; its failure makes the case `sut_error`."""
    if stored(run):
        return await asyncio.to_thread(reuse_answers, run, cases)
    return await (_ours if run.config.sut == "local" else _theirs)(run, cases)


async def _ours(run: Run, cases: pa.Table) -> pa.Table:
    """Our retriever over the chunk table, then our generator on the texts that it found."""
    questions, k = values_of(cases, "question"), run.config.k
    rankings = await asyncio.to_thread(
        rank, run, questions, k, unit="chunk", timed=-(-TIMED // run.n_batches), own=own_of(cases)
    )
    texts = await asyncio.to_thread(_texts, run)
    tokens = run.config.context_tokens
    # An id that is not in the corpus has no text to answer from; it stays in the ranking, and is noted at the end.
    passages = [[texts[chunk][0] for chunk in ranking.ids if chunk in texts] for ranking in rankings]
    contexts = [fit(of, tokens) for of in passages]
    by_page = run.config.unit == "page"
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
    both = rows_of(cases, "retrieval_latency_ms", "latency_ms")
    return with_columns(cases, latency_ms=[None if None in pair else sum(pair) for pair in both])


async def _theirs(run: Run, cases: pa.Table) -> pa.Table:
    asked = await asyncio.to_thread(_opened, run)
    dialogs = values_of(cases, "dialog") if "dialog" in cases.column_names else ()
    found = await asked.answers(values_of(cases, "question"), dialogs)
    configuration = configured(run)
    refusals, price = configuration.refusals, configuration.prices.get(configuration.sut_service.model or "")
    contexts = [BETWEEN.join(said.contexts or ()) for said in found]
    if dialogs and run.config.takes_history:
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
    """The system under test, as it was when the evaluation began."""
    found = open_system(run, run.config.sut, configured(run))
    if run.config.takes_history not in (None, found.takes_history):
        then = Words("took no history") if found.takes_history else Words("took history")
        raise InputError(
            "the system {sut!r} {then} when evaluation {evaluation} began, and now it is otherwise: let it be "
            "as it was, or run the tier anew",
            sut=run.config.sut,
            then=then,
            evaluation=run.id,
        )
    return found

"""Scoring answers against references, text by text: no model but the measuring embedder."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from yarus.metrics import answers, embedding, text
from yarus.tasks.cases.outcomes import fail
from yarus.tasks.cases.table import rows_of, values_of, with_columns
from yarus.tasks.config.connections import database
from yarus.tasks.evaluation.run import Run
from yarus.tasks.models.embedding.cache import embed_each
from yarus.tasks.models.embedding.embedders import embedder, measuring_embedder
from yarus.tasks.models.embedding.parts import Vectors

ROUNDING = 1e-6
PAIRS_AT_ONCE = 500  # embedded, so that few vectors are in memory


def score_texts(run: Run, cases: pa.Table) -> pa.Table:
    """Adds the text metrics; NULL without an answer or a reference. A refusal is an answer like any other here."""
    hypotheses, references = values_of(cases, "answer"), values_of(cases, "reference")
    rouge = {f"rouge{n}_f": getattr(text, f"rouge{n}")(hypotheses, references) for n in ("1", "2", "L")}
    cases = with_columns(
        cases,
        **rouge,
        bleu=100 * text.bleu(hypotheses, references),
        chrf=100 * text.chrf(hypotheses, references),
        wer=text.wer(hypotheses, references),
        string_similarity=text.string_similarity(hypotheses, references),
    )
    if "logprobs" in cases.column_names:
        perplexity = text.perplexity([_logprobs(given) for given in values_of(cases, "logprobs")])
        # A token of probability 0 (servers write -9999) makes it infinite, which no mean survives: not measured.
        cases = with_columns(cases, perplexity=np.where(np.isfinite(perplexity), perplexity, np.nan))
    return cases


def _logprobs(given: list[float] | None) -> list[float] | None:
    """Log-probabilities as a server gave them, whose rounding may lead a little above 0; None where one is none."""
    if given is None or not all(value <= ROUNDING for value in given):  # NaN is no smaller either
        return None
    return [min(value, 0.0) for value in given]


def score_repeats(run: Run, cases: pa.Table) -> pa.Table:
    """Adds how alike repeated answers are; NULL where there is one answer, or the embedder fails at one of them."""
    repeated = [said or [] for said in values_of(cases, "answers")]
    owners = [number for number, said in enumerate(repeated) for _ in said]
    consistency = np.full(len(cases), np.nan)
    if owners:
        vectors, wrong = _vectors([answer for said in repeated for answer in said])
        failed = {owners[number]: why for number, why in wrong.items()}
        cases = _failed(cases, failed.items(), "response_semantic_consistency")
        usable = (np.linalg.norm(vectors, axis=1) > 0) & ~np.isin(owners, list(failed))
        kept = [owner for owner, use in zip(owners, usable, strict=True) if use]
        consistency[list(dict.fromkeys(kept))] = embedding.cluster_similarities(vectors[usable], kept)
    return with_columns(
        cases,
        response_exact_match_rate=answers.exact_match([said if len(said) > 1 else [] for said in repeated]),
        response_semantic_consistency=consistency,
    )


def score_similarity(run: Run, cases: pa.Table) -> pa.Table:
    """Adds the cosine of answer and reference; NULL where the embedder fails, which makes the case's status."""
    pairs = list(rows_of(cases, "answer", "reference"))
    both = [number for number, pair in enumerate(pairs) if all(pair)]
    similarity = np.full(len(cases), np.nan)
    for start in range(0, len(both), PAIRS_AT_ONCE):
        some = both[start : start + PAIRS_AT_ONCE]
        vectors, wrong = _vectors([side for number in some for side in pairs[number]])
        failed = ((some[number // 2], why) for number, why in wrong.items())
        cases = _failed(cases, failed, "semantic_similarity")
        similarity[some] = answers.semantic_similarity(vectors[0::2], vectors[1::2])
    return with_columns(cases, semantic_similarity=similarity)


def _failed(cases: pa.Table, failed: Iterable[tuple[int, str]], metric: str) -> pa.Table:
    """The cases, with those at which the measuring embedder failed marked so: it judges, and was unable to."""
    return fail(cases, ((number, "judge_error", f"{metric}: embedder: {why}") for number, why in failed))


def _vectors(texts: list[str]) -> tuple[Vectors, dict[int, str]]:
    return embed_each(texts, embedder(measuring_embedder()), database())

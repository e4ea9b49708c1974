"""Score answers against references by text; the only model is the measuring embedder."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from yarus.metrics import answers, embedding, text
from yarus.tasks.cases.outcomes import set_failures
from yarus.tasks.cases.table import column_values, iterate_rows, set_columns
from yarus.tasks.config.connections import database
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.models.embedding.cache import embed_texts_with_failures
from yarus.tasks.models.embedding.embedders import get_embedder, get_measuring_embedder_name
from yarus.tasks.models.embedding.partial_results import Vectors

ROUNDING = 1e-6
PAIRS_AT_ONCE = 500  # embedded, so that few vectors are in memory


def score_texts(run: EvaluationRun, cases: pa.Table) -> pa.Table:
    """Add the text metrics; NULL without an answer or a reference. A refusal counts as an answer here."""
    hypotheses, references = column_values(cases, "answer"), column_values(cases, "reference")
    rouge = {f"rouge{n}_f": getattr(text, f"rouge{n}")(hypotheses, references) for n in ("1", "2", "L")}
    cases = set_columns(
        cases,
        **rouge,
        bleu=100 * text.bleu(hypotheses, references),
        chrf=100 * text.chrf(hypotheses, references),
        wer=text.wer(hypotheses, references),
        string_similarity=text.string_similarity(hypotheses, references),
    )
    if "logprobs" in cases.column_names:
        perplexity = text.perplexity([_clip_logprobs(values) for values in column_values(cases, "logprobs")])
        # A token of probability 0 (servers write -9999) makes it infinite, and so any mean: not measured.
        cases = set_columns(cases, perplexity=np.where(np.isfinite(perplexity), perplexity, np.nan))
    return cases


def _clip_logprobs(logprobs: list[float] | None) -> list[float] | None:
    """Clip log-probabilities at 0, since servers round; None if one is clearly positive or NaN."""
    if logprobs is None or not all(value <= ROUNDING for value in logprobs):  # false for NaN too
        return None
    return [min(value, 0.0) for value in logprobs]


def score_repeats(run: EvaluationRun, cases: pa.Table) -> pa.Table:
    """Add the similarity of repeated answers; NULL for a single answer, or if the embedder fails at one of them."""
    repeated = [texts or [] for texts in column_values(cases, "answers")]
    owners = [number for number, texts in enumerate(repeated) for _ in texts]
    consistency = np.full(len(cases), np.nan)
    if owners:
        vectors, errors = _embed_texts([answer for texts in repeated for answer in texts])
        failed = {owners[number]: error for number, error in errors.items()}
        cases = _mark_failed(cases, failed.items(), "response_semantic_consistency")
        is_usable = (np.linalg.norm(vectors, axis=1) > 0) & ~np.isin(owners, list(failed))
        used_owners = [owner for owner, is_used in zip(owners, is_usable, strict=True) if is_used]
        consistency[list(dict.fromkeys(used_owners))] = embedding.cluster_similarities(vectors[is_usable], used_owners)
    return set_columns(
        cases,
        response_exact_match_rate=answers.exact_match([texts if len(texts) > 1 else [] for texts in repeated]),
        response_semantic_consistency=consistency,
    )


def score_similarity(run: EvaluationRun, cases: pa.Table) -> pa.Table:
    """Add the cosine of answer and reference; NULL if the embedder fails, which sets the case's status."""
    pairs = list(iterate_rows(cases, "answer", "reference"))
    complete = [number for number, pair in enumerate(pairs) if all(pair)]
    similarity = np.full(len(cases), np.nan)
    for start in range(0, len(complete), PAIRS_AT_ONCE):
        portion = complete[start : start + PAIRS_AT_ONCE]
        vectors, errors = _embed_texts([side for number in portion for side in pairs[number]])
        failures = ((portion[number // 2], error) for number, error in errors.items())
        cases = _mark_failed(cases, failures, "semantic_similarity")
        similarity[portion] = answers.semantic_similarity(vectors[0::2], vectors[1::2])
    return set_columns(cases, semantic_similarity=similarity)


def _mark_failed(cases: pa.Table, failures: Iterable[tuple[int, str]], metric: str) -> pa.Table:
    """Mark cases at which the measuring embedder failed: it acts as a judge, so they are judge errors."""
    return set_failures(cases, ((number, "judge_error", f"{metric}: embedder: {error}") for number, error in failures))


def _embed_texts(texts: list[str]) -> tuple[Vectors, dict[int, str]]:
    return embed_texts_with_failures(texts, get_embedder(get_measuring_embedder_name()), database())

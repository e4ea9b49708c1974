"""Scoring the facts of answers that rules find: what the context supports, and what of the reference is there."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from yarus.metrics import facts
from yarus.tasks.cases.privacy.masking import mask, own_key, own_pattern
from yarus.tasks.cases.table import Case, floats, values_of, with_columns
from yarus.tasks.cases.text import BETWEEN
from yarus.tasks.evaluation.identity import configured
from yarus.tasks.evaluation.run import Run
from yarus.tasks.steps.claims.pages import links

Texts = list[str | None]


def score_facts(run: Run, cases: pa.Table) -> pa.Table:
    """Adds the answers' unsupported facts and the metrics of facts; NULL where there is nothing to measure.

    A refusal states nothing that a context should support, and no context, or an empty one, supports nothing and belies
    nothing, as for faithfulness. Of the reference's facts a refusal has none. What only repeats the question is neither
    made up nor right because of that: it is left out, and so is the address of a page that was retrieved.
    """
    needed = ("answer", "outcome", "context", "question", "retrieved")
    rows = cases.select([name for name in needed if name in cases.column_names]).to_pylist()
    answers = blanked(row["answer"] for row in rows)
    contexts = [row["context"] or None for row in rows]
    if run.tier == "judge_pipeline":  # what was cut off its page may have been what the logged answer was made from
        contexts = [None if cut else text for text, cut in zip(contexts, values_of(cases, "truncated"), strict=True)]
    refused = (row.get("outcome") == "refused" for row in rows)
    stated = [None if refusal else answer for answer, refusal in zip(answers, refused, strict=True)]
    held = facts.held_against(stated, contexts, aside=[_aside(row) for row in rows])
    found = facts.lost(held)
    rate = np.array([np.nan if some is None else bool(some) for some in found], np.float64)
    if run.tier == "judge_pipeline":  # its gate answers for what it showed
        rate[floats(cases, "decision") != 1] = np.nan
    cases = with_columns(
        cases,
        unsupported_facts=[None if some is None else [fact._asdict() for fact in some] for some in found],
        unsupported_fact_rate=rate,
        fact_precision=facts.shares(held),
    )
    if "reference" not in cases.column_names:
        return cases
    references: Texts = values_of(cases, "reference")
    if configured(run).mask_calls:  # no model was sent this personal data, so no answer can have it
        key, language = own_key(), configured(run).language
        references = blanked(text and mask(text, key, language) for text in references)
    return with_columns(cases, fact_recall=facts.fact_recall(answers, references))


def _aside(row: Case) -> str:
    """What is nobody's own fact: the question's, and the addresses in the answer of pages that were retrieved."""
    known = [text for text, page in links(row["answer"] or "").items() if page in (row.get("retrieved") or ())]
    return BETWEEN.join((row["question"], *known))


def blanked(texts: Iterable[str | None]) -> Texts:
    """Texts of the same length without our pseudonyms, which models are sent and repeat: their digits are no facts."""
    blank = own_pattern()
    return [
        text if text is None or "[" not in text else blank.sub(lambda one: " " * len(one[0]), text) for text in texts
    ]

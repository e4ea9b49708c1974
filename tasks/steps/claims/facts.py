"""Score the facts of answers that rules find: support by the context, and recall of the reference's facts."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from yarus.metrics import facts
from yarus.tasks.cases.privacy.masking import load_own_key, mask, pseudonym_pattern
from yarus.tasks.cases.table import Case, column_values, float_column, set_columns
from yarus.tasks.cases.text import CONTEXT_SEPARATOR
from yarus.tasks.evaluation.identity import effective_settings
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.steps.claims.pages import find_links

Texts = list[str | None]


def score_facts(run: EvaluationRun, cases: pa.Table) -> pa.Table:
    """Add the answers' unsupported facts and the metrics of facts; NULL if there is nothing to measure.

    A refusal states nothing that needs support, and has none of the reference's facts. A missing or empty context
    supports and contradicts nothing, as for faithfulness. Facts that only repeat the question, and addresses of
    retrieved pages, are left out.
    """
    columns = ("answer", "outcome", "context", "question", "retrieved")
    rows = cases.select([name for name in columns if name in cases.column_names]).to_pylist()
    answers = blank_pseudonyms(row["answer"] for row in rows)
    contexts = [row["context"] or None for row in rows]
    if run.tier == "judge_pipeline":  # the logged answer may come from the part that was cut off
        contexts = [
            None if is_cut else text for text, is_cut in zip(contexts, column_values(cases, "truncated"), strict=True)
        ]
    is_refusal = (row.get("outcome") == "refused" for row in rows)
    statements = [None if refuses else answer for answer, refuses in zip(answers, is_refusal, strict=True)]
    checked = facts.check_facts(statements, contexts, aside=[_excluded_texts(row) for row in rows])
    unsupported = facts.unsupported_facts(checked)
    rate = np.array([np.nan if items is None else bool(items) for items in unsupported], np.float64)
    if run.tier == "judge_pipeline":  # the gate is responsible for shown answers only
        rate[float_column(cases, "decision") != 1] = np.nan
    cases = set_columns(
        cases,
        unsupported_facts=[None if items is None else [fact._asdict() for fact in items] for items in unsupported],
        unsupported_fact_rate=rate,
        fact_precision=facts.supported_shares(checked),
    )
    if "reference" not in cases.column_names:
        return cases
    references: Texts = column_values(cases, "reference")
    if effective_settings(run).mask_model_input:  # no model got this personal data, so no answer can contain it
        key, language = load_own_key(), effective_settings(run).language
        references = blank_pseudonyms(text and mask(text, key, language) for text in references)
    return set_columns(cases, fact_recall=facts.fact_recall(answers, references))


def _excluded_texts(row: Case) -> str:
    """Return texts whose facts are left out: the question, and addresses of retrieved pages in the answer."""
    links = [text for text, page in find_links(row["answer"] or "").items() if page in (row.get("retrieved") or ())]
    return CONTEXT_SEPARATOR.join((row["question"], *links))


def blank_pseudonyms(texts: Iterable[str | None]) -> Texts:
    """Blank out our pseudonyms, keeping the length: models repeat them, and their digits are not facts."""
    pattern = pseudonym_pattern()
    return [
        text if text is None or "[" not in text else pattern.sub(lambda match: " " * len(match[0]), text)
        for text in texts
    ]

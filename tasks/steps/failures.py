"""First failure of each answer on its way through the system.

A question passes retrieval, generation and the gate. The first stage that fails is its failure, because later stages
work on a wrong input:

    retrieval   nothing relevant was retrieved
    label       nothing that is labelled relevant was retrieved, yet the answer is good: the label is in doubt
    gate        the passage was there, but the system says that it hid the answer
    refusal     the passage was there, but the system declined; or nothing answers the question, and it did not decline
    generation  the passage was there, but the answer is not faithful to it, or not useful, or states an invented fact

An answer is good if e2e_score and faithfulness reach the grade "good". A fact of the answer that is neither in context
nor question counts as invented, whatever the judge says, unless it is in the reference: then the context is in doubt.
Without relevant labels or retrieved results, no failure of retrieval is reported. A failed system has no failure here:
its status tells what happened.
"""

import pyarrow as pa

from yarus.metrics.facts import unsupported
from yarus.metrics.table import METRICS
from yarus.tasks.cases.outcomes import HIDDEN_PATH
from yarus.tasks.cases.table import Case, set_columns
from yarus.tasks.cases.vocabulary import MEASURED_STATUSES
from yarus.tasks.evaluation.findings.failures import has_relevant_result
from yarus.tasks.evaluation.run import EvaluationRun


def add_failures(run: EvaluationRun, cases: pa.Table) -> pa.Table:
    """Add `failure`; NULL if nothing failed or nothing could be measured."""
    return set_columns(cases, failure=[find_failure(case) for case in cases.to_pylist()])


def find_failure(case: Case) -> str | None:
    """Return the stage at which the case failed first, or None."""
    if case["status"] not in MEASURED_STATUSES:
        return None
    is_refusal = case["status"] == "sut_refusal"
    if case["answerable"] is False:
        return None if is_refusal else "refusal"
    if has_relevant_result(case) is False:
        return "label" if _is_good(case) else "retrieval"
    if case.get("path") == HIDDEN_PATH:
        return "gate"
    if is_refusal:
        return "refusal"
    return "generation" if _is_good(case) is False or _has_invented_fact(case) else None


def _is_good(case: Case) -> bool | None:
    """Return whether the answer is useful, and faithful if that was judged; None if usefulness was not judged."""
    is_useful, is_faithful = (_passes_threshold(f"avg_{name}", case[name]) for name in ("e2e_score", "faithfulness"))
    if is_useful is None or is_useful is False or is_faithful is None:
        return is_useful
    return is_faithful


def _has_invented_fact(case: Case) -> bool:
    """Return whether the answer states a fact without support, not even in the reference."""
    unsupported_spans = {(fact["start"], fact["end"]) for fact in case.get("unsupported_facts") or ()}
    if not unsupported_spans:
        return False
    (not_in_reference,) = unsupported([case["answer"]], [case["reference"]])
    return not_in_reference is None or any((fact.start, fact.end) in unsupported_spans for fact in not_in_reference)


def _passes_threshold(metric: str, value: float | None) -> bool | None:
    bounds = METRICS[metric].thresholds
    return None if value is None or bounds is None else value >= bounds[0]

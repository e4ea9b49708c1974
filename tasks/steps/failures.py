"""Where an answer failed first on its way through the system, and which failures to look at first.

A question passes retrieval, generation and the gate. The first place that fails is its failure, for what comes after
works on what that place has spoilt:

    retrieval   nothing relevant was retrieved
    label       nothing that is labelled relevant was retrieved, yet the answer is good: the label is in doubt
    gate        the passage was there, but the system says that it hid the answer
    refusal     the passage was there, but the system declined; or nothing answers the question, and it did not decline
    generation  the passage was there, but the answer is not faithful to it, or not useful, or states an invented fact

An answer is good from where the grades "good" of e2e_score and faithfulness begin. A fact that rules find in it, and
that neither context nor question has, was invented, whatever the judge has found; unless the reference has it: then the
context is in doubt. Without relevant labels, or where the system does not say what it retrieved, retrieval is not found
at fault. A system that failed has no failure here: its status says what happened.
"""

import pyarrow as pa

from yarus.metrics.facts import unsupported
from yarus.metrics.table import METRICS
from yarus.tasks.cases.outcomes import HIDDEN
from yarus.tasks.cases.table import Case, with_columns
from yarus.tasks.cases.vocabulary import MEASURED
from yarus.tasks.evaluation.findings.failures import found
from yarus.tasks.evaluation.run import Run


def find_failures(run: Run, cases: pa.Table) -> pa.Table:
    """Adds `failure`; NULL where nothing failed or nothing could be measured."""
    return with_columns(cases, failure=[failure_of(case) for case in cases.to_pylist()])


def failure_of(case: Case) -> str | None:
    """Where the case failed first, or None."""
    if case["status"] not in MEASURED:
        return None
    refused = case["status"] == "sut_refusal"
    if case["answerable"] is False:
        return None if refused else "refusal"
    if found(case) is False:
        return "label" if _good(case) else "retrieval"
    if case.get("path") == HIDDEN:
        return "gate"
    if refused:
        return "refusal"
    return "generation" if _good(case) is False or _invents(case) else None


def _good(case: Case) -> bool | None:
    """Whether the answer is useful, and faithful where that was judged; None where it was not judged."""
    useful, faithful = (_passes(f"avg_{name}", case[name]) for name in ("e2e_score", "faithfulness"))
    if useful is None or useful is False or faithful is None:
        return useful
    return faithful


def _invents(case: Case) -> bool:
    """Whether it states a fact that has no support, not in the reference either."""
    lost = {(fact["start"], fact["end"]) for fact in case.get("unsupported_facts") or ()}
    if not lost:
        return False
    (unknown,) = unsupported([case["answer"]], [case["reference"]])
    return unknown is None or any((fact.start, fact.end) in lost for fact in unknown)


def _passes(metric: str, value: float | None) -> bool | None:
    bounds = METRICS[metric].thresholds
    return None if value is None or bounds is None else value >= bounds[0]

"""The metrics of facts extracted by rules: numbers, dates, times, money, phones, addresses; tiers 2, 3 and the gate."""

from yarus.metrics.metric import Metric

_BOTH: tuple[str, ...] = ("tier2", "tier3")
_TRUST = "High where a fact is found, since no model judges it; blind to everything that is no such fact."


FACTS = (
    Metric(
        name="avg_fact_precision",
        tiers=_BOTH,
        function="facts.fact_precision",
        column="fact_precision",
        measures="How many of the answer's own facts (numbers, dates, times, money, phones, addresses) its "
        "context has.",
        formula="facts of the answer that the context has / facts of the answer, without those that only repeat the "
        "question; mean over cases",
        signature="avg_fact_precision|v:1",
        undefined="no answer, or a refusal; no fact of its own in it; no context",
        trust=_TRUST,
        reading="1: no fact was made up. The generator causes a lower value, also in tier 3, where answers are "
        "compared with the retrieved context, right or wrong. Facts that only repeat the question do not count: a "
        "false premise that the answer repeats is not detected.",
        later=True,
    ),
    Metric(
        name="avg_fact_recall",
        tiers=_BOTH,
        function="facts.fact_recall",
        column="fact_recall",
        measures="How many of the reference's facts (numbers, dates, times, money, phones, addresses) the answer has.",
        formula="facts of the reference that the answer has / facts of the reference; mean over cases",
        signature="avg_fact_recall|v:1",
        undefined="no answer; no reference, or no fact in it",
        trust=f"{_TRUST} A reference may tell more than was asked.",
        reading="1 no date or sum of the reference is missing. Low in tier 2: the generator leaves them out; low in "
        "tier 3 only: retrieval did not bring them. A refusal has none of them.",
        later=True,
    ),
    Metric(
        name="avg_citation_fact_precision",
        tiers=("tier3",),
        function="facts.fact_precision",
        column="citation_fact_precision",
        measures="Share of the answer's own facts (numbers, dates, phones and so on) that the pages named by the "
        "system contain.",
        formula="facts of the answer that a named page has / facts of the answer, without those that only repeat the "
        "question; mean over cases",
        signature="avg_citation_fact_precision|v:1",
        undefined="no answer, or a refusal; no fact of its own in it; the system names no page, or one that is not in "
        "the corpus, or one so long that only its beginning was read",
        trust=_TRUST,
        reading="Below 1 a date or sum of the answer is not on the page that it points to. Beside a high "
        "fact_precision: the context had it, and the wrong page is named.",
        later=True,
    ),
    Metric(
        name="unsupported_fact_rate",
        tiers=(*_BOTH, "judge_pipeline"),
        function="facts.unsupported",
        column="unsupported_fact_rate",
        measures="Share of the answers with facts of which at least one is neither in the context nor in the "
        "question; of the gate, of those that it showed.",
        formula="1 where a fact of the answer is neither in the context nor in the question, else 0; mean over answers "
        "with a fact and a context, in judge_pipeline over those that the gate showed",
        better="lower",
        interval="wilson",
        signature="unsupported_fact_rate|v:1",
        undefined="no answer, or a refusal; no fact in it; no context; in judge_pipeline also: it was not shown, or "
        "its page was cut",
        trust=_TRUST,
        reading="Each is an answer to read: yarus cases EVALUATION --where unsupported_fact_rate=1. In tiers 2 and 3 "
        "the generator made it up; in judge_pipeline the gate let it through.",
        later=True,
    ),
)

"""The citation metrics of tier 3: the pages that a system cites with its answer."""

from yarus.metrics.metric import Metric

_ALCE = "Gao et al. 2023, Enabling large language models to generate text with citations"
_JUDGED = (
    "As far as the judge, who holds what the answer says against each page; no exam covers that yet. Pages of more "
    "than 9,000 characters, and those after the twentieth, are not read, and count neither for nor against."
)
_NOTHING = "no answer, or a refusal; the system does not say what it used"


def _judged_metric(name: str, measures: str, formula: str, undefined: str, reading: str) -> Metric:
    return Metric(
        name=f"avg_{name}",
        tiers=("tier3",),
        function=f"claims.{name}",
        column=name,
        measures=measures,
        formula=f"{formula}; what it says: its claims where these were asked for, else its sentences; mean over cases",
        kind="judged",
        opinion="support",
        signature=f"avg_{name}|v:1",
        source=_ALCE,
        undefined=f"{undefined}; the judge's reply could not be read",
        trust=_JUDGED,
        reading=reading,
        asked="citations",
        later=True,
    )


CITATIONS = (
    _judged_metric(
        "citation_precision",
        "How many of the pages that the system names support something that it says.",
        "named pages that support something that the answer says / named pages that were read",
        f"{_NOTHING}; it names none that the corpus has and that is short enough to be read",
        "1: no page is named in vain. Low: people who follow the links do not find there what they were told.",
    ),
    _judged_metric(
        "citation_recall",
        "How much of what the system says some page that it names supports.",
        "what the answer says and a named page supports / what the answer says",
        f"{_NOTHING}; a page that it names is not in the corpus, or too long to be read",
        "1: all that it says can be looked up. What only two pages together say counts as unsupported.",
    ),
    Metric(
        name="avg_citation_known",
        tiers=("tier3",),
        function="claims.citation_known",
        column="citation_known",
        measures="How many of the pages that the system names the corpus has.",
        formula="named pages (or chunks) that are in the corpus / named pages; mean over cases",
        signature="avg_citation_known|v:1",
        undefined=f"{_NOTHING}; it names none",
        trust="Full: it is looked up.",
        reading="Below 1 it names pages that were removed, or never were: its index is not ours, or it makes "
        "addresses up. Their support is not measured.",
        later=True,
    ),
)

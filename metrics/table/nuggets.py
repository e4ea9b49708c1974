"""The nugget metrics of tiers 2 and 3, if enabled: a judge looks for each nugget in the answers."""

from yarus.metrics.metric import Metric

_PAPER = (
    "Pradeep et al. 2024, Initial nugget evaluation results for the TREC 2024 RAG track with the AutoNuggetizer "
    "framework"
)


def _nugget_metric(name: str, which: str, worth: str, reading: str) -> Metric:
    return Metric(
        name=f"avg_{name}",
        tiers=("tier2", "tier3"),
        function="claims.nugget_recall",
        column=name,
        measures=f"How many of the {which} the answer has.",
        formula=f"{which} that the answer supports, {worth} / {which}; mean over cases",
        kind="judged",
        opinion="nugget_support",
        signature=f"avg_{name}|v:1",
        source=_PAPER,
        undefined=f"no {which} made for the question; the corpus has no answer; no answer; the judge's reply could not "
        "be read",
        trust="As far as the judge, who looks for each nugget in the answer, and the nuggets, which he has made too: "
        "let people edit them (yarus dataset export-annotation). No exam covers that yet.",
        reading=reading,
        asked="nuggets",
        later=True,
    )


NUGGETS = (
    _nugget_metric(
        "nugget_recall",
        "vital nuggets",
        "partly is no",
        "1: nothing is missing that a good answer must say, in whatever words. The nuggets stay, so nights compare "
        "however a reference is worded. A refusal has none: 0.",
    ),
    _nugget_metric(
        "nugget_recall_partial",
        "vital nuggets",
        "partly is half",
        "Far above nugget_recall: answers name the right things without their conditions, dates or sums.",
    ),
    _nugget_metric(
        "nugget_recall_all",
        "nuggets, vital or okay,",
        "partly is no",
        "Beside nugget_recall: how much of what is good to know, and not necessary, the answers have.",
    ),
    _nugget_metric(
        "nugget_recall_all_partial",
        "nuggets, vital or okay,",
        "partly is half",
        "The mildest of the four; the one that follows small changes best.",
    ),
)

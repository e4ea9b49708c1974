"""The tiers, one row each; their names are in tasks/config/texts, their metrics in metrics/table."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from yarus.tasks.config.parameters import (
    JudgePipeline,
    JudgeQuality,
    Parameters,
    RealUsers,
    Tier0,
    Tier1,
    Tier2,
    Tier3,
    Ux,
)


@dataclass(frozen=True, slots=True)
class Tier:
    """A tier of the evaluation: its flow is `yarus.flows.NAME:NAME`, its texts `[tiers.NAME]` in tasks/config/texts."""

    parameters: type[Parameters]
    """Parameters of an evaluation: the options of `yarus run` and the form in the Prefect UI."""
    headlines: tuple[str, ...]
    """Headline metrics, the most important first."""
    worst_by: str
    """Column of cases by which the worst are listed."""
    also_shown: tuple[str, ...] = ()
    """Metrics that are printed with the headline metrics if they have a value. Comparisons include them in Holm's
    adjustment; gates do not, and the gate without rules does not judge them.
    """
    doubtful: dict[str, str | float] = field(default_factory=dict)
    """Filter for cases to read next: a metric of cases and its `min` or `max`."""
    felt: int | None = None
    """Rank among the tiers whose quality users notice, 1 the most direct. The other tiers explain or measure; one of
    them is reported as the weakest only if these are sound.
    """


TIERS: dict[str, Tier] = {
    "tier0": Tier(
        Tier0,
        headlines=("silhouette_score",),
        worst_by="silhouette_score",
        doubtful={"metric": "silhouette_score", "max": 0},
    ),
    "tier1": Tier(Tier1, headlines=("hit_rate@1", "mrr", "ndcg@10", "sut_error_rate"), worst_by="ndcg@10", felt=3),
    "tier2": Tier(
        Tier2,
        headlines=("avg_faithfulness", "avg_answer_relevance", "sut_error_rate"),
        worst_by="faithfulness",
        doubtful={"metric": "faithfulness", "max": 0.7},
        felt=4,
    ),
    "tier3": Tier(
        Tier3,
        headlines=("avg_e2e_score", "avg_semantic_similarity", "sut_error_rate"),
        worst_by="e2e_score",
        also_shown=("hit_rate@1",),
        doubtful={"metric": "e2e_score", "max": 0.6},
        felt=1,
    ),
    "real_users": Tier(
        RealUsers, headlines=("hit_rate@1", "mrr", "ndcg@10", "sut_error_rate"), worst_by="ndcg@10", felt=2
    ),
    "judge": Tier(
        JudgeQuality,
        headlines=("consistency_score", "weighted_kappa"),
        worst_by="mean_abs_difference",
        doubtful={"metric": "mean_abs_difference", "min": 0.25},
    ),
    "judge_pipeline": Tier(
        JudgePipeline,
        headlines=("accuracy", "precision", "recall", "f1_score", "sut_error_rate"),
        worst_by="accuracy",
        doubtful={"metric": "accuracy", "max": 0},
        felt=5,
    ),
    "ux": Tier(
        Ux,
        headlines=("cache_hit_rate", "cache_wrong_hit_rate"),
        worst_by="cache_wrong_hit_rate",
        doubtful={"metric": "cache_wrong_hit_rate", "min": 1},
        felt=6,
    ),
}


def shown_headlines(tier: str, metrics: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the metrics that summaries and tables print first: the headlines, and others of the tier with a value.

    Args:
        tier: name of the tier.
        metrics: metric -> its document, with `value` or the sides `a` and `b`.
    """
    also = {name: metrics[name] for name in TIERS[tier].also_shown if name in metrics}
    measured = (name for name, metric in also.items() if metric.get("value", metric.get("b")) is not None)
    return [*TIERS[tier].headlines, *measured]

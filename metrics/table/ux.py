"""The metrics of user experience: what a cache of questions would do, and the coherence of dialogs."""

from yarus.metrics.metric import Metric

_DIALOGS = "no dialog of two questions or more; a zero vector is an error"


# Production's threshold, under the name without suffix, and others to choose from.
_THRESHOLDS = {"": "0.85", "@0.8": "0.8", "@0.9": "0.9", "@0.95": "0.95"}


def _cache_metric(suffix: str, threshold: str) -> Metric:
    return Metric(
        name=f"cache_hit_rate{suffix}",
        tiers=("ux",),
        function="dialogue.cache_hit_rate",
        column=f"cache_hit_rate{suffix}",
        measures="Share of questions that a cache of earlier, well-rated questions would have answered.",
        formula=f"share of questions whose nearest earlier well-rated question has a cosine above {threshold}",
        kind="hybrid",
        interval="wilson",
        signature=f"cache_hit_rate{suffix}|threshold:{threshold}|v:1",
        undefined="no question with a time; no earlier question was rated 5; a zero vector is an error",
        trust="High as a count: the question itself and later ones are left out, so it is what production could have "
        "had. It does not say whether the hit was the right one.",
        reading="Over 0.5 a cache pays; below 0.1 it does not. Never read it without cache_wrong_hit_rate.",
    )


def _wrong_hits(suffix: str, threshold: str) -> Metric:
    return Metric(
        name=f"cache_wrong_hit_rate{suffix}",
        tiers=("ux",),
        function="dialogue.cache_wrong_hit_rate",
        column=f"cache_wrong_hit_rate{suffix}",
        measures="Share of the hits that would have served the answer of another page.",
        formula="hits whose cached question has another page / hits with both pages known, at a cosine above "
        f"{threshold}",
        better="lower",
        kind="hybrid",
        interval="wilson",
        signature=f"cache_wrong_hit_rate{suffix}|threshold:{threshold}|v:1",
        undefined="no hit between questions whose pages are known",
        trust="Medium: another page may hold the same answer.",
        reading="The price of the hit rate: choose the lowest threshold whose wrong hits can be borne.",
    )


UX = (
    *(_cache_metric(suffix, threshold) for suffix, threshold in _THRESHOLDS.items()),
    *(_wrong_hits(suffix, threshold) for suffix, threshold in _THRESHOLDS.items()),
    Metric(
        name="context_preservation",
        tiers=("ux",),
        function="dialogue.context_preservation",
        measures="How near each question of a dialog stays to the one before.",
        formula="mean over dialogs of the mean cosine of consecutive questions",
        low=-1.0,
        unit="cosine",
        kind="hybrid",
        aggregate="whole",
        signature="context_preservation|v:1",
        undefined=_DIALOGS,
        trust="Medium: it measures the users' questions more than the system; short follow-ups (`and when?`) look "
        "unrelated.",
        reading="Over 0.7 the questions hang together, below 0.3 they do not: then the dialogs' boundaries may be "
        "wrong.",
    ),
    Metric(
        name="multi_turn_consistency",
        tiers=("ux",),
        function="dialogue.multi_turn_consistency",
        measures="How much all questions of a dialog are about one thing.",
        formula="mean over dialogs of the mean of max(0, cos) over all pairs of the dialog's questions",
        unit="cosine",
        kind="hybrid",
        aggregate="whole",
        signature="multi_turn_consistency|negatives:0|v:1",
        undefined=_DIALOGS,
        trust="Medium, as context_preservation. The seeds name it without a formula; this one is ours.",
        reading="Well below context_preservation: the dialogs drift from topic to topic.",
    ),
)

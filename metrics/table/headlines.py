"""The metrics that each tier is judged by."""

HEADLINES: dict[str, tuple[str, ...]] = {
    "tier0": ("silhouette_score",),
    "tier1": ("hit_rate@1", "mrr", "ndcg@10"),
    "tier2": ("avg_faithfulness", "avg_answer_relevance"),
    "tier3": ("avg_e2e_score", "avg_semantic_similarity"),
    "real_users": ("hit_rate@1", "mrr", "ndcg@10"),
    "judge": ("consistency_score", "weighted_kappa"),
    "judge_pipeline": ("accuracy", "precision", "recall", "f1_score"),
    "ux": ("cache_hit_rate", "cache_wrong_hit_rate"),
}
"""What each tier is judged by, the first first."""
FELT = ("tier3", "real_users", "tier1", "tier2", "judge_pipeline", "ux")
"""Tiers whose quality reaches the user. The others explain or measure: they are the weakest only if these are sound."""

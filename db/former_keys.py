"""Keys of JSON documents that have a new name; for this release `--json` prints the former key beside it."""

from typing import Any

FORMER_ANALYSIS_KEYS = {
    "baseline_evaluation_id": "asked_as_is",
    "cohesion_threshold": "cohesion_by_chance",
    "content_gaps": "next",
    "expected_gain": "gain",
    "explained_variance": "explained",
    "monthly_growth": "monthly",
    "n_never_retrieved": "n_dead",
    "n_unclustered": "without_topic",
    "n_unclustered_without_page": "without_topic_or_page",
    "n_with_failure_rate": "n_failure_known",
    "n_with_hit_rate": "n_hit_known",
    "never_retrieved": "dead",
    "non_questions": "chatter",
    "over_retrieved": "over_used",
    "position_differences": "places",
    "ratio_to_mean": "times",
    "retrieval_counts": "uses",
    "seasonality": "seasons",
    "unchanged_share": "same",
    "unserved_examples": "examples_unserved",
    "variant_name": "arm",
    "variants": "arms",
}
"""New key -> former key, in stored analyses: sweeps, robustness probes, corpus analytics."""
FORMER_KEYS = FORMER_ANALYSIS_KEYS | {
    "agreement_among_people": "people",
    "ambiguous_columns": "doubtful",
    "better_direction": "better",
    "check_name": "what",
    "check_result": "found",
    "checks_per_year": "looks_a_year",
    "conflicting_question_ids": "others",
    "detection_delay_2_points": "nights_to_notice_2_points",
    "detection_delay_5_points": "nights_to_notice_5_points",
    "detection_delay_drift": "nights_to_notice_a_fifth_of_a_point_a_night",
    "duplicate_chunks": "twins",
    "exit_code": "code",
    "false_alarms_per_year": "false_alarms_a_year",
    "first_out_of_band": "first_out",
    "found_in": "where",
    "has_earlier": "more",
    "improved_cases": "fixed",
    "incident_id": "incident",
    "is_break": "break",
    "is_out_of_band": "out",
    "is_stand_in": "stand_in",
    "judged_share_difference": "unequally_judged",
    "key_differences": "differs",
    "known_word_share": "known",
    "label_conflict": "what",
    "latest_evaluation_id": "last",
    "metric_changes": "moved",
    "min_change": "least_change",
    "min_detectable_effect": "smallest_detectable",
    "missing_columns": "lacking",
    "n_accepted": "accepted",
    "n_cases_needed": "needs",
    "n_labels_missing": "missing",
    "n_labels_needed": "needed",
    "n_labels_without_judge": "needed_alone",
    "n_made": "made",
    "n_new_calls": "bought",
    "n_partially_filled": "half_filled",
    "n_question_kinds": "cells",
    "n_requested": "asked",
    "n_sampled": "drawn",
    "n_selected_questions": "asked",
    "night_noise_sd": "night_by_itself",
    "no_longer_measured": "lost",
    "not_decomposed": "not_split",
    "not_erased": "beyond",
    "other_question": "other",
    "other_question_id": "of",
    "other_scores": "others",
    "outside_results": "elsewhere",
    "page_change": "fate",
    "page_changes": "fates",
    "recommended_action": "way_out",
    "regressed_cases": "broke",
    "topic_source": "topics_by",
    "unmonitored_evaluations": "unwatched",
}
"""New key -> former key. A new key has one meaning in all documents."""


def add_former_keys(document: Any) -> Any:
    """Return a document with the former key, and the same value, beside each renamed key."""
    if isinstance(document, list | tuple):
        return [add_former_keys(part) for part in document]
    if not isinstance(document, dict):
        return document
    values = {key: add_former_keys(value) for key, value in document.items()}
    return values | {former: values[key] for key, former in FORMER_KEYS.items() if key in values}


def replace_former_keys(document: Any) -> Any:
    """Return a stored analysis with the new names of its keys."""
    if isinstance(document, list):
        return [replace_former_keys(part) for part in document]
    if not isinstance(document, dict):
        return document
    new_keys = {former: key for key, former in FORMER_ANALYSIS_KEYS.items()}
    return {new_keys.get(key, key): replace_former_keys(value) for key, value in document.items()}

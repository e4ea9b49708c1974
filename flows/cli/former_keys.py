"""Keys of `--json` documents that have a new name; for this release the former key is printed beside it."""

from typing import Any

FORMER_KEYS = {
    "checks_per_year": "looks_a_year",
    "detection_delay_2_points": "nights_to_notice_2_points",
    "detection_delay_5_points": "nights_to_notice_5_points",
    "detection_delay_drift": "nights_to_notice_a_fifth_of_a_point_a_night",
    "direction": "better",
    "false_alarms_per_year": "false_alarms_a_year",
    "first_out_of_band": "first_out",
    "has_earlier": "more",
    "improved_cases": "fixed",
    "is_break": "break",
    "is_out_of_band": "out",
    "judged_share_difference": "unequally_judged",
    "key_differences": "differs",
    "metric_changes": "moved",
    "min_change": "least_change",
    "min_detectable_effect": "smallest_detectable",
    "n_cases_needed": "needs",
    "night_noise_sd": "night_by_itself",
    "regressed_cases": "broke",
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

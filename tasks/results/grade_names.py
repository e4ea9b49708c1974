"""The grades of a value in words, or why it has none."""

from collections.abc import Mapping
from typing import Any

from yarus.tasks.texts import LANGUAGES, Text, translations


def grade_text(metric: Mapping[str, Any]) -> Text | None:
    """The grade of a metric, or both between which its interval lies: "Good – Excellent"; None where it has none.

    In its place stands why a judge's opinion has none (the judge is a stand-in, or has passed no exam), or that there
    are too few cases: every grade is possible.

    Args:
        metric: with `judge`, `grade`, `grade_high` and `ungraded`, as `yarus.tasks.results.summary.summary` gives it.
    """
    if metric["judge"] not in (None, "passed"):
        return translations("standings", metric["judge"])
    low, high = metric["grade"], metric["grade_high"]
    if low is None:
        return translations("guidance", "too few to grade") if metric["ungraded"] else None
    names = [translations("grades", name) for name in dict.fromkeys((low, high))]
    return {language: " \N{EN DASH} ".join(name[language] for name in names) for language in LANGUAGES}

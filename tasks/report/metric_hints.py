"""How to read each metric, in both languages: the English from the table of metrics, the Russian from here."""

from metrics.table import METRICS
from tasks.texts.guidance import Text
from tasks.texts.metric_hints_ru import MEASURES, READING, TRUST

PARTS = {"measures": MEASURES, "reading": READING, "trust": TRUST}


def hint(name: str) -> dict[str, Text] | None:
    """What a metric measures, how to read it and how far to trust it.

    Args:
        name: as stored; a rubric of the user's own has no hint.

    Returns:
        measures, reading and trust, each by language; None for a metric that the table does not have.
    """
    declared = METRICS.get(name)
    if declared is None:
        return None
    return {part: {"ru": russian(part, name), "en": str(getattr(declared, part))} for part in PARTS}


def russian(part: str, name: str) -> str:
    """The Russian of a part of a metric's hint: under its own name, or that of its family before the `@`."""
    texts = PARTS[part]
    family, _, k = name.partition("@")
    text = texts.get(name) or texts.get(f"{family}@") or texts.get(family)
    return text.format(k=k) if text else str(getattr(METRICS[name], part))

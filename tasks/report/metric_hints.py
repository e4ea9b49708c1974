"""Reading aids for metrics in both languages: English from the table of metrics, Russian from the texts."""

from yarus.metrics.table import METRICS, find_metric
from yarus.metrics.table.corrected import CORRECTED_SUFFIX
from yarus.tasks.config.texts import TranslatedText, texts

HINT_PARTS = ("measures", "reading", "trust")


def metric_hint(name: str) -> dict[str, TranslatedText] | None:
    """Return what a metric measures, how to read it and how reliable it is.

    Args:
        name: stored name; custom rubrics have no hint.

    Returns:
        measures, reading and trust by language; None for metrics outside the table.
    """
    declared = find_metric(name)
    if declared is None:
        return None
    parts = {part: {"ru": russian_hint(part, name), "en": str(getattr(declared, part))} for part in HINT_PARTS}
    if name.endswith(CORRECTED_SUFFIX):
        parts["trust"]["ru"] = texts(f"metric_hints.{CORRECTED_SUFFIX}", "ru")["trust"]
    return parts


def russian_hint(part: str, name: str) -> str:
    """Return the Russian text of a part of a metric's hint, under its own name or its family's."""
    name = name.removesuffix(CORRECTED_SUFFIX)
    family, _, k = name.partition("@")
    prompt = METRICS[name].opinion
    for key in (name, f"{family}@", family, name.removesuffix(prompt)):
        try:
            text = texts(f"metric_hints.{key}", "ru")[part]
        except LookupError:
            continue
        return text.format(k=k, prompt=prompt, **texts("shared_hints", "ru"))
    return str(getattr(METRICS[name], part))

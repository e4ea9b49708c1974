"""How to read each metric, in both languages: the English from the table of metrics, the Russian from the texts."""

from yarus.metrics.table import METRICS, known
from yarus.metrics.table.corrected import SUFFIX
from yarus.tasks.config.texts import Text, texts

PARTS = ("measures", "reading", "trust")


def hint(name: str) -> dict[str, Text] | None:
    """What a metric measures, how to read it and how far to trust it.

    Args:
        name: as stored; a rubric of the user's own has no hint.

    Returns:
        measures, reading and trust, each by language; None for a metric that the table does not have.
    """
    declared = known(name)
    if declared is None:
        return None
    found = {part: {"ru": russian(part, name), "en": str(getattr(declared, part))} for part in PARTS}
    if name.endswith(SUFFIX):
        found["trust"]["ru"] = texts(f"metric_hints.{SUFFIX}", "ru")["trust"]
    return found


def russian(part: str, name: str) -> str:
    """The Russian of a part of a metric's hint: under its own name, or its family's."""
    name = name.removesuffix(SUFFIX)
    family, _, k = name.partition("@")
    prompt = METRICS[name].opinion
    for of in (name, f"{family}@", family, name.removesuffix(prompt)):
        try:
            text = texts(f"metric_hints.{of}", "ru")[part]
        except LookupError:
            continue
        return text.format(k=k, prompt=prompt, **texts("shared_hints", "ru"))
    return str(getattr(METRICS[name], part))

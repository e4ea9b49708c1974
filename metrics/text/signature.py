"""The signature of a text metric: everything that changes its value, in one line."""

from collections.abc import Mapping

# Raise a version when a changed definition gives other values for the same texts.
VERSIONS = {
    "bleu": 1,
    "corpus_bleu": 1,
    "rouge": 1,
    "rouge1": 1,
    "rouge2": 1,
    "rougeL": 1,
    "chrf": 1,
    "string_similarity": 1,
    "wer": 1,
    "perplexity": 1,
}


def format_signature(metric: str, parameters: Mapping[str, object]) -> str:
    """Return the signature of a metric with its parameters, in the given order.

    Example:
        >>> from yarus.metrics.text.signature import format_signature
        >>> format_signature("wer", {"tokenizer": "words", "fold_yo": False})
        'wer|tok:words|norm:NFC|v:1'
    """
    parts = [_format_parameter(name, value) for name, value in parameters.items()]
    return "|".join([metric, *parts, f"v:{VERSIONS[metric]}"])


def _format_parameter(name: str, value: object) -> str:
    match name, value:
        case "tokenizer", _:
            return f"tok:{value}"
        case "smoothing", bool():
            return f"smoothing:{'add-1' if value else 'none'}"
        case "fold_yo", bool():
            return f"norm:{'NFC+yo' if value else 'NFC'}"
        case _, bool():
            return f"{name}:{'yes' if value else 'no'}"
        case _, float():
            return f"{name}:{value:g}"
        case _:
            return f"{name}:{value}"

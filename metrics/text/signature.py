"""The signature of a text metric: everything that changes its number, in one line that stands beside the number."""

from collections.abc import Mapping

# Raised when a definition changes so that the same texts get another number.
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


def write_signature(metric: str, parameters: Mapping[str, object]) -> str:
    """`bleu|max_ngram:4|smoothing:add-1|tok:words|norm:NFC|v:1` for `bleu` and its parameters, in the order given.

    Example:
        >>> from yarus.metrics.text.signature import write_signature
        >>> write_signature("wer", {"tokenizer": "words", "fold_yo": False})
        'wer|tok:words|norm:NFC|v:1'
    """
    parts = [_written(name, value) for name, value in parameters.items()]
    return "|".join([metric, *parts, f"v:{VERSIONS[metric]}"])


def _written(name: str, value: object) -> str:
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

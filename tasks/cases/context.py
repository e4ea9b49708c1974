"""Passages as one context, cut to a limit of tokens."""

CHARACTERS_A_TOKEN = 3  # of Russian text, roughly; English has four


def fit(texts: list[str], tokens: int) -> tuple[str, bool]:
    """The texts as one, cut to about so many tokens, and whether it was cut."""
    whole = "\n\n".join(texts)
    limit = tokens * CHARACTERS_A_TOKEN
    return whole[:limit], len(whole) > limit

"""Finding a user's texts wherever somebody wrote them: escaped, in Markdown or HTML, in JSON within JSON, cut short."""

import html
import re
from collections.abc import Iterable

CUT = 40
"""Characters of a long text that are looked for: pages and messages cut what is longer."""
LONG, SHORT = 16, 4
"""Characters; a short text is looked for as a word of its own, one shorter still only by the id of its case."""
ESCAPED = re.compile(r"\\+u([0-9a-fA-F]{4})")
SPACE = re.compile(r"(?:\\+[nrt]|\s)+")


class Texts:
    """What is looked for.

    Args:
        case_ids: of the user's questions, as Prefect's pages name them.
        questions: their texts.
        others: texts beside them, such as answers; many people get the same short one, so short ones do not count.
    """

    def __init__(self, case_ids: Iterable[str], questions: Iterable[str], others: Iterable[str]) -> None:
        asked = {plain(text) for text in questions}
        beside = {plain(text) for text in others}
        self._marks = [f"`{plain(case_id)}`" for case_id in case_ids]
        self._long = sorted({text[:CUT] for text in asked | beside if len(text) >= LONG})
        short = "|".join(re.escape(text) for text in sorted(asked) if SHORT <= len(text) < LONG)
        self._short = re.compile(rf"(?<!\w)(?:{short})(?!\w)") if short else None

    def are_in(self, said: str) -> bool:
        """Whether a text that was written down has any of them in it, or names a case of theirs."""
        found = plain(said)
        named = any(mark in found for mark in self._marks) or self.are_whole_in(said)
        return named or bool(self._short and self._short.search(found))

    def are_whole_in(self, said: str) -> bool:
        """Whether a long one is in it: what is a word of Prefect's own, such as `deployment`, is none."""
        found = plain(said)
        return any(text in found for text in self._long)


def plain(text: str) -> str:
    """A text without what writing it down may have done to it."""
    said = ESCAPED.sub(lambda code: chr(int(code[1], 16)), html.unescape(text))
    said = said.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return SPACE.sub(" ", said).replace("\\", "").strip()

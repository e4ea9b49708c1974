"""What an advice to write something rests on, in words; the terminal and the report take them from here."""

from collections.abc import Mapping, Sequence
from typing import Any

from yarus.tasks.corpus.topics import FAILED, MISSING
from yarus.tasks.texts import texts

LONGEST = 160
"""Characters shown of a question."""
COUNTS = ("n_missing", "n_unanswered", "n_downvoted")


def rests_on(topic: Mapping[str, Any], language: str) -> list[str]:
    """How many questions there are, what is wrong with how many of them, and the expected gain; nothing of what is 0.

    Args:
        topic: of `next`.
        language: in which it is said.
    """
    words = texts("corpus", language)
    return [
        words["asked times"].format(n=topic["n"], n_distinct=topic["n_distinct"]),
        *(words[f"of which {name}"].format(n=topic[name]) for name in COUNTS if topic[name]),
        words["gain"].format(gain=f"{topic['gain']:g}", how=gained(topic)),
    ]


def gained(topic: Mapping[str, Any]) -> str:
    """The sum that a gain is."""
    parts = ((topic["n_missing"], MISSING), (topic["n_unanswered"], FAILED))
    return " + ".join(f"{n} × {each:g}" for n, each in parts if n)


def outside(document: Mapping[str, Any], language: str) -> list[str]:
    """What makes a topic, and how many questions are in none.

    Args:
        document: of the corpus.
        language: in which it is said.
    """
    words = texts("corpus", language)
    chance, alone = document["cohesion_by_chance"], document["without_topic"]
    lines = [] if document["topics"] else [words["no topics"]]
    lines += [words["by chance"].format(chance=chance)] if chance is not None else []
    lines += [words["without topic"].format(n=alone)] if alone else []
    if unserved := document["without_topic_or_page"]:
        lines.append(words["without page"].format(n=unserved))
        if examples := document.get("examples_unserved"):  # stored analyses may be older than these
            lines.append(words["for example"].format(examples=" | ".join(text[:LONGEST] for text in examples)))
    return lines


def counted_apart(chatter: Sequence[Mapping[str, Any]], language: str) -> str:
    """How many of the log are no questions, and of which kind; empty where all are."""
    words = texts("corpus", language)
    kinds = ", ".join(f"{words['kind ' + row['kind']]} {row['n']}" for row in chatter)
    return words["apart"].format(n=sum(row["n"] for row in chatter), kinds=kinds) if chatter else ""

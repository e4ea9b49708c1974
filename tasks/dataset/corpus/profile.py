"""The profile of a log: lengths, scripts, seasons, abbreviations, growth; and the reasons for an advice."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from yarus.tasks.cases.text import WORD
from yarus.tasks.config.texts import texts
from yarus.tasks.dataset.corpus.corpus_schema import Abbreviation, Growth, Profile, Seasons
from yarus.tasks.dataset.corpus.question_log import Log
from yarus.tasks.dataset.corpus.topics import FAILED, MISSING

QUANTILES = {"min": 0.0, "p5": 0.05, "median": 0.5, "p95": 0.95, "max": 1.0}
ABBREVIATION = re.compile(r"\b(?:[А-ЯЁ]{2,6}|[A-Z]{2,6})\b")
CYRILLIC, LATIN = re.compile("[а-яё]", re.IGNORECASE), re.compile("[a-z]", re.IGNORECASE)
SHOUTED = 0.7
"""A text of three words or more with a larger share of them in capitals is shouted: they are no abbreviations."""
MOST = 30


def profile(log: Log) -> Profile:
    """What the log is like, without any model."""
    questions = [row["question"] for row in log.questions]
    times = [row["created_at"] for row in log.questions if row["created_at"] is not None]
    users = {row["user_id"] for row in log.questions} - {None}
    return {
        "n_questions": len(questions),
        "n_users": len(users) or None,
        "n_chunks": len(log.corpus.ids),
        "lengths": {
            "question_characters": quantiles([len(text) for text in questions]),
            "question_words": quantiles([len(WORD.findall(text)) for text in questions]),
            "chunk_characters": quantiles([len(text) for text in log.corpus.texts]),
        },
        "scripts": scripts(questions),
        "abbreviations": abbreviations(questions, log.corpus.texts),
        "seasons": seasons(times),
        "growth": growth(times),
    }


def quantiles(values: Sequence[int]) -> dict[str, float] | None:
    """Minimum, 5 %, median, 95 % and maximum; None without values."""
    if not values:
        return None
    return dict(zip(QUANTILES, np.quantile(values, list(QUANTILES.values())).tolist(), strict=True))


def scripts(texts: Sequence[str]) -> dict[str, float]:
    """Share of texts written in Cyrillic letters, in Latin ones, in both, and without either."""
    found = Counter(_script(text) for text in texts)
    return {name: found[name] / max(1, len(texts)) for name in ("cyrillic", "latin", "mixed", "neither")}


def abbreviations(questions: Sequence[str], chunks: Sequence[str]) -> list[Abbreviation]:
    """The commonest abbreviations of the questions, and in how many chunks each stands; 0: nothing explains it."""
    asked = Counter(word for text in questions for word in set(_abbreviations(text)))
    known = Counter(word for text in chunks for word in set(ABBREVIATION.findall(text)))
    best = sorted(asked.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST]
    return [{"abbreviation": word, "questions": n, "chunks": known[word]} for word, n in best]


def seasons(times: Sequence[datetime]) -> Seasons:
    """Questions by month of the year and by day of the week (0 is Monday); None without times."""
    if not times:
        return {"by_month": None, "by_weekday": None, "reason": "no question has created_at"}
    months, days = Counter(at.month for at in times), Counter(at.weekday() for at in times)
    return {
        "by_month": {str(month): months[month] for month in range(1, 13)},
        "by_weekday": {str(day): days[day] for day in range(7)},
        "reason": None,
    }


def growth(times: Sequence[datetime]) -> Growth:
    """Questions a month, in order, and by how much a month has grown on the one before, on average.

    The first and the last month are seldom whole, so they count in the series only.

    Returns:
        `months`, and `monthly`: the mean factor less 1; None below three whole months or where one is empty.
    """
    counts = Counter(f"{at.year:04d}-{at.month:02d}" for at in times)
    if not counts:
        return {"months": [], "monthly": None}
    months = np.arange(np.datetime64(min(counts)), np.datetime64(max(counts)) + 1).astype(str).tolist()
    whole = [counts[month] for month in months[1:-1]]
    enough = len(whole) >= 3 and all(whole)
    factor = (whole[-1] / whole[0]) ** (1 / (len(whole) - 1)) - 1 if enough else None
    return {"months": [{"month": month, "n": counts[month]} for month in months], "monthly": factor}


def _script(text: str) -> str:
    cyrillic, latin = bool(CYRILLIC.search(text)), bool(LATIN.search(text))
    return "mixed" if cyrillic and latin else "cyrillic" if cyrillic else "latin" if latin else "neither"


def _abbreviations(text: str) -> list[str]:
    words = WORD.findall(text)
    shouted = len(words) >= 3 and sum(word.isupper() for word in words) > SHOUTED * len(words)
    return [] if shouted else ABBREVIATION.findall(text)


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
    parts = ((topic["n_missing"], MISSING), (topic["n_unanswered"], FAILED))
    how = " + ".join(f"{n} × {each:g}" for n, each in parts if n)
    return [
        words["asked times"].format(n=topic["n"], n_distinct=topic["n_distinct"]),
        *(words[f"of which {name}"].format(n=topic[name]) for name in COUNTS if topic[name]),
        words["gain"].format(gain=f"{topic['gain']:g}", how=how),
    ]


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

"""Profile of a log: lengths, scripts, seasonality, abbreviations, growth; and texts about content gaps."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from yarus.tasks.cases.text import WORD_PATTERN
from yarus.tasks.config.texts import texts
from yarus.tasks.dataset.corpus.corpus_schema import Abbreviation, LogProfile, QuestionGrowth, Seasonality
from yarus.tasks.dataset.corpus.question_log import QuestionLog
from yarus.tasks.dataset.corpus.topics import FAILED_GAIN, MISSING_GAIN

QUANTILES = {"min": 0.0, "p5": 0.05, "median": 0.5, "p95": 0.95, "max": 1.0}
ABBREVIATION = re.compile(r"\b(?:[А-ЯЁ]{2,6}|[A-Z]{2,6})\b")
CYRILLIC, LATIN = re.compile("[а-яё]", re.IGNORECASE), re.compile("[a-z]", re.IGNORECASE)
SHOUTED_SHARE = 0.7
"""Share of capitalised words above which a text of at least three words is shouted, and has no abbreviations."""
MAX_ABBREVIATIONS = 30


def log_profile(log: QuestionLog) -> LogProfile:
    """Return the profile of the log, computed without a model."""
    questions = [row["question"] for row in log.questions]
    times = [row["created_at"] for row in log.questions if row["created_at"] is not None]
    users = {row["user_id"] for row in log.questions} - {None}
    return {
        "n_questions": len(questions),
        "n_users": len(users) or None,
        "n_chunks": len(log.corpus.ids),
        "lengths": {
            "question_characters": length_quantiles([len(text) for text in questions]),
            "question_words": length_quantiles([len(WORD_PATTERN.findall(text)) for text in questions]),
            "chunk_characters": length_quantiles([len(text) for text in log.corpus.texts]),
        },
        "scripts": script_shares(questions),
        "abbreviations": count_abbreviations(questions, log.corpus.texts),
        "seasonality": seasonality(times),
        "growth": monthly_growth(times),
    }


def length_quantiles(values: Sequence[int]) -> dict[str, float] | None:
    """Return minimum, 5 %, median, 95 % and maximum; None without values."""
    if not values:
        return None
    return dict(zip(QUANTILES, np.quantile(values, list(QUANTILES.values())).tolist(), strict=True))


def script_shares(texts: Sequence[str]) -> dict[str, float]:
    """Return the shares of texts in Cyrillic letters, in Latin ones, in both, and without either."""
    counts = Counter(_script_kind(text) for text in texts)
    return {name: counts[name] / max(1, len(texts)) for name in ("cyrillic", "latin", "mixed", "neither")}


def count_abbreviations(questions: Sequence[str], chunks: Sequence[str]) -> list[Abbreviation]:
    """Return the most common abbreviations of questions, and the number of chunks with each; 0 if none has it."""
    question_counts = Counter(word for text in questions for word in set(_find_abbreviations(text)))
    chunk_counts = Counter(word for text in chunks for word in set(ABBREVIATION.findall(text)))
    most_common = sorted(question_counts.items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_ABBREVIATIONS]
    return [{"abbreviation": word, "questions": n, "chunks": chunk_counts[word]} for word, n in most_common]


def seasonality(times: Sequence[datetime]) -> Seasonality:
    """Return the number of questions by month and by weekday (0 is Monday); None without times."""
    if not times:
        return {"by_month": None, "by_weekday": None, "reason": "no question has created_at"}
    months, days = Counter(time.month for time in times), Counter(time.weekday() for time in times)
    return {
        "by_month": {str(month): months[month] for month in range(1, 13)},
        "by_weekday": {str(day): days[day] for day in range(7)},
        "reason": None,
    }


def monthly_growth(times: Sequence[datetime]) -> QuestionGrowth:
    """Return the number of questions per month, and the mean growth from month to month.

    The first and last month are usually incomplete, so that the growth rate ignores them.

    Returns:
        `months`, and `monthly_growth`: the mean factor minus 1; None below three complete months, or if one of them is
        empty.
    """
    counts = Counter(f"{time.year:04d}-{time.month:02d}" for time in times)
    if not counts:
        return {"months": [], "monthly_growth": None}
    months = np.arange(np.datetime64(min(counts)), np.datetime64(max(counts)) + 1).astype(str).tolist()
    complete = [counts[month] for month in months[1:-1]]
    is_sufficient = len(complete) >= 3 and all(complete)
    factor = (complete[-1] / complete[0]) ** (1 / (len(complete) - 1)) - 1 if is_sufficient else None
    return {"months": [{"month": month, "n": counts[month]} for month in months], "monthly_growth": factor}


def _script_kind(text: str) -> str:
    cyrillic, latin = bool(CYRILLIC.search(text)), bool(LATIN.search(text))
    return "mixed" if cyrillic and latin else "cyrillic" if cyrillic else "latin" if latin else "neither"


def _find_abbreviations(text: str) -> list[str]:
    words = WORD_PATTERN.findall(text)
    is_shouted = len(words) >= 3 and sum(word.isupper() for word in words) > SHOUTED_SHARE * len(words)
    return [] if is_shouted else ABBREVIATION.findall(text)


MAX_CHARS = 160
"""Maximum characters of an example question."""
COUNTS = ("n_missing", "n_unanswered", "n_downvoted")


def content_gap_reasons(topic: Mapping[str, Any], language: str) -> list[str]:
    """Return texts about the number of questions, their problems (without zero counts) and the expected gain.

    Args:
        topic: a topic of `content_gaps`.
        language: language of the texts.
    """
    templates = texts("corpus", language)
    parts = ((topic["n_missing"], MISSING_GAIN), (topic["n_unanswered"], FAILED_GAIN))
    gain_sum = " + ".join(f"{n} × {gain_per_question:g}" for n, gain_per_question in parts if n)
    return [
        templates["asked times"].format(n=topic["n"], n_distinct=topic["n_distinct"]),
        *(templates[f"of which {name}"].format(n=topic[name]) for name in COUNTS if topic[name]),
        templates["gain"].format(gain=f"{topic['expected_gain']:g}", how=gain_sum),
    ]


def unclustered_texts(document: Mapping[str, Any], language: str) -> list[str]:
    """Return texts about the definition of topics, and the number of questions without one.

    Args:
        document: document of the corpus analysis.
        language: language of the texts.
    """
    templates = texts("corpus", language)
    chance, n_without_topic = document["cohesion_threshold"], document["n_unclustered"]
    lines = [] if document["topics"] else [templates["no topics"]]
    lines += [templates["by chance"].format(chance=chance)] if chance is not None else []
    lines += [templates["without topic"].format(n=n_without_topic)] if n_without_topic else []
    if n_unserved := document["n_unclustered_without_page"]:
        lines.append(templates["without page"].format(n=n_unserved))
        if examples := document.get("unserved_examples"):  # older stored analyses have no examples
            lines.append(templates["for example"].format(examples=" | ".join(text[:MAX_CHARS] for text in examples)))
    return lines


def non_questions_text(chatter: Sequence[Mapping[str, Any]], language: str) -> str:
    """Return a text with the number of non-questions in the log by kind; empty if there are none."""
    templates = texts("corpus", language)
    kinds = ", ".join(f"{templates['kind ' + row['kind']]} {row['n']}" for row in chatter)
    return templates["apart"].format(n=sum(row["n"] for row in chatter), kinds=kinds) if chatter else ""

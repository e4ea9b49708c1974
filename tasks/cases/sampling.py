"""Seeded stratified samples of logged questions."""

import random
from collections.abc import Sequence

from db.urls import canonical_url
from tasks.cases.labels import Row, shown_page, stratum


def sampled(strata: Sequence[str], limit: int | None, seed: int) -> list[int]:
    """The numbers of a seeded sample, ascending, or all; every stratum keeps its share.

    Ordered by stratum, at random within, and taken at equal steps from a random start.
    """
    if limit is None or limit >= len(strata):
        return list(range(len(strata)))
    generator = random.Random(seed)
    keys = [(stratum, generator.random()) for stratum in strata]
    order = sorted(range(len(strata)), key=keys.__getitem__)
    step, start = len(strata) / limit, generator.random()
    return sorted(order[int((start + number) * step)] for number in range(limit))


def topic_and_score(question: Row) -> str:
    """The stratum of a question for sampling."""
    return f"{question.get('cluster') or canonical_url(question['confluence_url']) or ''}|{question['score']}"


def page_and_stratum(rows: Sequence[Row]) -> str:
    """The same of duplicate questions."""
    return f"{next(iter(shown_page(rows)), '')}|{stratum(row['score'] for row in rows)}"

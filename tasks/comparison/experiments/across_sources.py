"""Sources side by side: the same questions over corpora that are cut otherwise, paired by what is asked."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

import pyarrow as pa

from yarus.db.errors import InputError
from yarus.db.source_rows import read_questions
from yarus.db.sources import registered, snapshot
from yarus.tasks.cases.table import rows_of, values_of
from yarus.tasks.cases.text import folded
from yarus.tasks.config.connections import source
from yarus.tasks.config.flow_parameters import Sweep

Asked = Sequence[tuple[str, str]]
"""Id and text of questions."""
Keys = Mapping[str, str]
"""Id of a question -> what is the same of the same question in other sources."""


def require_common_questions(parameters: Sweep) -> None:
    """Makes sure that what is swept over several sources can be compared.

    Raises:
        InputError: no such source, one without questions, two that have none in common, or a sample by ids that differ.
    """
    if len(parameters.sources) < 2:
        return
    asked = {name: _questions(name) for name in parameters.sources}
    by_id = _ids_agree(asked)
    known = {name: set(keys.values()) for name, keys in same_questions(asked).items()}
    for one, other in combinations(known, 2):
        if not known[one] & known[other]:
            raise InputError(
                "sources {one!r} and {other!r} have no question in common, by id or by text: load the same questions "
                "into both, over chunks that are cut otherwise",
                one=one,
                other=other,
            )
    if parameters.limit and not by_id:
        raise InputError(
            "--limit {limit} draws by id, and the questions of {known} have other ids in each: leave it out, or load "
            "them with equal ids",
            limit=parameters.limit,
            known=", ".join(map(repr, known)),
        )


def same_questions(asked: Mapping[str, Asked]) -> dict[str, Keys]:
    """What questions of several sources are paired by: id and text where the ids agree, else the text alone.

    Texts are compared without case and white space. Of those that a source has twice, text alone does not tell which
    is which, so they are left out.

    Args:
        asked: the questions of each source.
    """
    texts = {name: {key: folded(text) for key, text in some} for name, some in asked.items()}
    if _ids_agree(asked):
        return {name: {key: f"{key}\0{text}" for key, text in some.items()} for name, some in texts.items()}
    times = {name: Counter(some.values()) for name, some in texts.items()}
    return {name: {key: text for key, text in some.items() if times[name][text] == 1} for name, some in texts.items()}


def paired_by_question(tables: Mapping[str, pa.Table], sources: Mapping[str, str]) -> dict[str, pa.Table]:
    """The cases of arms with a case id that is the same for the same question of another source.

    Args:
        tables: cases by arm.
        sources: the source of each arm.
    """
    asked: dict[str, dict[str, str]] = {}
    for arm, cases in tables.items():
        rows = rows_of(cases, "question_id", "question")
        asked.setdefault(sources[arm], {}).update(rows)
    keys = same_questions({name: list(some.items()) for name, some in asked.items()})
    return {arm: _with_keys(cases, keys[sources[arm]]) for arm, cases in tables.items()}


def _with_keys(cases: pa.Table, keys: Keys) -> pa.Table:
    named = pa.array([keys.get(key) for key in values_of(cases, "question_id")], pa.string())
    place = cases.column_names.index("case_id")
    return cases.set_column(place, "case_id", named).filter(named.is_valid())


def _ids_agree(asked: Mapping[str, Asked]) -> bool:
    """Whether each text that two sources share stands under one id in both."""
    pairs = [{(key, folded(text)) for key, text in some} for some in asked.values()]
    return all(
        {text for _, text in one} & {text for _, text in other} == {text for _, text in one & other}
        for one, other in combinations(pairs, 2)
    )


def _questions(name: str) -> Asked:
    where = source(name)
    with snapshot(where) as connection:
        rows = read_questions(connection, registered(connection, where))
    if not rows:
        raise InputError("source {name!r} has no questions; load some: yarus load … --into {name}", name=name)
    return [(row["question_id"], row["question"]) for row in rows]

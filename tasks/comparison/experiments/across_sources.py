"""Compare sources: pair the same questions over corpora with different chunks."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

import pyarrow as pa

from yarus.db.errors import InputError
from yarus.db.source_rows import read_questions
from yarus.db.sources import open_snapshot, refresh_source
from yarus.tasks.cases.table import column_values, iterate_rows
from yarus.tasks.cases.text import fold_text
from yarus.tasks.config.connections import open_source
from yarus.tasks.config.flow_parameters import SweepParameters

QuestionTexts = Sequence[tuple[str, str]]
"""Id and text of questions."""
QuestionKeys = Mapping[str, str]
"""Id of a question -> the key that it shares with the same question in other sources."""


def require_common_questions(parameters: SweepParameters) -> None:
    """Check that the sources of a sweep can be compared.

    Raises:
        InputError: a source does not exist or has no questions, two have no common questions, or a sample is drawn by
            ids that differ.
    """
    if len(parameters.sources) < 2:
        return
    questions_by_source = {name: _read_questions(name) for name in parameters.sources}
    by_id = _ids_agree(questions_by_source)
    keys_by_source = {name: set(keys.values()) for name, keys in match_questions(questions_by_source).items()}
    for source_a, source_b in combinations(keys_by_source, 2):
        if not keys_by_source[source_a] & keys_by_source[source_b]:
            raise InputError(
                "sources {one!r} and {other!r} have no question in common, by id or by text: load the same questions "
                "into both, over chunks that are cut otherwise",
                one=source_a,
                other=source_b,
            )
    if parameters.limit and not by_id:
        raise InputError(
            "--limit {limit} draws by id, and the questions of {known} have other ids in each: leave it out, or load "
            "them with equal ids",
            limit=parameters.limit,
            known=", ".join(map(repr, keys_by_source)),
        )


def match_questions(questions_by_source: Mapping[str, QuestionTexts]) -> dict[str, QuestionKeys]:
    """Return the keys by which questions of sources are paired: id and text if ids agree, else the text alone.

    Texts are compared without case and white space. If a source has a text twice, the text does not identify the
    question, so both are left out.

    Args:
        questions_by_source: the questions of each source.
    """
    texts = {name: {key: fold_text(text) for key, text in questions} for name, questions in questions_by_source.items()}
    if _ids_agree(questions_by_source):
        return {name: {key: f"{key}\0{text}" for key, text in questions.items()} for name, questions in texts.items()}
    counts = {name: Counter(questions.values()) for name, questions in texts.items()}
    return {
        name: {key: text for key, text in questions.items() if counts[name][text] == 1}
        for name, questions in texts.items()
    }


def pair_by_question(tables: Mapping[str, pa.Table], sources: Mapping[str, str]) -> dict[str, pa.Table]:
    """Return the cases of arms with case ids that are equal for the same question of other sources.

    Args:
        tables: cases by arm.
        sources: the source of each arm.
    """
    questions_by_source: dict[str, dict[str, str]] = {}
    for arm, cases in tables.items():
        rows = iterate_rows(cases, "question_id", "question")
        questions_by_source.setdefault(sources[arm], {}).update(rows)
    keys = match_questions({name: list(questions.items()) for name, questions in questions_by_source.items()})
    return {arm: _replace_ids(cases, keys[sources[arm]]) for arm, cases in tables.items()}


def _replace_ids(cases: pa.Table, keys: QuestionKeys) -> pa.Table:
    case_ids = pa.array([keys.get(key) for key in column_values(cases, "question_id")], pa.string())
    position = cases.column_names.index("case_id")
    return cases.set_column(position, "case_id", case_ids).filter(case_ids.is_valid())


def _ids_agree(questions_by_source: Mapping[str, QuestionTexts]) -> bool:
    """Return whether every text that two sources share has the same id in both."""
    pairs = [{(key, fold_text(text)) for key, text in questions} for questions in questions_by_source.values()]
    return all(
        {text for _, text in pairs_a} & {text for _, text in pairs_b} == {text for _, text in pairs_a & pairs_b}
        for pairs_a, pairs_b in combinations(pairs, 2)
    )


def _read_questions(name: str) -> QuestionTexts:
    source_connection = open_source(name)
    with open_snapshot(source_connection) as connection:
        rows = read_questions(connection, refresh_source(connection, source_connection))
    if not rows:
        raise InputError("source {name!r} has no questions; load some: yarus load … --into {name}", name=name)
    return [(row["question_id"], row["question"]) for row in rows]

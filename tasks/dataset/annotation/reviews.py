"""What annotators have said, kept by annotator, and what follows for the labels; how far annotators agree.

A question's `annotation.review` is {"annotators": {NAME: verdict}, "rejected": true or false}. A verdict has what was
filled in (the nuggets as edited, one a line), whose answer `answer_ok` is about (`answer_of`), and when each was said
(`at`; one time for all in reviews of older versions). Labels follow the majority of those who said anything; where they
are even, who spoke last. A question most of them found unfit is rejected, and no evaluation uses it until it is found
fit again.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import combinations
from typing import Any

import numpy as np
from sqlalchemy import select

from yarus.db import tables
from yarus.db.engine import reaching
from yarus.db.errors import InputError
from yarus.db.loading.fill import Row as Loaded
from yarus.db.loading.fill import Rows, fill_within, lock
from yarus.db.source_rows import Row, read_questions
from yarus.db.sources import Source, snapshot
from yarus.metrics.agreement import kappa_of, kappa_parts, weighted_kappa
from yarus.metrics.statistics import mean_interval, posterior_interval
from yarus.tasks.cases.labels import is_judged, is_reviewed
from yarus.tasks.cases.outcomes import reference_of, shown_rightly
from yarus.tasks.config.connections import database, source
from yarus.tasks.dataset.annotation.columns import VERDICTS, YES_NO, Relevant
from yarus.tasks.dataset.dataset_schema import Agreement, PairAgreement, SourceAgreement
from yarus.tasks.dataset.labelling.alpha import alpha
from yarus.tasks.dataset.nuggets import from_text
from yarus.tasks.evaluation.numbers import finite

Review = dict[str, Any]
"""What an annotator says of a question: field -> verdict."""
OUTCOMES = kappa_parts([0, 1, 0, 1], [0, 1, 1, 0])
"""What two can say who say yes or no."""


def apply(where: Source, verdicts: Mapping[str, Review], annotator: str) -> int:
    """Stores an annotator's verdicts and what follows from all annotators' for the labels, whole or not at all.

    Args:
        where: a loaded source.
        verdicts: by question; what is not filled in stays as the annotator has said before.
        annotator: whose they are.

    Returns:
        How many of the questions are rejected now.
    """
    engine = database()
    with reaching(engine), engine.begin() as connection:
        lock(connection, where.name)  # before the reviews are read: what another import stores meanwhile would be lost
        at = datetime.now(UTC).isoformat()
        rows = [
            _reviewed(row, annotator, verdicts[row["question_id"]], at)
            for row in read_questions(connection, where, all_rows=True)
            if row["question_id"] in verdicts
        ]
        of = tables.source.c
        language, origin = connection.execute(select(of.language, of.origin).where(of.name == where.name)).one()
        fill_within(connection, where.name, Rows(annotations=rows), language=language, origin=origin)
    return sum(row.values["review"]["rejected"] for row in rows)


def agreement(source_name: str) -> SourceAgreement:
    """How far every two annotators of a source agree, on the questions that both have labelled.

    Raises:
        InputError: no such source, or nobody has labelled anything.
    """
    where = source(source_name)
    with snapshot(where) as connection:
        rows = read_questions(connection, where, all_rows=True)
    said = [(row.get("review") or {}).get("annotators", {}) for row in rows]
    users = [row["user_id"] for row in rows]
    counts = Counter(name for of in said for name in of)
    if not counts:
        raise InputError(
            "source {source!r}: nobody has labelled it; yarus dataset import-annotation FILE …", source=where.name
        )
    pairs: list[PairAgreement] = [
        {"a": a, "b": b, "field": field, **_agreement(said, users, a, b, field)}
        for a, b in combinations(sorted(counts), 2)
        for field in (*YES_NO, "relevant")
    ]
    together = {field: alpha(_alike(said, field), users) for field in YES_NO} if pairs else {}
    return {"source": where.name, "annotators": dict(sorted(counts.items())), "alpha": together, "pairs": pairs}


def _alike(said: Sequence[Mapping[str, Review]], field: str) -> list[dict[str, float]]:
    """Of each question, what those have said who spoke of the same: of an answer, of the one most spoke of."""
    found = []
    for of in said:
        spoken = {name: verdict for name, verdict in of.items() if field in verdict}
        whose = Counter(verdict.get("answer_of") for verdict in spoken.values()).most_common(1)
        same = {name for name, one in spoken.items() if field != "answer_ok" or one.get("answer_of") == whose[0][0]}
        found.append({name: float(spoken[name][field]) for name in same})
    return found


def _agreement(said: Sequence[Mapping[str, Review]], users: Sequence[Any], a: str, b: str, field: str) -> Agreement:
    places = [place for place, of in enumerate(said) if _comparable(of.get(a, {}), of.get(b, {}), field)]
    both = [(said[place][a][field], said[place][b][field]) for place in places]
    groups = [users[place] for place in places]
    if field == "relevant":
        return _overlap([(_flat(one), _flat(other)) for one, other in both], groups)
    one, two = (np.array([float(pair[side]) for pair in both]) for side in (0, 1))
    shared = float(np.mean(one == two)) if both else None
    kappa = weighted_kappa(one, two)  # of two categories the quadratic weights are Cohen's plain kappa
    low, high = posterior_interval(kappa_parts(one, two), kappa_of, unseen=OUTCOMES, seed=0, groups=groups)
    reason = None if kappa == kappa else "both always say the same" if both else "no question in common"
    return {"n": len(both), "agreement": shared, "kappa": finite(kappa), "ci_low": finite(low),
            "ci_high": finite(high), "reason": reason}  # fmt: skip


def _comparable(one: Review, other: Review, field: str) -> bool:
    """Both have said something of the same: verdicts on the answers of two systems are not one question."""
    same = field != "answer_ok" or one.get("answer_of") == other.get("answer_of")
    return same and field in one and field in other


def _overlap(both: Sequence[tuple[set[tuple[str, str]], set[tuple[str, str]]]], groups: Sequence[Any]) -> Agreement:
    shares = np.array([len(one & two) / len(one | two) if one | two else 1.0 for one, two in both])
    low, high = mean_interval(shares, seed=0, low=0, high=1, groups=groups)
    mean = float(shares.mean()) if both else None
    reason = "the mean overlap of two sets; kappa needs a yes or no" if both else "no question in common"
    return {"n": len(both), "agreement": mean, "kappa": None, "ci_low": finite(low), "ci_high": finite(high),
            "reason": reason}  # fmt: skip


def _reviewed(row: Row, annotator: str, verdict: Review, at: str) -> Loaded:
    """The annotation of a question after an annotator's verdict."""
    review = dict(row.get("review") or {})
    before = review.get("annotators", {})
    said = {**before, annotator: merged(before.get(annotator, {}), verdict, at)}
    review |= {"annotators": said, "rejected": majority(said, "question_ok") is False}
    return Loaded(f"question {row['question_id']}", labels_of(row, said) | {"review": review})


def merged(before: Review, verdict: Review, at: str) -> Review:
    """What an annotator has said, each with its own time: who adds a note does not speak again of the rest."""
    times = {field: _said_at(before, field) for field in VERDICTS if field in before}
    return {**before, **verdict, "at": times | {field: at for field in VERDICTS if field in verdict}}


def _said_at(verdict: Review, field: str) -> str:
    at: str | dict[str, str] = verdict["at"]
    return at if isinstance(at, str) else at[field]


def labels_of(row: Row, said: Mapping[str, Review]) -> Row:
    """The annotation that follows; a label that nobody spoke of stays, also one that was only the log's."""
    labels = {
        "question_id": row["question_id"],
        "ground_truth_answer": _answer(row, said),
        "relevant_chunk_ids": row.get("relevant_chunk_ids"),
        "relevant_urls": row.get("relevant_urls") if is_judged(row) else _shown(row),
        "ground_truth_show": shown_rightly(row),
        "answerable": row.get("answerable"),
        "nuggets": row.get("nuggets"),
        "origin": row["origin"] if is_reviewed(row) else "manual",
    }
    if (relevant := majority(said, "relevant")) is not None:
        apart = _apart(relevant)
        labels |= {"relevant_chunk_ids": apart["chunks"], "relevant_urls": apart["pages"]}
        labels |= {"answerable": any(apart.values())}
    if (show := majority(said, "show")) is not None:
        labels["ground_truth_show"] = show
    if (nuggets := majority(said, "nuggets")) is not None:
        labels["nuggets"] = from_text(nuggets)
    return labels


def _shown(row: Row) -> list[str] | None:
    """The page in the log, which counts as relevant where nobody has said what is."""
    return [row["confluence_url"]] if row["confluence_url"] else row.get("relevant_urls")


def _answer(row: Row, said: Mapping[str, Review]) -> str | None:
    """The reference: as it was, or the bot's own answer where the annotators, who were shown it, say so."""
    logged: str | None = row["answer"]
    before = reference_of(row)
    of_log = {name: verdict for name, verdict in said.items() if verdict.get("answer_of") == "log"}
    verdict = majority(of_log, "answer_ok")
    if verdict is True:
        return before or logged
    return None if verdict is False and before == logged else before


def majority(said: Mapping[str, Review], field: str) -> Any:
    """What most annotators say; where they are even, what was said last; None where nobody spoke."""
    verdicts = [verdict for verdict in said.values() if field in verdict]
    spoken = [verdict[field] for verdict in sorted(verdicts, key=lambda verdict: _said_at(verdict, field))]
    counts = Counter(_content(value) for value in spoken)
    most = [value for value in spoken if counts[_content(value)] == max(counts.values())]
    return most[-1] if most else None


def _content(value: Any) -> str:
    """Equal for equal verdicts; the order in which chunks are named says nothing."""
    return repr(sorted(_flat(value)) if isinstance(value, list | dict) else value)


def _apart(relevant: Any) -> Relevant:
    """Chunks and pages; older versions have stored one list, in which what looked like an address was a page."""
    if isinstance(relevant, dict):
        return relevant
    pages = [name for name in relevant if "://" in name]
    return {"chunks": [name for name in relevant if name not in pages], "pages": pages}


def _flat(relevant: Any) -> set[tuple[str, str]]:
    return {(kind, name) for kind, names in _apart(relevant).items() for name in names}

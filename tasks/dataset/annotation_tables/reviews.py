"""Verdicts of annotators, the labels that follow from them, and agreement of annotators.

A question's `annotation.review` is {"annotators": {NAME: verdict}, "rejected": true or false}. A verdict contains the
filled columns (nuggets as edited, one per line), the source of the answer (`answer_of`), and the time of each column
(`at`; older versions stored one time for all columns). Labels follow the majority of the annotators who filled in the
column; in a tie the latest verdict decides. A question that the majority found unfit is rejected, and evaluations skip
it until it is found fit again.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import combinations
from typing import Any

import numpy as np
from sqlalchemy import select

from yarus.db import tables
from yarus.db.engine import reporting_unreachable
from yarus.db.errors import InputError
from yarus.db.loading.load_rows import ImportedRows, load_rows_in_transaction, lock_source
from yarus.db.loading.load_rows import IncomingRow as Loaded
from yarus.db.source_rows import QuestionRow, read_questions
from yarus.db.sources import Source, open_snapshot
from yarus.metrics.agreement import kappa_from_totals, kappa_parts, weighted_kappa
from yarus.metrics.statistics import mean_interval, posterior_interval
from yarus.tasks.cases.labels import is_judged, is_reviewed
from yarus.tasks.cases.outcomes import reference_answer, should_be_shown
from yarus.tasks.config.connections import database, open_source
from yarus.tasks.dataset.annotation_tables.columns import VERDICT_COLUMNS, YES_NO, RelevantNames
from yarus.tasks.dataset.dataset_schema import AnnotatorAgreement, ColumnAgreement, PairAgreement
from yarus.tasks.dataset.labelling.alpha import annotator_alpha
from yarus.tasks.dataset.nuggets import parse_nuggets
from yarus.tasks.evaluation.number_format import replace_non_finite

Review = dict[str, Any]
"""Verdicts of an annotator on a question: column -> verdict."""
UNSEEN = kappa_parts([0, 1, 0, 1], [0, 1, 1, 0])
"""Parts of kappa for the possible verdicts of two annotators who answer yes or no."""


def store_verdicts(data_source: Source, verdicts: Mapping[str, Review], annotator: str) -> int:
    """Store an annotator's verdicts and the resulting labels in one transaction.

    Args:
        data_source: the loaded source.
        verdicts: verdicts by question; columns that are not filled in keep the annotator's earlier verdict.
        annotator: name of the annotator.

    Returns:
        Number of the questions that are rejected now.
    """
    engine = database()
    with reporting_unreachable(engine), engine.begin() as connection:
        # Before the reviews are read; otherwise reviews of a concurrent import would be lost.
        lock_source(connection, data_source.name)
        timestamp = datetime.now(UTC).isoformat()
        rows = [
            _review_row(row, annotator, verdicts[row["question_id"]], timestamp)
            for row in read_questions(connection, data_source, all_rows=True)
            if row["question_id"] in verdicts
        ]
        columns = tables.source.c
        language, origin = connection.execute(
            select(columns.language, columns.origin).where(columns.name == data_source.name)
        ).one()
        load_rows_in_transaction(
            connection, data_source.name, ImportedRows(annotations=rows), language=language, origin=origin
        )
    return sum(row.values["review"]["rejected"] for row in rows)


def annotator_agreement(source_name: str) -> AnnotatorAgreement:
    """Return the agreement of each pair of annotators of a source, on the questions that both have labelled.

    Raises:
        InputError: the source does not exist, or has no labels.
    """
    data_source = open_source(source_name)
    with open_snapshot(data_source) as connection:
        rows = read_questions(connection, data_source, all_rows=True)
    verdicts = [(row.get("review") or {}).get("annotators", {}) for row in rows]
    users = [row["user_id"] for row in rows]
    counts = Counter(name for reviews in verdicts for name in reviews)
    if not counts:
        raise InputError(
            "source {source!r}: nobody has labelled it; yarus dataset import-annotation FILE …", source=data_source.name
        )
    pairs: list[PairAgreement] = [
        {"a": a, "b": b, "field": field, **_pair_agreement(verdicts, users, a, b, field)}
        for a, b in combinations(sorted(counts), 2)
        for field in (*YES_NO, "relevant")
    ]
    alphas = {field: annotator_alpha(_comparable_values(verdicts, field), users) for field in YES_NO} if pairs else {}
    return {"source": data_source.name, "annotators": dict(sorted(counts.items())), "alpha": alphas, "pairs": pairs}


def _comparable_values(verdicts: Sequence[Mapping[str, Review]], field: str) -> list[dict[str, float]]:
    """Return the comparable values of each question; for `answer_ok`, those on the most common answer."""
    values = []
    for reviews in verdicts:
        comparable = {name: review for name, review in reviews.items() if field in review}
        answers = Counter(review.get("answer_of") for review in comparable.values()).most_common(1)
        annotators = {
            name
            for name, review in comparable.items()
            if field != "answer_ok" or review.get("answer_of") == answers[0][0]
        }
        values.append({name: float(comparable[name][field]) for name in annotators})
    return values


def _pair_agreement(
    verdicts: Sequence[Mapping[str, Review]], users: Sequence[Any], a: str, b: str, field: str
) -> ColumnAgreement:
    rows = [row for row, reviews in enumerate(verdicts) if _can_compare(reviews.get(a, {}), reviews.get(b, {}), field)]
    value_pairs = [(verdicts[row][a][field], verdicts[row][b][field]) for row in rows]
    groups = [users[row] for row in rows]
    if field == "relevant":
        return _overlap([(_relevant_pairs(first), _relevant_pairs(second)) for first, second in value_pairs], groups)
    first, second = (np.array([float(pair[side]) for pair in value_pairs]) for side in (0, 1))
    shared = float(np.mean(first == second)) if value_pairs else None
    kappa = weighted_kappa(first, second)  # with two categories, quadratic weights give Cohen's unweighted kappa
    low, high = posterior_interval(kappa_parts(first, second), kappa_from_totals, unseen=UNSEEN, seed=0, groups=groups)
    reason = None if kappa == kappa else "both always say the same" if value_pairs else "no question in common"
    return {"n": len(value_pairs), "agreement": shared, "kappa": replace_non_finite(kappa),
            "ci_low": replace_non_finite(low), "ci_high": replace_non_finite(high), "reason": reason}  # fmt: skip


def _can_compare(first: Review, second: Review, field: str) -> bool:
    """Return whether both verdicts have the column and concern the same answer."""
    is_same_answer = field != "answer_ok" or first.get("answer_of") == second.get("answer_of")
    return is_same_answer and field in first and field in second


def _overlap(
    pairs: Sequence[tuple[set[tuple[str, str]], set[tuple[str, str]]]], groups: Sequence[Any]
) -> ColumnAgreement:
    shares = np.array([len(first & second) / len(first | second) if first | second else 1.0 for first, second in pairs])
    low, high = mean_interval(shares, seed=0, low=0, high=1, groups=groups)
    mean = float(shares.mean()) if pairs else None
    reason = "the mean overlap of two sets; kappa needs a yes or no" if pairs else "no question in common"
    return {"n": len(pairs), "agreement": mean, "kappa": None,
            "ci_low": replace_non_finite(low), "ci_high": replace_non_finite(high), "reason": reason}  # fmt: skip


def _review_row(row: QuestionRow, annotator: str, verdict: Review, timestamp: str) -> Loaded:
    """Return the annotation of a question after an annotator's verdict."""
    review = dict(row.get("review") or {})
    earlier_verdicts = review.get("annotators", {})
    verdicts = {**earlier_verdicts, annotator: merge_verdict(earlier_verdicts.get(annotator, {}), verdict, timestamp)}
    review |= {"annotators": verdicts, "rejected": majority_verdict(verdicts, "question_ok") is False}
    return Loaded(f"question {row['question_id']}", annotation_from_verdicts(row, verdicts) | {"review": review})


def merge_verdict(before: Review, verdict: Review, timestamp: str) -> Review:
    """Merge an annotator's verdicts; each column keeps its own time."""
    times = {field: _verdict_time(before, field) for field in VERDICT_COLUMNS if field in before}
    return {**before, **verdict, "at": times | {field: timestamp for field in VERDICT_COLUMNS if field in verdict}}


def _verdict_time(verdict: Review, field: str) -> str:
    timestamps: str | dict[str, str] = verdict["at"]
    return timestamps if isinstance(timestamps, str) else timestamps[field]


def annotation_from_verdicts(row: QuestionRow, verdicts: Mapping[str, Review]) -> QuestionRow:
    """Return the annotation that follows from the verdicts; labels without a verdict stay, as do those of the log."""
    labels = {
        "question_id": row["question_id"],
        "ground_truth_answer": _reference_answer(row, verdicts),
        "relevant_chunk_ids": row.get("relevant_chunk_ids"),
        "relevant_urls": row.get("relevant_urls") if is_judged(row) else _logged_page(row),
        "ground_truth_show": should_be_shown(row),
        "answerable": row.get("answerable"),
        "nuggets": row.get("nuggets"),
        "origin": row["origin"] if is_reviewed(row) else "manual",
    }
    if (relevant := majority_verdict(verdicts, "relevant")) is not None:
        relevant_names = _split_relevant(relevant)
        labels |= {"relevant_chunk_ids": relevant_names["chunks"], "relevant_urls": relevant_names["pages"]}
        labels |= {"answerable": any(relevant_names.values())}
    if (show := majority_verdict(verdicts, "show")) is not None:
        labels["ground_truth_show"] = show
    if (nuggets := majority_verdict(verdicts, "nuggets")) is not None:
        labels["nuggets"] = parse_nuggets(nuggets)
    return labels


def _logged_page(row: QuestionRow) -> list[str] | None:
    """Return the page in the log, which counts as relevant if people have not labelled relevance."""
    return [row["confluence_url"]] if row["confluence_url"] else row.get("relevant_urls")


def _reference_answer(row: QuestionRow, verdicts: Mapping[str, Review]) -> str | None:
    """Return the reference: the earlier one, or the bot's own answer if annotators approved it."""
    logged: str | None = row["answer"]
    earlier_reference = reference_answer(row)
    log_verdicts = {name: verdict for name, verdict in verdicts.items() if verdict.get("answer_of") == "log"}
    verdict = majority_verdict(log_verdicts, "answer_ok")
    if verdict is True:
        return earlier_reference or logged
    return None if verdict is False and earlier_reference == logged else earlier_reference


def majority_verdict(verdicts_by_annotator: Mapping[str, Review], field: str) -> Any:
    """Return the most frequent verdict; in a tie the latest one; None without verdicts."""
    verdicts = [verdict for verdict in verdicts_by_annotator.values() if field in verdict]
    values = [verdict[field] for verdict in sorted(verdicts, key=lambda verdict: _verdict_time(verdict, field))]
    counts = Counter(_verdict_key(value) for value in values)
    most_frequent = [value for value in values if counts[_verdict_key(value)] == max(counts.values())]
    return most_frequent[-1] if most_frequent else None


def _verdict_key(value: Any) -> str:
    """Return a key that is equal for equal verdicts, regardless of the order of chunks."""
    return repr(sorted(_relevant_pairs(value)) if isinstance(value, list | dict) else value)


def _split_relevant(relevant: Any) -> RelevantNames:
    """Return chunks and pages; older versions stored one list, in which URLs are pages."""
    if isinstance(relevant, dict):
        return relevant
    pages = [name for name in relevant if "://" in name]
    return {"chunks": [name for name in relevant if name not in pages], "pages": pages}


def _relevant_pairs(relevant: Any) -> set[tuple[str, str]]:
    return {(kind, name) for kind, names in _split_relevant(relevant).items() for name in names}

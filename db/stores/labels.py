"""Store people's labels of judged answers or results: one row per case, metric, result and annotator."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import (
    CheckConstraint,
    Column,
    DateTime,
    Double,
    Engine,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    delete,
    func,
    select,
    tuple_,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import RowMapping

from yarus.db.engine import reporting_unreachable
from yarus.db.tables import FINISHED_STATES, YARUS_METADATA, MetricColumns, config_value, evaluation, evaluation_metric

label = Table(
    "label",
    YARUS_METADATA,
    Column("evaluation_id", Text, nullable=False, comment="whose answer it is about; may be gone"),
    Column("case_id", Text, nullable=False),
    Column(
        "metric",
        Text,
        nullable=False,
        comment="the judged mean that it corrects, as avg_faithfulness; relevance where a result is labelled",
    ),
    Column("annotator", Text, nullable=False),
    Column(
        "result",
        Text,
        nullable=False,
        server_default="",
        comment="the chunk or page that is labelled for the question; empty where the answer is",
    ),
    Column("value", Double, comment="0 (no) to 1 (yes); NULL where the annotator passed it over"),
    Column("score", Double, nullable=False, comment="what the judge said of the same answer"),
    Column("stratum", Text, nullable=False, comment="what it was drawn from: the judge's score and the status"),
    Column("stratum_size", Integer, nullable=False, comment="cases of the stratum"),
    Column("probability", Double, nullable=False, comment="of being drawn, when it was"),
    Column("case_group", Text, comment="the user, dialog or page of the case"),
    Column("shown_sha256", Text, nullable=False, comment="of question, answer, passages and reference as shown"),
    Column("judge_key", Text, nullable=False, comment="model, parameters and prompt of the judge: another voids it"),
    Column("source", Text, nullable=False),
    Column("tier", Text, nullable=False),
    Column("note", Text, comment="the annotator's"),
    Column("at", DateTime(timezone=True), server_default=func.now(), nullable=False, comment="when it was said"),
    PrimaryKeyConstraint("evaluation_id", "metric", "case_id", "annotator", "result"),
    Index("label_by_judge", "source", "tier", "judge_key"),
    Index("label_by_source", "source", "metric"),
    CheckConstraint("value BETWEEN 0 AND 1", name="label_within_0_1"),
    CheckConstraint("probability > 0 AND probability <= 1", name="label_drawn"),
    comment="people's labels of judged answers that were drawn at random; they correct the judge's means",
)


class Label(NamedTuple):
    """A row of the table `label`; its column comments explain the fields."""

    evaluation_id: str
    case_id: str
    metric: str
    annotator: str
    value: float | None
    score: float
    stratum: str
    stratum_size: int
    probability: float
    case_group: str | None
    shown_sha256: str
    judge_key: str
    source: str
    tier: str
    note: str | None
    at: datetime
    result: str = ""


_COLUMNS = [label.c[name] for name in Label._fields]


def save_labels(engine: Engine, labels: Iterable[Label]) -> None:
    """Store all labels, or none; a label replaces the annotator's earlier one of the same case and metric."""
    rows = [new_label._asdict() for new_label in labels]
    if not rows:
        return
    with reporting_unreachable(engine), engine.begin() as connection:
        statement = insert(label).values(rows)
        key = [column.name for column in label.primary_key]
        updates = {name: statement.excluded[name] for name in Label._fields if name not in key}
        connection.execute(statement.on_conflict_do_update(index_elements=key, set_=updates))


def delete_last_label(engine: Engine, evaluation_id: str, metric: str, annotator: str) -> Label | None:
    """Delete the newest label of an annotator in an evaluation's metric.

    Returns:
        The deleted label; None if there was none.
    """
    columns = label.c
    is_own = (columns.evaluation_id == evaluation_id) & (columns.metric == metric) & (columns.annotator == annotator)
    newest = (
        select(columns.case_id, columns.result)
        .where(is_own)
        .order_by(columns.at.desc(), columns.case_id, columns.result)
        .limit(1)
    )
    with reporting_unreachable(engine), engine.begin() as connection:
        row = connection.execute(
            delete(label).where(is_own, tuple_(columns.case_id, columns.result).in_(newest)).returning(*_COLUMNS)
        ).first()
    return Label(*row) if row else None


def read_labels(engine: Engine, evaluation_id: str, metric: str | None = None) -> list[Label]:
    """Return the labels of an evaluation's answers, for one metric or all, oldest first."""
    conditions = [label.c.evaluation_id == evaluation_id, *([label.c.metric == metric] if metric else [])]
    statement = select(*_COLUMNS).where(*conditions).order_by(label.c.at, label.c.case_id, label.c.annotator)
    with reporting_unreachable(engine), engine.connect() as connection:
        return [Label(*row) for row in connection.execute(statement)]


def read_labels_of_source(engine: Engine, source: str, metric: str) -> list[Label]:
    """Return the labels of a metric in all evaluations of a source, oldest first."""
    columns = label.c
    statement = (
        select(*_COLUMNS)
        .where(columns.source == source, columns.metric == metric)
        .order_by(columns.at, columns.case_id, columns.result)
    )
    with reporting_unreachable(engine), engine.connect() as connection:
        return [Label(*row) for row in connection.execute(statement)]


def read_labels_by_judge(engine: Engine, source: str, tier: str, keys: Collection[str]) -> list[Label]:
    """Return the labels of answers scored by these judges, in all evaluations of a tier and source."""
    columns = label.c
    statement = select(*_COLUMNS).where(columns.source == source, columns.tier == tier, columns.judge_key.in_(keys))
    with reporting_unreachable(engine), engine.connect() as connection:
        return [
            Label(*row)
            for row in connection.execute(statement.order_by(columns.evaluation_id, columns.case_id, columns.at))
        ]


def find_newest_llm_labelled(engine: Engine) -> RowMapping | None:
    """Return the newest finished evaluation with LLM labels."""
    columns = evaluation.c
    is_filled = (
        (config_value("labels").astext == "filled") & columns.state.in_(FINISHED_STATES) & columns.parquet.is_not(None)
    )
    statement = select(evaluation).where(is_filled).order_by(columns.started_at.desc()).limit(1)
    with reporting_unreachable(engine), engine.connect() as connection:
        return connection.execute(statement).mappings().first()


def find_finished_evaluations(engine: Engine, source: str, tier: str) -> list[RowMapping]:
    """Return the finished evaluations of a tier and source that have a file of cases, newest first."""
    columns = evaluation.c
    query = select(evaluation).where(columns.source == source, columns.tier == tier, columns.state.in_(FINISHED_STATES))
    with reporting_unreachable(engine), engine.connect() as connection:
        rows = connection.execute(query.where(columns.parquet.is_not(None)).order_by(columns.started_at.desc()))
        return list(rows.mappings())


def replace_corrected_metrics(engine: Engine, evaluation_id: str, rows: Mapping[str, MetricColumns | None]) -> None:
    """Replace the metrics of an evaluation by corrected ones, in one transaction.

    Args:
        engine: the engine of Yarus's own database.
        evaluation_id: the evaluation.
        rows: metric -> the other columns of `evaluation_metric`; None if the metric has no value any more.
    """
    columns = evaluation_metric.c
    removed = [name for name, row in rows.items() if row is None]
    added = [{"evaluation_id": evaluation_id, "metric": name, **row} for name, row in rows.items() if row is not None]
    with reporting_unreachable(engine), engine.begin() as connection:
        if removed:
            connection.execute(
                delete(evaluation_metric).where(columns.evaluation_id == evaluation_id, columns.metric.in_(removed))
            )
        if added:  # one statement, because another process may store the same rows
            statement = insert(evaluation_metric).values(added)
            key = [column.name for column in evaluation_metric.primary_key]
            updates = {name: statement.excluded[name] for name in added[0] if name not in key}
            connection.execute(statement.on_conflict_do_update(index_elements=key, set_=updates))

"""What people say of answers, or of results, that a judge has scored: one row a case, metric, result and annotator."""

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

from yarus.db.engine import reaching
from yarus.db.tables import FINISHED, OURS, MetricColumns, config_at, evaluation, evaluation_metric

label = Table(
    "label",
    OURS,
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
    """One row; see the comments of the table `label`."""

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


def save(engine: Engine, labels: Iterable[Label]) -> None:
    """Stores labels, all or none; what an annotator had said of the same case and metric is replaced."""
    rows = [given._asdict() for given in labels]
    if not rows:
        return
    with reaching(engine), engine.begin() as connection:
        statement = insert(label).values(rows)
        key = [column.name for column in label.primary_key]
        newer = {name: statement.excluded[name] for name in Label._fields if name not in key}
        connection.execute(statement.on_conflict_do_update(index_elements=key, set_=newer))


def take_back(engine: Engine, evaluation_id: str, metric: str, annotator: str) -> Label | None:
    """Removes what an annotator has said last of an evaluation's metric.

    Returns:
        What was removed; None where there was nothing.
    """
    of = label.c
    theirs = (of.evaluation_id == evaluation_id) & (of.metric == metric) & (of.annotator == annotator)
    newest = select(of.case_id, of.result).where(theirs).order_by(of.at.desc(), of.case_id, of.result).limit(1)
    with reaching(engine), engine.begin() as connection:
        row = connection.execute(
            delete(label).where(theirs, tuple_(of.case_id, of.result).in_(newest)).returning(*_COLUMNS)
        ).first()
    return Label(*row) if row else None


def labels_of(engine: Engine, evaluation_id: str, metric: str | None = None) -> list[Label]:
    """What people have said of an evaluation's answers, of one metric or all, in the order in which they did."""
    wanted = [label.c.evaluation_id == evaluation_id, *([label.c.metric == metric] if metric else [])]
    statement = select(*_COLUMNS).where(*wanted).order_by(label.c.at, label.c.case_id, label.c.annotator)
    with reaching(engine), engine.connect() as connection:
        return [Label(*row) for row in connection.execute(statement)]


def labels_of_source(engine: Engine, source: str, metric: str) -> list[Label]:
    """What people have said by a metric, in any evaluation over a source, in the order in which they did."""
    of = label.c
    statement = select(*_COLUMNS).where(of.source == source, of.metric == metric).order_by(of.at, of.case_id, of.result)
    with reaching(engine), engine.connect() as connection:
        return [Label(*row) for row in connection.execute(statement)]


def labels_by_judge(engine: Engine, source: str, tier: str, keys: Collection[str]) -> list[Label]:
    """What people have said of answers that these judges have scored, in any evaluation of a tier over a source."""
    of = label.c
    statement = select(*_COLUMNS).where(of.source == source, of.tier == tier, of.judge_key.in_(keys))
    with reaching(engine), engine.connect() as connection:
        return [Label(*row) for row in connection.execute(statement.order_by(of.evaluation_id, of.case_id, of.at))]


def newest_filled(engine: Engine) -> RowMapping | None:
    """The newest finished evaluation whose labels a judge has filled up."""
    of = evaluation.c
    filled = (config_at("labels").astext == "filled") & of.state.in_(FINISHED) & of.parquet.is_not(None)
    statement = select(evaluation).where(filled).order_by(of.started_at.desc()).limit(1)
    with reaching(engine), engine.connect() as connection:
        return connection.execute(statement).mappings().first()


def evaluations_of(engine: Engine, source: str, tier: str) -> list[RowMapping]:
    """The finished evaluations of a tier over a source that have cases, newest first."""
    of = evaluation.c
    known = select(evaluation).where(of.source == source, of.tier == tier, of.state.in_(FINISHED))
    with reaching(engine), engine.connect() as connection:
        rows = connection.execute(known.where(of.parquet.is_not(None)).order_by(of.started_at.desc()))
        return list(rows.mappings())


def correct(engine: Engine, evaluation_id: str, rows: Mapping[str, MetricColumns | None]) -> None:
    """Puts corrected metrics in the place of those that an evaluation had, all at once.

    Args:
        engine: of our own database.
        evaluation_id: of the evaluation.
        rows: metric -> the other columns of `evaluation_metric`; None where it has no value any more.
    """
    of = evaluation_metric.c
    gone = [name for name, row in rows.items() if row is None]
    new = [{"evaluation_id": evaluation_id, "metric": name, **row} for name, row in rows.items() if row is not None]
    with reaching(engine), engine.begin() as connection:
        if gone:
            connection.execute(delete(evaluation_metric).where(of.evaluation_id == evaluation_id, of.metric.in_(gone)))
        if new:  # in one statement: another may store the same just now
            statement = insert(evaluation_metric).values(new)
            key = [column.name for column in evaluation_metric.primary_key]
            newer = {name: statement.excluded[name] for name in new[0] if name not in key}
            connection.execute(statement.on_conflict_do_update(index_elements=key, set_=newer))

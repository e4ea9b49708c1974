"""Tables: Yarus's own in the schema `yarus`, and source tables, which have the shape of production."""

from collections.abc import Mapping
from typing import Any, NotRequired

from pgvector.sqlalchemy import VECTOR
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    DateTime,
    Double,
    ForeignKey,
    FromClause,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    PrimaryKeyConstraint,
    Table,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TSVECTOR
from typing_extensions import TypedDict

from yarus.db.errors import unknown
from yarus.db.messages import Words

JsonObject = dict[str, Any]
"""A JSON object whose names others define: a server, a system under test, Prefect or a person."""
SCHEMA = "yarus"
YARUS_METADATA = MetaData(schema=SCHEMA)
FINISHED_STATES = ("completed", "invalid")
"""States of evaluations that have metrics."""
IS_REPEAT = "resolved ->> 'again' IS NOT NULL"


def _time_column(name: str, comment: str, **kwargs: Any) -> Column[Any]:
    return Column(name, DateTime(timezone=True), comment=comment, **kwargs)


source = Table(
    "source",
    YARUS_METADATA,
    Column("name", Text, primary_key=True, comment="what --source names"),
    Column("language", Text, nullable=False, comment="ru or en: decides text search and prompts"),
    Column("origin", Text, nullable=False, comment="the file or database that it was loaded from, without secrets"),
    _time_column("loaded_at", "when rows were last added or changed", nullable=False),
    comment="loaded sources; the rows of each are in the schema source_NAME",
)

evaluation = Table(
    "evaluation",
    YARUS_METADATA,
    Column("id", Text, primary_key=True, comment="tier, start in UTC and a random part"),
    Column("tier", Text, nullable=False),
    Column("state", Text, nullable=False, comment="running, completed, invalid, failed or cancelled"),
    Column("error", Text, comment="why it failed, or how to resume it"),
    _time_column("started_at", "start in UTC", nullable=False),
    _time_column("finished_at", "end in UTC; NULL while running"),
    Column("source", Text, nullable=False),
    Column("n_cases", Integer, comment="cases asked for"),
    Column("case_set_hash", Text, comment="SHA-256 of the cases with their labels"),
    Column("comparability_key", Text, comment="equal keys: the metrics can be compared"),
    Column("comparability", JSONB, comment="what the key is the hash of"),
    Column("parameters", JSONB, nullable=False, comment="the flow's parameters as given"),
    Column("resolved", JSONB, comment="what they came to: unit, retriever, embedder, fallbacks used, notes"),
    Column("settings", JSONB, nullable=False, comment="settings without secrets"),
    Column("versions", JSONB, nullable=False, comment="of Yarus, Python and the packages that move numbers"),
    Column("sut_label", Text, comment="version of the system under test"),
    Column("name", Text, comment="what people call it; not unique"),
    Column("tags", ARRAY(Text), nullable=False, server_default="{}", comment="words that people gave it"),
    Column("git_commit", Text),
    Column("git_dirty", Boolean),
    Column("flow_run_id", Text, comment="Prefect's id of the flow run"),
    Column("statuses", JSONB, comment="status -> number of cases"),
    Column("coverage", Double, comment="measured cases / cases that could be measured"),
    Column("tokens_in", BigInteger),
    Column("tokens_out", BigInteger),
    Column("cost_usd", Numeric(12, 6)),
    Column("parquet", Text, comment="path or URL of the file with one row a case"),
    _time_column("accepted_at", "when it became the baseline of its key, as the first or by a person"),
    Index("evaluation_by_start", "tier", "source", "started_at"),
    Index("evaluation_newest", "started_at"),
    Index("evaluation_by_key", "comparability_key", "started_at"),
    Index("evaluation_by_flow_run", "flow_run_id"),
    Index("evaluation_by_name", "name", postgresql_where=text("name IS NOT NULL")),
    Index("evaluation_running", "id", postgresql_where=text("state = 'running'")),
    Index("evaluation_repeated", "comparability_key", "started_at", postgresql_where=text(IS_REPEAT)),
    Index("evaluation_begins", "id", postgresql_ops={"id": "text_pattern_ops"}),
    Index("evaluation_ends", func.reverse(text("id")).label("end"), postgresql_ops={"end": "text_pattern_ops"}),
    comment="one execution of one tier; there from the start in state running",
)


def config_value(*path: str, table: FromClause = evaluation) -> Any:
    """Return, as SQL, the value at a path in an evaluation's configuration or findings; NULL if there is none.

    Args:
        path: keys, outermost first.
        table: the table of evaluations, or an alias of it.
    """
    value: ColumnElement[Any] = table.c.resolved
    for key in path:
        value = value[key]
    return value


evaluation_batch = Table(
    "evaluation_batch",
    YARUS_METADATA,
    Column("evaluation_id", Text, ForeignKey(evaluation.c.id, ondelete="CASCADE"), nullable=False),
    Column("batch", Integer, nullable=False, comment="number of the batch, from 0"),
    _time_column("finished_at", "when its file was whole", server_default=func.now(), nullable=False),
    PrimaryKeyConstraint("evaluation_id", "batch"),
    comment="finished batches of an evaluation, for resuming it",
)

evaluation_metric = Table(
    "evaluation_metric",
    YARUS_METADATA,
    Column("evaluation_id", Text, ForeignKey(evaluation.c.id, ondelete="CASCADE"), nullable=False),
    Column("metric", Text, nullable=False, comment="as in docs/metrics.md"),
    Column("stratum", Text, nullable=False, comment="'' where the tier has no strata"),
    Column("value", Double, comment="NULL when it was not measured"),
    Column("reason", Text, comment="why value is NULL"),
    Column("ci_low", Double, comment="95 % interval"),
    Column("ci_high", Double),
    Column("n_scored", Integer, nullable=False, comment="cases that the value rests on"),
    Column("n_total", Integer, nullable=False, comment="cases asked for"),
    Column("grade", Text, comment="excellent, good, attention (silhouette: strong … none)"),
    Column("direction", Text, nullable=False, comment="higher, lower or neither is better"),
    Column("signature", Text, nullable=False, comment="metric, parameters and version"),
    Column("labels", JSONB, comment="of a mean that people's labels have corrected: how many, and the judge's error"),
    PrimaryKeyConstraint("evaluation_id", "metric", "stratum"),
    comment="one row a metric of a finished evaluation",
)


class MetricColumns(TypedDict):
    """A row of `evaluation_metric` without evaluation and metric."""

    stratum: str
    value: float | None
    reason: str | None
    ci_low: float | None
    ci_high: float | None
    n_scored: int
    n_total: int
    grade: str | None
    direction: str
    signature: str
    labels: NotRequired[JsonObject]


class MetricRow(MetricColumns):
    """A row of `evaluation_metric` without the evaluation."""

    metric: str


nightly_verdict = Table(
    "nightly_verdict",
    YARUS_METADATA,
    Column("evaluation_id", Text, ForeignKey(evaluation.c.id, ondelete="CASCADE"), primary_key=True),
    Column("verdict", Text, nullable=False, comment="good, accepted, regressed, invalid, failed or inconclusive"),
    Column("baseline", Text, comment="the accepted evaluation that it was compared with"),
    Column("changes", JSONB, nullable=False, comment="metrics that fell: metric, a, b, difference, low, high, since"),
    _time_column("judged_at", "when the night judged it", server_default=func.now(), nullable=False),
    Index("nightly_verdict_bad", "evaluation_id", postgresql_where=text("verdict NOT IN ('good', 'accepted')")),
    comment="what nights said of their evaluations: an incident begins with a bad one; docs/alerts.md",
)

embedding = Table(
    "embedding",
    YARUS_METADATA,
    Column("model", Text, nullable=False, comment="embedder with everything that changes its vectors"),
    Column("text_hash", LargeBinary, nullable=False, comment="SHA-256 of the text as it was embedded"),
    Column("vector", LargeBinary, nullable=False, comment="little-endian float32"),
    PrimaryKeyConstraint("model", "text_hash"),
    comment="texts already embedded; may be emptied at any time",
)

fulltext = Table(
    "fulltext",
    YARUS_METADATA,
    Column("corpus", Text, nullable=False, comment="hash of the text search configuration and the corpus"),
    Column("position", Integer, nullable=False, comment="of the chunk in the corpus, by id"),
    Column("vector", TSVECTOR, nullable=False),
    PrimaryKeyConstraint("corpus", "position"),
    comment="corpora indexed for text search; may be emptied at any time",
)

chunk_vector = Table(
    "chunk_vector",
    YARUS_METADATA,
    Column("corpus", Text, nullable=False, comment="hash of the embedder and the corpus"),
    Column("position", Integer, nullable=False, comment="of the chunk in the corpus, by id"),
    Column("chunk_id", Text, nullable=False),
    Column("vector", VECTOR, nullable=False),
    PrimaryKeyConstraint("corpus", "position"),
    comment="corpora embedded for pgvector; may be emptied at any time",
)

call = Table(
    "call",
    YARUS_METADATA,
    Column("key", LargeBinary, primary_key=True, comment="SHA-256 of role, model, messages, parameters and repeat"),
    Column("role", Text, nullable=False, comment="generator, judge or gate"),
    Column("model", Text, nullable=False, comment="the model that was asked for"),
    Column("served_model", Text, comment="the model that answered, as the server names it"),
    Column("prompt", Text, nullable=False, comment="name of the prompt"),
    Column("evaluation_id", Text, comment="the evaluation that paid for it"),
    Column("reply", Text, nullable=False, comment="as received"),
    Column("finish_reason", Text, comment="stop, length, …"),
    Column("tokens_in", BigInteger, comment="as the server counted"),
    Column("tokens_out", BigInteger, comment="as the server counted"),
    Column("cost_usd", Double, comment="NULL without a price"),
    Column("latency_ms", Double, nullable=False, comment="of the attempt that succeeded"),
    Column("logprobs", ARRAY(Double), comment="natural logarithms, one a token, where they were asked for"),
    _time_column("created_at", "when it was received", server_default=func.now(), nullable=False),
    Index("call_by_evaluation", "evaluation_id"),
    comment="replies of language models, bought once; emptying it means buying them again",
)

server_profile = Table(
    "server_profile",
    YARUS_METADATA,
    Column("address", Text, primary_key=True, comment="of the completions"),
    Column("model", Text, primary_key=True, comment="name of the model"),
    Column(
        "takes",
        JSONB,
        nullable=False,
        comment="name of the reply limit, omitted parameters, JSON format, room for thinking, token cap",
    ),
    _time_column("learnt_at", "when it was stored", server_default=func.now(), nullable=False),
    comment="parameters that a server takes for a model, learnt from its refusals; empty it to learn again",
)

spending = Table(
    "spending",
    YARUS_METADATA,
    Column("evaluation_id", Text, primary_key=True, comment="the evaluation or synthesis that pays"),
    Column("booked_usd", Double, nullable=False, comment="what its calls can have cost at most"),
    comment="what counts against the budget; while calls are under way, the most that they can cost is in it",
)

case_set = Table(
    "case_set",
    YARUS_METADATA,
    Column("name", Text, primary_key=True, comment="what --cases names"),
    Column("sha256", Text, nullable=False, comment="of its questions and labels: equal for equal content"),
    Column("source", Text, nullable=False, comment="where they were frozen from"),
    Column("n_cases", Integer, nullable=False),
    Column("rule", JSONB, nullable=False, comment="how they were chosen: limit, seed, since, until, or the set split"),
    _time_column("frozen_at", "when they were frozen", server_default=func.now(), nullable=False),
    comment="frozen case sets; never changed",
)

case_set_row = Table(
    "case_set_row",
    YARUS_METADATA,
    Column("name", Text, ForeignKey(case_set.c.name, ondelete="CASCADE"), nullable=False),
    Column("question_id", Text, nullable=False),
    Column("position", Integer, Identity(), nullable=False, comment="their order"),
    Column("content", JSONB, nullable=False, comment="the row of the log with its annotation, as it was"),
    PrimaryKeyConstraint("name", "question_id"),
    comment="the questions of frozen case sets with their labels",
)

analysis = Table(
    "analysis",
    YARUS_METADATA,
    Column("id", Text, primary_key=True, comment="kind, start in UTC and a random part"),
    Column("kind", Text, nullable=False, comment="sweep, robustness or corpus"),
    Column("source", Text, nullable=False),
    Column("state", Text, nullable=False, comment="running, completed, invalid, failed or cancelled"),
    _time_column("started_at", "start in UTC", nullable=False),
    _time_column("finished_at", "end in UTC; NULL while running"),
    Column("parameters", JSONB, nullable=False, comment="as given"),
    Column("document", JSONB, comment="what was found, as --json prints it; NULL before anything was"),
    Index("analysis_by_start", "kind", "source", "started_at"),
    comment="what was found over several evaluations: sweeps, robustness probes, corpus analytics",
)

ANNOTATION_TABLE = "annotation"
REQUIRED_TABLES = ("question_answer", "chunk")


def source_tables(
    schema: str | None,
    *,
    names: Mapping[str, str] | None = None,
    columns: Mapping[str, Mapping[str, str]] | None = None,
) -> dict[str, Table]:
    """Return the source tables under Yarus's names, whatever their names and columns' names in the database.

    Args:
        schema: their schema; None for the search path.
        names: Yarus's table name -> the source's, with or without a schema.
        columns: Yarus's table name -> Yarus's column name -> the source's.

    Returns:
        `question_answer`, `chunk` and `annotation`; columns have Yarus's names: `table.c.confluence_url`.

    Raises:
        InputError: a key is not a table or column of Yarus; the message names the nearest.
    """
    metadata, names, columns = MetaData(), names or {}, columns or {}
    shapes: dict[str, dict[str, Any]] = {
        "question_answer": {"id": Text, "question": Text, "embedding": VECTOR, "answer": Text, "confluence_url": Text}
        | {"score": Integer, "user_id": Text, "created_at": DateTime(timezone=True), "recorded": JSONB},
        "chunk": {"id": Text, "confluence_url": Text, "text": Text, "embedding": VECTOR},
        ANNOTATION_TABLE: {
            "question_id": Text,
            "ground_truth_answer": Text,
            "relevant_chunk_ids": JSONB,
            "relevant_urls": JSONB,
            "ground_truth_show": Boolean,
            "answerable": Boolean,
            "nuggets": JSONB,
            "cluster": Text,
            "dialog_id": Text,
            "turn": Integer,
            "origin": Text,
            "review": JSONB,
        },
    }
    for table_name in {**names, **columns}:
        if table_name not in shapes:
            raise unknown("source table", table_name, shapes, "(YARUS_SOURCE_TABLES__…, YARUS_SOURCE_COLUMNS__…)")
    tables = {}
    for table_name, shape in shapes.items():
        own_schema, _, name = names.get(table_name, table_name).rpartition(".")
        source_columns = columns.get(table_name, {})
        for column in source_columns:
            if column not in shape:
                raise unknown(
                    Words("column of {ours}:", ours=table_name),
                    column,
                    shape,
                    Words("(YARUS_SOURCE_COLUMNS__{variable}__…)", variable=table_name.upper()),
                )
        table_columns = (
            Column(source_columns.get(column, column), type_, key=column, primary_key=not index, autoincrement=False)
            for index, (column, type_) in enumerate(shape.items())
        )
        tables[table_name] = Table(name, metadata, *table_columns, schema=own_schema or schema)
    return tables

"""The tables: ours in the schema `yarus`, and the source tables that we read, shaped as in production."""

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
from yarus.db.words import Words

Json = dict[str, Any]
"""An object of JSON whose names others define: of a server, a system under test, Prefect or a person."""
SCHEMA = "yarus"
OURS = MetaData(schema=SCHEMA)
FINISHED = ("completed", "invalid")
"""States in which an evaluation has its metrics."""
REPEATED = "resolved ->> 'again' IS NOT NULL"


def _at(name: str, comment: str, **kwargs: Any) -> Column[Any]:
    return Column(name, DateTime(timezone=True), comment=comment, **kwargs)


source = Table(
    "source",
    OURS,
    Column("name", Text, primary_key=True, comment="what --source names"),
    Column("language", Text, nullable=False, comment="ru or en: decides text search and prompts"),
    Column("origin", Text, nullable=False, comment="the file or database that it was loaded from, without secrets"),
    _at("loaded_at", "when rows were last added or changed", nullable=False),
    comment="loaded sources; the rows of each are in the schema source_NAME",
)

evaluation = Table(
    "evaluation",
    OURS,
    Column("id", Text, primary_key=True, comment="tier, start in UTC and a random part"),
    Column("tier", Text, nullable=False),
    Column("state", Text, nullable=False, comment="running, completed, invalid, failed or cancelled"),
    Column("error", Text, comment="why it failed, or how to resume it"),
    _at("started_at", "start in UTC", nullable=False),
    _at("finished_at", "end in UTC; NULL while running"),
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
    _at("accepted_at", "when it became the baseline of its key, as the first or by a person"),
    Index("evaluation_by_start", "tier", "source", "started_at"),
    Index("evaluation_newest", "started_at"),
    Index("evaluation_by_key", "comparability_key", "started_at"),
    Index("evaluation_by_flow_run", "flow_run_id"),
    Index("evaluation_by_name", "name", postgresql_where=text("name IS NOT NULL")),
    Index("evaluation_running", "id", postgresql_where=text("state = 'running'")),
    Index("evaluation_repeated", "comparability_key", "started_at", postgresql_where=text(REPEATED)),
    Index("evaluation_begins", "id", postgresql_ops={"id": "text_pattern_ops"}),
    Index("evaluation_ends", func.reverse(text("id")).label("end"), postgresql_ops={"end": "text_pattern_ops"}),
    comment="one execution of one tier; there from the start in state running",
)


def config_at(*path: str, table: FromClause = evaluation) -> Any:
    """Return, as SQL, what the configuration or the findings of an evaluation have at a path; NULL where nothing.

    Args:
        path: keys, each in what the one before it names.
        table: evaluations, where it is not the table itself but an alias of it.
    """
    found: ColumnElement[Any] = table.c.resolved
    for key in path:
        found = found[key]
    return found


evaluation_batch = Table(
    "evaluation_batch",
    OURS,
    Column("evaluation_id", Text, ForeignKey(evaluation.c.id, ondelete="CASCADE"), nullable=False),
    Column("batch", Integer, nullable=False, comment="number of the batch, from 0"),
    _at("finished_at", "when its file was whole", server_default=func.now(), nullable=False),
    PrimaryKeyConstraint("evaluation_id", "batch"),
    comment="finished batches of an evaluation, for resuming it",
)

evaluation_metric = Table(
    "evaluation_metric",
    OURS,
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
    """A row of `evaluation_metric` without the evaluation and the metric that it is of."""

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
    labels: NotRequired[Json]


class MetricRow(MetricColumns):
    """A row of `evaluation_metric` without the evaluation that it is of."""

    metric: str


nightly_verdict = Table(
    "nightly_verdict",
    OURS,
    Column("evaluation_id", Text, ForeignKey(evaluation.c.id, ondelete="CASCADE"), primary_key=True),
    Column("verdict", Text, nullable=False, comment="good, accepted, regressed, invalid, failed or inconclusive"),
    Column("baseline", Text, comment="the accepted evaluation that it was compared with"),
    Column("changes", JSONB, nullable=False, comment="metrics that fell: metric, a, b, difference, low, high, since"),
    _at("judged_at", "when the night judged it", server_default=func.now(), nullable=False),
    Index("nightly_verdict_bad", "evaluation_id", postgresql_where=text("verdict NOT IN ('good', 'accepted')")),
    comment="what nights said of their evaluations: an incident begins with a bad one; docs/alerts.md",
)

embedding = Table(
    "embedding",
    OURS,
    Column("model", Text, nullable=False, comment="embedder with everything that changes its vectors"),
    Column("text_hash", LargeBinary, nullable=False, comment="SHA-256 of the text as it was embedded"),
    Column("vector", LargeBinary, nullable=False, comment="little-endian float32"),
    PrimaryKeyConstraint("model", "text_hash"),
    comment="texts already embedded; may be emptied at any time",
)

fulltext = Table(
    "fulltext",
    OURS,
    Column("corpus", Text, nullable=False, comment="hash of the text search configuration and the corpus"),
    Column("position", Integer, nullable=False, comment="of the chunk in the corpus, by id"),
    Column("vector", TSVECTOR, nullable=False),
    PrimaryKeyConstraint("corpus", "position"),
    comment="corpora indexed for text search; may be emptied at any time",
)

chunk_vector = Table(
    "chunk_vector",
    OURS,
    Column("corpus", Text, nullable=False, comment="hash of the embedder and the corpus"),
    Column("position", Integer, nullable=False, comment="of the chunk in the corpus, by id"),
    Column("chunk_id", Text, nullable=False),
    Column("vector", VECTOR, nullable=False),
    PrimaryKeyConstraint("corpus", "position"),
    comment="corpora embedded for pgvector; may be emptied at any time",
)

call = Table(
    "call",
    OURS,
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
    _at("created_at", "when it was received", server_default=func.now(), nullable=False),
    Index("call_by_evaluation", "evaluation_id"),
    comment="replies of language models, bought once; emptying it means buying them again",
)

server_profile = Table(
    "server_profile",
    OURS,
    Column("address", Text, primary_key=True, comment="of the completions"),
    Column("model", Text, primary_key=True, comment="name of the model"),
    Column(
        "takes",
        JSONB,
        nullable=False,
        comment="name of the reply limit, omitted parameters, JSON format, room for thinking, token cap",
    ),
    _at("learnt_at", "when it was stored", server_default=func.now(), nullable=False),
    comment="parameters that a server takes for a model, learnt from its refusals; empty it to learn again",
)

spending = Table(
    "spending",
    OURS,
    Column("evaluation_id", Text, primary_key=True, comment="the evaluation or synthesis that pays"),
    Column("booked_usd", Double, nullable=False, comment="what its calls can have cost at most"),
    comment="what counts against the budget; while calls are under way, the most that they can cost is in it",
)

case_set = Table(
    "case_set",
    OURS,
    Column("name", Text, primary_key=True, comment="what --cases names"),
    Column("sha256", Text, nullable=False, comment="of its questions and labels: equal for equal content"),
    Column("source", Text, nullable=False, comment="where they were frozen from"),
    Column("n_cases", Integer, nullable=False),
    Column("rule", JSONB, nullable=False, comment="how they were chosen: limit, seed, since, until, or the set split"),
    _at("frozen_at", "when they were frozen", server_default=func.now(), nullable=False),
    comment="frozen case sets; never changed",
)

case_set_row = Table(
    "case_set_row",
    OURS,
    Column("name", Text, ForeignKey(case_set.c.name, ondelete="CASCADE"), nullable=False),
    Column("question_id", Text, nullable=False),
    Column("position", Integer, Identity(), nullable=False, comment="their order"),
    Column("content", JSONB, nullable=False, comment="the row of the log with its annotation, as it was"),
    PrimaryKeyConstraint("name", "question_id"),
    comment="the questions of frozen case sets with their labels",
)

analysis = Table(
    "analysis",
    OURS,
    Column("id", Text, primary_key=True, comment="kind, start in UTC and a random part"),
    Column("kind", Text, nullable=False, comment="sweep, robustness or corpus"),
    Column("source", Text, nullable=False),
    Column("state", Text, nullable=False, comment="running, completed, invalid, failed or cancelled"),
    _at("started_at", "start in UTC", nullable=False),
    _at("finished_at", "end in UTC; NULL while running"),
    Column("parameters", JSONB, nullable=False, comment="as given"),
    Column("document", JSONB, comment="what was found, as --json prints it; NULL before anything was"),
    Index("analysis_by_start", "kind", "source", "started_at"),
    comment="what was found over several evaluations: sweeps, robustness probes, corpus analytics",
)

ANNOTATION = "annotation"
REQUIRED = ("question_answer", "chunk")


def source_tables(
    schema: str | None,
    *,
    names: Mapping[str, str] | None = None,
    columns: Mapping[str, Mapping[str, str]] | None = None,
) -> dict[str, Table]:
    """The source tables under our names, whatever they and their columns are called in the database.

    Args:
        schema: their schema; None for the search path.
        names: our table name -> theirs, with a schema or without.
        columns: our table name -> our column name -> theirs.

    Returns:
        `question_answer`, `chunk` and `annotation`; columns are reached by our names: `table.c.confluence_url`.

    Raises:
        InputError: a name of ours that there is no table or column of; the nearest is named.
    """
    metadata, names, columns = MetaData(), names or {}, columns or {}
    shapes: dict[str, dict[str, Any]] = {
        "question_answer": {"id": Text, "question": Text, "embedding": VECTOR, "answer": Text, "confluence_url": Text}
        | {"score": Integer, "user_id": Text, "created_at": DateTime(timezone=True), "recorded": JSONB},
        "chunk": {"id": Text, "confluence_url": Text, "text": Text, "embedding": VECTOR},
        ANNOTATION: {
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
    for ours in {**names, **columns}:
        if ours not in shapes:
            raise unknown("source table", ours, shapes, "(YARUS_SOURCE_TABLES__…, YARUS_SOURCE_COLUMNS__…)")
    tables = {}
    for ours, shape in shapes.items():
        within, _, name = names.get(ours, ours).rpartition(".")
        mapped = columns.get(ours, {})
        for column in mapped:
            if column not in shape:
                raise unknown(
                    Words("column of {ours}:", ours=ours),
                    column,
                    shape,
                    Words("(YARUS_SOURCE_COLUMNS__{variable}__…)", variable=ours.upper()),
                )
        made = (
            Column(mapped.get(column, column), kind, key=column, primary_key=not place, autoincrement=False)
            for place, (column, kind) in enumerate(shape.items())
        )
        tables[ours] = Table(name, metadata, *made, schema=within or schema)
    return tables

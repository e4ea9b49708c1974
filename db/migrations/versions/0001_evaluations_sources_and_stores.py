"""evaluations, sources and stores"""

import sqlalchemy as sa
from alembic import op
from pgvector.sqlalchemy import VECTOR
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "embedding",
        sa.Column("model", sa.Text(), nullable=False, comment="embedder with everything that changes its vectors"),
        sa.Column("text_hash", sa.LargeBinary(), nullable=False, comment="SHA-256 of the text as it was embedded"),
        sa.Column("vector", sa.LargeBinary(), nullable=False, comment="little-endian float32"),
        sa.PrimaryKeyConstraint("model", "text_hash"),
        schema="yarus",
        comment="texts already embedded; may be emptied at any time",
    )
    op.create_table(
        "evaluation",
        sa.Column("id", sa.Text(), nullable=False, comment="tier, start in UTC and a random part"),
        sa.Column("tier", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False, comment="running, completed, invalid, failed or cancelled"),
        sa.Column("error", sa.Text(), nullable=True, comment="why it failed, or how to resume it"),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False, comment="start in UTC"),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True, comment="end in UTC; NULL while running"),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("n_cases", sa.Integer(), nullable=True, comment="cases asked for"),
        sa.Column("case_set_hash", sa.Text(), nullable=True, comment="SHA-256 of the cases with their labels"),
        sa.Column("comparability_key", sa.Text(), nullable=True, comment="equal keys: the metrics can be compared"),
        sa.Column(
            "comparability",
            postgresql.JSONB(astext_type=sa.Text()),
            nullable=True,
            comment="what the key is the hash of",
        ),
        sa.Column(
            "parameters",
            postgresql.JSONB(astext_type=sa.Text()),
            nullable=False,
            comment="the flow's parameters as given",
        ),
        sa.Column(
            "resolved",
            postgresql.JSONB(astext_type=sa.Text()),
            nullable=True,
            comment="what they came to: unit, retriever, embedder, fallbacks used, notes",
        ),
        sa.Column(
            "settings", postgresql.JSONB(astext_type=sa.Text()), nullable=False, comment="settings without secrets"
        ),
        sa.Column(
            "versions",
            postgresql.JSONB(astext_type=sa.Text()),
            nullable=False,
            comment="of Yarus, Python and the packages that move numbers",
        ),
        sa.Column("sut_label", sa.Text(), nullable=True, comment="version of the system under test"),
        sa.Column("git_commit", sa.Text(), nullable=True),
        sa.Column("git_dirty", sa.Boolean(), nullable=True),
        sa.Column("flow_run_id", sa.Text(), nullable=True, comment="Prefect's id of the flow run"),
        sa.Column(
            "statuses", postgresql.JSONB(astext_type=sa.Text()), nullable=True, comment="status -> number of cases"
        ),
        sa.Column("coverage", sa.Double(), nullable=True, comment="measured cases / cases that could be measured"),
        sa.Column("tokens_in", sa.BigInteger(), nullable=True),
        sa.Column("tokens_out", sa.BigInteger(), nullable=True),
        sa.Column("cost_usd", sa.Numeric(precision=12, scale=6), nullable=True),
        sa.Column("parquet", sa.Text(), nullable=True, comment="path or URL of the file with one row a case"),
        sa.PrimaryKeyConstraint("id"),
        schema="yarus",
        comment="one execution of one tier; there from the start in state running",
    )
    op.create_index("evaluation_by_start", "evaluation", ["tier", "started_at"], unique=False, schema="yarus")
    op.create_table(
        "chunk_vector",
        sa.Column("corpus", sa.Text(), nullable=False, comment="hash of the embedder and the corpus"),
        sa.Column("position", sa.Integer(), nullable=False, comment="of the chunk in the corpus, by id"),
        sa.Column("chunk_id", sa.Text(), nullable=False),
        sa.Column("vector", VECTOR(), nullable=False),
        sa.PrimaryKeyConstraint("corpus", "position"),
        schema="yarus",
        comment="corpora embedded for pgvector; may be emptied at any time",
    )
    op.create_table(
        "fulltext",
        sa.Column("corpus", sa.Text(), nullable=False, comment="hash of the text search configuration and the corpus"),
        sa.Column("position", sa.Integer(), nullable=False, comment="of the chunk in the corpus, by id"),
        sa.Column("vector", postgresql.TSVECTOR(), nullable=False),
        sa.PrimaryKeyConstraint("corpus", "position"),
        schema="yarus",
        comment="corpora indexed for text search; may be emptied at any time",
    )
    op.create_table(
        "source",
        sa.Column("name", sa.Text(), nullable=False, comment="what --source names"),
        sa.Column("language", sa.Text(), nullable=False, comment="ru or en: decides text search and prompts"),
        sa.Column(
            "origin", sa.Text(), nullable=False, comment="the file or database that it was loaded from, without secrets"
        ),
        sa.Column(
            "loaded_at", sa.DateTime(timezone=True), nullable=False, comment="when rows were last added or changed"
        ),
        sa.PrimaryKeyConstraint("name"),
        schema="yarus",
        comment="loaded sources; the rows of each are in the schema source_NAME",
    )
    op.create_table(
        "evaluation_batch",
        sa.Column("evaluation_id", sa.Text(), nullable=False),
        sa.Column("batch", sa.Integer(), nullable=False, comment="number of the batch, from 0"),
        sa.Column(
            "finished_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="when its file was whole",
        ),
        sa.ForeignKeyConstraint(["evaluation_id"], ["yarus.evaluation.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("evaluation_id", "batch"),
        schema="yarus",
        comment="finished batches of an evaluation, for resuming it",
    )
    op.create_table(
        "evaluation_metric",
        sa.Column("evaluation_id", sa.Text(), nullable=False),
        sa.Column("metric", sa.Text(), nullable=False, comment="as in docs/metrics.md"),
        sa.Column("stratum", sa.Text(), nullable=False, comment="'' where the tier has no strata"),
        sa.Column("value", sa.Double(), nullable=True, comment="NULL when it was not measured"),
        sa.Column("reason", sa.Text(), nullable=True, comment="why value is NULL"),
        sa.Column("ci_low", sa.Double(), nullable=True, comment="95 % interval"),
        sa.Column("ci_high", sa.Double(), nullable=True),
        sa.Column("n_scored", sa.Integer(), nullable=False, comment="cases that the value rests on"),
        sa.Column("n_total", sa.Integer(), nullable=False, comment="cases asked for"),
        sa.Column("grade", sa.Text(), nullable=True, comment="excellent, good, attention (silhouette: strong … none)"),
        sa.Column("direction", sa.Text(), nullable=False, comment="higher, lower or neither is better"),
        sa.Column("signature", sa.Text(), nullable=False, comment="metric, parameters and version"),
        sa.ForeignKeyConstraint(["evaluation_id"], ["yarus.evaluation.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("evaluation_id", "metric", "stratum"),
        schema="yarus",
        comment="one row a metric of a finished evaluation",
    )


def downgrade() -> None:
    op.drop_table("evaluation_metric", schema="yarus")
    op.drop_table("evaluation_batch", schema="yarus")
    op.drop_table("source", schema="yarus")
    op.drop_table("fulltext", schema="yarus")
    op.drop_table("chunk_vector", schema="yarus")
    op.drop_index("evaluation_by_start", table_name="evaluation", schema="yarus")
    op.drop_table("evaluation", schema="yarus")
    op.drop_table("embedding", schema="yarus")

"""sweeps, robustness probes and corpus analytics"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "analysis",
        sa.Column("id", sa.Text(), nullable=False, comment="kind, start in UTC and a random part"),
        sa.Column("kind", sa.Text(), nullable=False, comment="sweep, robustness or corpus"),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False, comment="running, completed, invalid, failed or cancelled"),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False, comment="start in UTC"),
        sa.Column("finished_at", sa.DateTime(timezone=True), comment="end in UTC; NULL while running"),
        sa.Column("parameters", JSONB(), nullable=False, comment="as given"),
        sa.Column("document", JSONB(), comment="what was found, as --json prints it; NULL before anything was"),
        sa.PrimaryKeyConstraint("id"),
        schema="yarus",
        comment="what was found over several evaluations: sweeps, robustness probes, corpus analytics",
    )
    op.create_index("analysis_by_start", "analysis", ["kind", "source", "started_at"], schema="yarus")


def downgrade() -> None:
    op.drop_table("analysis", schema="yarus")

"""what nights said of their evaluations"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "nightly_verdict",
        sa.Column("evaluation_id", sa.Text(), nullable=False),
        sa.Column(
            "verdict",
            sa.Text(),
            nullable=False,
            comment="good, regressed, invalid or failed; accepted counts as good",
        ),
        sa.Column("baseline", sa.Text(), comment="the last good evaluation, which it was compared with"),
        sa.Column(
            "changes",
            JSONB(),
            nullable=False,
            comment="headline metrics that are worse: metric, a, b, difference, p",
        ),
        sa.Column(
            "judged_at",
            sa.DateTime(timezone=True),
            server_default=sa.func.now(),
            nullable=False,
            comment="when the night judged it",
        ),
        sa.PrimaryKeyConstraint("evaluation_id"),
        sa.ForeignKeyConstraint(["evaluation_id"], ["yarus.evaluation.id"], ondelete="CASCADE"),
        schema="yarus",
        comment="what nights said of their evaluations: an incident lasts from the first bad one to the next good one",
    )


def downgrade() -> None:
    op.drop_table("nightly_verdict", schema="yarus")

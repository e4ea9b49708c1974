"""frozen case sets"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "case_set",
        sa.Column("name", sa.Text(), nullable=False, comment="what --cases names"),
        sa.Column("sha256", sa.Text(), nullable=False, comment="of its questions and labels: equal for equal content"),
        sa.Column("source", sa.Text(), nullable=False, comment="where they were frozen from"),
        sa.Column("n_cases", sa.Integer(), nullable=False),
        sa.Column(
            "rule", JSONB(), nullable=False, comment="how they were chosen: limit, seed, since, until, or the set split"
        ),
        sa.Column(
            "frozen_at",
            sa.DateTime(timezone=True),
            server_default=sa.func.now(),
            nullable=False,
            comment="when they were frozen",
        ),
        sa.PrimaryKeyConstraint("name"),
        schema="yarus",
        comment="frozen case sets; never changed",
    )
    op.create_table(
        "case_set_row",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("question_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), sa.Identity(), nullable=False, comment="their order"),
        sa.Column("content", JSONB(), nullable=False, comment="the row of the log with its annotation, as it was"),
        sa.ForeignKeyConstraint(["name"], ["yarus.case_set.name"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("name", "question_id"),
        schema="yarus",
        comment="the questions of frozen case sets with their labels",
    )


def downgrade() -> None:
    op.drop_table("case_set_row", schema="yarus")
    op.drop_table("case_set", schema="yarus")

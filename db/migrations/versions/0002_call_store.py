"""replies of language models"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "call",
        sa.Column(
            "key",
            sa.LargeBinary(),
            nullable=False,
            comment="SHA-256 of role, model, messages, parameters and repeat",
        ),
        sa.Column("role", sa.Text(), nullable=False, comment="generator, judge or gate"),
        sa.Column("model", sa.Text(), nullable=False, comment="the model that was asked for"),
        sa.Column("served_model", sa.Text(), comment="the model that answered, as the server names it"),
        sa.Column("prompt", sa.Text(), nullable=False, comment="name of the prompt"),
        sa.Column("evaluation_id", sa.Text(), comment="the evaluation that paid for it"),
        sa.Column("reply", sa.Text(), nullable=False, comment="as received"),
        sa.Column("finish_reason", sa.Text(), comment="stop, length, …"),
        sa.Column("tokens_in", sa.Integer(), comment="as the server counted"),
        sa.Column("tokens_out", sa.Integer(), comment="as the server counted"),
        sa.Column("cost_usd", sa.Double(), comment="NULL without a price"),
        sa.Column("latency_ms", sa.Double(), nullable=False, comment="of the attempt that succeeded"),
        sa.Column(
            "logprobs",
            sa.ARRAY(sa.Double()),
            comment="natural logarithms, one a token, where they were asked for",
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.func.now(),
            nullable=False,
            comment="when it was received",
        ),
        sa.PrimaryKeyConstraint("key"),
        schema="yarus",
        comment="replies of language models, bought once; emptying it means buying them again",
    )
    op.create_index("call_by_evaluation", "call", ["evaluation_id"], schema="yarus")


def downgrade() -> None:
    op.drop_table("call", schema="yarus")

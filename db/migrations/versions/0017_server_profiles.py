"""Store the parameters that a server takes for a model."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "server_profile",
        sa.Column("address", sa.Text(), primary_key=True, comment="of the completions"),
        sa.Column("model", sa.Text(), primary_key=True, comment="name of the model"),
        sa.Column(
            "takes",
            JSONB(),
            nullable=False,
            comment="name of the reply limit, omitted parameters, JSON format, room for thinking, token cap",
        ),
        sa.Column(
            "learnt_at",
            sa.TIMESTAMP(timezone=True),
            server_default=sa.func.now(),
            nullable=False,
            comment="when it was stored",
        ),
        schema="yarus",
        comment="parameters that a server takes for a model, learnt from its refusals; empty it to learn again",
    )


def downgrade() -> None:
    op.drop_table("server_profile", schema="yarus")

"""what calls can have cost, and token counts of any size"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for column in ("tokens_in", "tokens_out"):
        op.alter_column("call", column, type_=sa.BigInteger(), schema="yarus")
    op.create_table(
        "spending",
        sa.Column("evaluation_id", sa.Text(), nullable=False, comment="the evaluation or synthesis that pays"),
        sa.Column("booked_usd", sa.Double(), nullable=False, comment="what its calls can have cost at most"),
        sa.PrimaryKeyConstraint("evaluation_id"),
        schema="yarus",
        comment="what counts against the budget; while calls are under way, the most that they can cost is in it",
    )
    op.execute(
        "INSERT INTO yarus.spending SELECT evaluation_id, sum(greatest(cost_usd, 0)) FROM yarus.call "
        "WHERE evaluation_id IS NOT NULL AND cost_usd IS NOT NULL GROUP BY 1"
    )


def downgrade() -> None:
    op.drop_table("spending", schema="yarus")
    for column in ("tokens_in", "tokens_out"):
        op.execute(f"UPDATE yarus.call SET {column} = NULL WHERE {column} > 2147483647")  # noqa: S608 - our own names
        op.alter_column("call", column, type_=sa.Integer(), schema="yarus")

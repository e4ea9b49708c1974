"""what people call evaluations: names and tags, also in the views"""

import sqlalchemy as sa
from alembic import op

from yarus.db import views

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("evaluation", sa.Column("name", sa.Text(), comment="what people call it; not unique"), schema="yarus")
    op.add_column(
        "evaluation",
        sa.Column(
            "tags", sa.ARRAY(sa.Text()), nullable=False, server_default="{}", comment="words that people gave it"
        ),
        schema="yarus",
    )
    called = sa.text("name IS NOT NULL")
    op.create_index("evaluation_by_name", "evaluation", ["name"], schema="yarus", postgresql_where=called)
    views.create(op.get_bind())


def downgrade() -> None:
    views.drop(op.get_bind())
    op.drop_index("evaluation_by_name", "evaluation", schema="yarus")
    for column in ("name", "tags"):
        op.drop_column("evaluation", column, schema="yarus")

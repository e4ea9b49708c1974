"""people's labels of single results, beside those of answers"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None
KEY = ("evaluation_id", "metric", "case_id", "annotator")
METRIC = "the judged mean that it corrects, as avg_faithfulness"


def upgrade() -> None:
    comment = "the chunk or page that is labelled for the question; empty where the answer is"
    op.add_column(
        "label", sa.Column("result", sa.Text, nullable=False, server_default="", comment=comment), schema="yarus"
    )
    op.alter_column("label", "metric", comment=f"{METRIC}; relevance where a result is labelled", schema="yarus")
    op.drop_constraint("label_pkey", "label", schema="yarus")
    op.create_primary_key("label_pkey", "label", [*KEY, "result"], schema="yarus")
    op.create_index("label_by_source", "label", ["source", "metric"], schema="yarus")


def downgrade() -> None:
    op.execute("DELETE FROM yarus.label WHERE result <> ''")
    op.drop_index("label_by_source", "label", schema="yarus")
    op.drop_constraint("label_pkey", "label", schema="yarus")
    op.drop_column("label", "result", schema="yarus")
    op.alter_column("label", "metric", comment=METRIC, schema="yarus")
    op.create_primary_key("label_pkey", "label", list(KEY), schema="yarus")

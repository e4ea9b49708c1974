"""people's labels of judged answers, and the means that they correct"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "label",
        sa.Column("evaluation_id", sa.Text, nullable=False, comment="whose answer it is about; may be gone"),
        sa.Column("case_id", sa.Text, nullable=False),
        sa.Column("metric", sa.Text, nullable=False, comment="the judged mean that it corrects, as avg_faithfulness"),
        sa.Column("annotator", sa.Text, nullable=False),
        sa.Column("value", sa.Double, comment="0 (no) to 1 (yes); NULL where the annotator passed it over"),
        sa.Column("score", sa.Double, nullable=False, comment="what the judge said of the same answer"),
        sa.Column(
            "stratum", sa.Text, nullable=False, comment="what it was drawn from: the judge's score and the status"
        ),
        sa.Column("stratum_size", sa.Integer, nullable=False, comment="cases of the stratum"),
        sa.Column("probability", sa.Double, nullable=False, comment="of being drawn, when it was"),
        sa.Column("case_group", sa.Text, comment="the user, dialog or page of the case"),
        sa.Column(
            "shown_sha256", sa.Text, nullable=False, comment="of question, answer, passages and reference as shown"
        ),
        sa.Column(
            "judge_key", sa.Text, nullable=False, comment="model, parameters and prompt of the judge: another voids it"
        ),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("tier", sa.Text, nullable=False),
        sa.Column("note", sa.Text, comment="the annotator's"),
        sa.Column(
            "at",
            sa.DateTime(timezone=True),
            server_default=sa.func.now(),
            nullable=False,
            comment="when it was said",
        ),
        sa.PrimaryKeyConstraint("evaluation_id", "metric", "case_id", "annotator"),
        sa.CheckConstraint("value BETWEEN 0 AND 1", name="label_within_0_1"),
        sa.CheckConstraint("probability > 0 AND probability <= 1", name="label_drawn"),
        schema="yarus",
        comment="people's labels of judged answers that were drawn at random; they correct the judge's means",
    )
    labels = sa.Column(
        "labels", JSONB, comment="of a mean that people's labels have corrected: how many, and the judge's error"
    )
    op.add_column("evaluation_metric", labels, schema="yarus")
    op.create_index("label_by_judge", "label", ["source", "tier", "judge_key"], schema="yarus")


def downgrade() -> None:
    op.drop_column("evaluation_metric", "labels", schema="yarus")
    op.drop_table("label", schema="yarus")

"""versions of the corpora that evaluations searched"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "corpus_version",
        sa.Column(
            "sha256", sa.Text, primary_key=True, comment="of its content; resolved.corpus of evaluations names it"
        ),
        sa.Column(
            "content", sa.LargeBinary, nullable=False, comment="Parquet: chunk, page, digest of the chunk's text"
        ),
        sa.Column(
            "at",
            sa.DateTime(timezone=True),
            server_default=sa.func.now(),
            nullable=False,
            comment="when it was first read",
        ),
        comment="versions of the corpora that were searched, without their texts: "
        "what was edited, removed, added between",
        schema="yarus",
    )


def downgrade() -> None:
    op.drop_table("corpus_version", schema="yarus")

"""what a nightly verdict says: what was lost, and since when"""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None
SAID = {
    "0012": (
        "metrics that fell: metric, a, b, difference, low, high, since",
        "what nights said of their evaluations: an incident begins with a bad one; docs/alerts.md",
    ),
    "0011": (
        "headline metrics that are worse: metric, a, b, difference, p",
        "what nights said of their evaluations: an incident lasts from the first bad one to the next good one",
    ),
}


def upgrade() -> None:
    _say(revision)


def downgrade() -> None:
    _say(down_revision)


def _say(version: str) -> None:
    changes, table = SAID[version]
    op.alter_column("nightly_verdict", "changes", comment=changes, schema="yarus")
    op.create_table_comment("nightly_verdict", table, schema="yarus")

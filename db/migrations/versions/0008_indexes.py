"""what is asked of a long history is found by an index"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

MADE: dict[str, tuple[str, list[str | sa.TextClause], str | None]] = {
    "evaluation_newest": ("evaluation", ["started_at"], None),
    "evaluation_by_key": ("evaluation", ["comparability_key", "started_at"], None),
    "evaluation_by_flow_run": ("evaluation", ["flow_run_id"], None),
    "evaluation_running": ("evaluation", ["id"], "state = 'running'"),
    "evaluation_repeated": ("evaluation", ["comparability_key", "started_at"], "resolved ->> 'again' IS NOT NULL"),
    "evaluation_begins": ("evaluation", [sa.text("id text_pattern_ops")], None),
    "evaluation_ends": ("evaluation", [sa.text("reverse(id) text_pattern_ops")], None),
    "nightly_verdict_bad": ("nightly_verdict", ["evaluation_id"], "verdict NOT IN ('good', 'accepted')"),
}


def upgrade() -> None:
    op.drop_index("evaluation_by_start", "evaluation", schema="yarus")
    op.create_index("evaluation_by_start", "evaluation", ["tier", "source", "started_at"], schema="yarus")
    for name, (table, columns, where) in MADE.items():
        partly = sa.text(where) if where else None
        op.create_index(name, table, columns, schema="yarus", postgresql_where=partly)


def downgrade() -> None:
    for name, (table, _, _) in MADE.items():
        op.drop_index(name, table, schema="yarus")
    op.drop_index("evaluation_by_start", "evaluation", schema="yarus")
    op.create_index("evaluation_by_start", "evaluation", ["tier", "started_at"], schema="yarus")

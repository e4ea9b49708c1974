"""baselines are accepted; those that nights compared with are"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

ACCEPT = """
UPDATE yarus.evaluation SET accepted_at = baseline.accepted_at FROM (
    SELECT DISTINCT ON (comparability_key, resolved ->> 'answers_of') id,
           CASE WHEN verdict IS NULL THEN coalesce(finished_at, started_at) ELSE now() END AS accepted_at
    FROM yarus.evaluation LEFT JOIN yarus.nightly_verdict ON evaluation_id = id AND verdict IN ('good', 'accepted')
    WHERE state = 'completed' AND comparability_key IS NOT NULL AND resolved ->> 'part_of' IS NULL
    ORDER BY comparability_key, resolved ->> 'answers_of', verdict IS NULL,
             CASE WHEN verdict IS NOT NULL THEN started_at END DESC, finished_at, started_at
) AS baseline
WHERE baseline.id = evaluation.id
"""
"""Of each key the newest that a night found good, with which nights compared until now; else the first valid one."""
COMMENTS = {
    "verdict": (
        "good, regressed, invalid or failed; accepted counts as good",
        "good, accepted, regressed, invalid, failed or inconclusive",
    ),
    "baseline": (
        "the last good evaluation, which it was compared with",
        "the accepted evaluation that it was compared with",
    ),
}


def upgrade() -> None:
    accepted = sa.Column(
        "accepted_at",
        sa.DateTime(timezone=True),
        comment="when it became the baseline of its key, as the first or by a person",
    )
    op.add_column("evaluation", accepted, schema="yarus")
    op.execute(ACCEPT)
    for column, (_, comment) in COMMENTS.items():
        op.alter_column("nightly_verdict", column, schema="yarus", comment=comment)


def downgrade() -> None:
    for column, (comment, _) in COMMENTS.items():
        op.alter_column("nightly_verdict", column, schema="yarus", comment=comment)
    op.drop_column("evaluation", "accepted_at", schema="yarus")

"""how the answers of loaded sources came about: their contexts, how long they took, their traces"""

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None
OF_SOURCES = """
    DO $$ DECLARE log record; BEGIN
        FOR log IN SELECT table_schema AS name FROM information_schema.tables
            WHERE table_name = 'question_answer' AND table_schema ^@ 'source_'
        LOOP EXECUTE format('ALTER TABLE %I.question_answer {}', log.name); END LOOP;
    END $$
"""


def upgrade() -> None:
    op.execute(OF_SOURCES.format("ADD COLUMN IF NOT EXISTS recorded jsonb"))


def downgrade() -> None:
    op.execute(OF_SOURCES.format("DROP COLUMN recorded"))

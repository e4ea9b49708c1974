"""what a good answer must contain, beside the other labels of loaded sources"""

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None
OF_SOURCES = """
    DO $$ DECLARE label record; BEGIN
        FOR label IN SELECT table_schema AS name FROM information_schema.tables
            WHERE table_name = 'annotation' AND table_schema ^@ 'source_'
        LOOP EXECUTE format('ALTER TABLE %I.annotation {}', label.name); END LOOP;
    END $$
"""


def upgrade() -> None:
    op.execute(OF_SOURCES.format("ADD COLUMN IF NOT EXISTS nuggets jsonb"))


def downgrade() -> None:
    op.execute(OF_SOURCES.format("DROP COLUMN nuggets"))

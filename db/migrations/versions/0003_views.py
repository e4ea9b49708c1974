"""views for BI tools, which 0016 makes"""

from alembic import op

from yarus.db import views

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing: what the views read is not all there yet."""


def downgrade() -> None:
    views.drop(op.get_bind())

"""Runs our migrations on the connection that `yarus.db.engine` hands over."""

from alembic import context

from yarus.db.tables import OURS, SCHEMA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=OURS,
    version_table_schema=SCHEMA,
    include_schemas=True,
)
with context.begin_transaction():
    context.run_migrations()

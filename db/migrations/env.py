"""Run the migrations on the connection that `yarus.db.engine` provides."""

from alembic import context

from yarus.db.tables import SCHEMA, YARUS_METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=YARUS_METADATA,
    version_table_schema=SCHEMA,
    include_schemas=True,
)
with context.begin_transaction():
    context.run_migrations()

"""The embedded PostgreSQL server."""

from yarus.db.messages import Words

OTHER_SERVER_HINT = Words("or set YARUS_DATABASE_URL to a PostgreSQL server with pgvector")
"""Alternative that ends messages about the server."""

"""The PostgreSQL server that we bring."""

from yarus.db.words import Words

ELSEWHERE = Words("or set YARUS_DATABASE_URL to a PostgreSQL server with pgvector")
"""The other way out, which messages about the server end with."""

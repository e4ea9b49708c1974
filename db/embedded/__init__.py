"""The PostgreSQL server that we bring."""

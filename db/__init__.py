"""The database: tables, connections, sources, importers, the journal and the stores."""

if __name__ == "db":
    raise ImportError("`db` is now `yarus.db`; use `from yarus.db import …`")

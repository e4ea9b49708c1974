"""The database: tables, connections, sources, importers, the journal and the stores."""

if __name__ == "db":
    raise ImportError("the packages of Yarus are imported as yarus: from yarus.db …")

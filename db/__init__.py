"""The database: tables, connections, sources, importers, the journal and the stores."""

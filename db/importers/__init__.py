"""Readers of the formats that a source can be filled from; each turns a file into `load_rows.ImportedRows`."""

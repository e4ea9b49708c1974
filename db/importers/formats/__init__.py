"""How tables are written in files: as delimited text, as Parquet."""

from collections.abc import Mapping
from typing import Any

from db.loading.staging import Rejected

Read = tuple[str, Mapping[str, Any] | Rejected]
"""A place and what was read there: values by the file's own column names."""

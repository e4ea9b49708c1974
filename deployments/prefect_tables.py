"""Writes the tables of a new Prefect database: `python -m yarus.deployments.prefect_tables`, when Prefect was upgraded.

Prefect makes them by a hundred migrations, which takes ten seconds of a processor; read from a file it is none.
"""

import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from yarus.deployments.prefect.server_process import SQLITE, TABLES, first_line


def made_by_prefect() -> str:
    """What Prefect's migrations make of an empty SQLite database, in SQL."""
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder, "prefect.db")
        variables = {
            "PREFECT_HOME": folder,
            "PREFECT_API_DATABASE_CONNECTION_URL": f"{SQLITE}{database}",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "DO_NOT_TRACK": "1",
        }
        subprocess.run(
            [sys.executable, "-m", "prefect", "server", "database", "upgrade", "-y"],
            env=os.environ | variables,
            capture_output=True,
            check=True,
        )
        with closing(sqlite3.connect(database)) as connection:
            return first_line() + "\n".join(connection.iterdump()) + "\n"


if __name__ == "__main__":
    TABLES.write_text(made_by_prefect(), encoding="utf-8")

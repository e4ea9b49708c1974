"""The command line: a file a command. Here what several share: `--json`, and the database that they read."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from sqlalchemy import Engine

as_json = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")


def own_database() -> "Engine":
    """Our database, its journal telling the truth about evaluations that were killed."""
    from tasks.config.connections import database
    from tasks.results.orphaned import fail_orphaned

    engine = database()
    fail_orphaned(engine)
    return engine

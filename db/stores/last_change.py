"""Detect cheaply whether data shown on report pages has changed."""

from sqlalchemy import Engine, Table, select, text

from yarus.db.engine import reporting_unreachable
from yarus.db.stores.labels import label
from yarus.db.tables import analysis, evaluation

SHOWN_TABLES: tuple[Table, ...] = (evaluation, analysis, label)


def read_change_token(engine: Engine) -> str:
    """Return a text that differs after an evaluation, an analysis or a label was added, changed or deleted.

    It holds row counts and sums of the transaction ids that wrote the rows: every update gives its row a new id.

    Raises:
        DatabaseUnavailable: the database cannot be reached.
    """
    state = text("count(*), coalesce(sum(xmin::text::bigint), 0)")
    with reporting_unreachable(engine), engine.connect() as connection:
        table_states = [connection.execute(select(state).select_from(table)).one() for table in SHOWN_TABLES]
    return "-".join(f"{count}.{total}" for count, total in table_states)

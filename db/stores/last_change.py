"""Whether anything has changed that report pages show, at the price of a look."""

from sqlalchemy import Engine, Table, select, text

from yarus.db.engine import reaching
from yarus.db.stores.labels import label
from yarus.db.tables import analysis, evaluation

SHOWN: tuple[Table, ...] = (evaluation, analysis, label)


def last_change(engine: Engine) -> str:
    """A text that is another one after an evaluation, an analysis or a label has come, changed or gone.

    It counts rows and adds up the transactions that wrote them: whatever an update changes, its row has a new one.

    Raises:
        DatabaseUnavailable: the database cannot be reached.
    """
    written = text("count(*), coalesce(sum(xmin::text::bigint), 0)")
    with reaching(engine), engine.connect() as connection:
        found = [connection.execute(select(written).select_from(table)).one() for table in SHOWN]
    return "-".join(f"{count}.{total}" for count, total in found)

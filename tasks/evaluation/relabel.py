"""What people call an evaluation is changed later: it is no result, and decides none."""

from collections.abc import Sequence

from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.tasks.config.naming import MOST_TAGS, evaluation_name
from yarus.tasks.evaluation.config import Called


class Labels(Called):
    """What people call an evaluation from now on."""

    evaluation_id: str


def relabelled(
    engine: Engine, row: RowMapping, *, name: str | None, add: Sequence[str], remove: Sequence[str]
) -> Labels:
    """Gives an evaluation another name and other tags.

    Args:
        engine: of our own database.
        row: of the evaluation.
        name: the new one, '' for none; None leaves it as it is.
        add: tags that it gets.
        remove: tags that it loses.

    Raises:
        InputError: a name that no evaluation can have, too many tags, or one to lose that it has not.
    """
    for tag in remove:
        if tag not in row["tags"]:
            raise InputError("--remove {tag!r}: {id} has the tags {tags}", tag=tag, id=row["id"], tags=row["tags"])
    tags = [tag for tag in dict.fromkeys([*row["tags"], *add]) if tag not in remove]
    if len(tags) > MOST_TAGS:
        raise InputError(
            "--tag: {id} would have {n} tags, {most} at most; take some with --remove",
            id=row["id"],
            n=len(tags),
            most=MOST_TAGS,
        )
    try:
        called = row["name"] if name is None else evaluation_name(name) if name.strip() else None
    except ValueError as error:
        raise InputError("--name: {error}", error=error) from None
    journal.describe(engine, row["id"], name=called, tags=tags)
    return {"evaluation_id": row["id"], "name": called, "tags": tags}

"""Change the name and tags of an evaluation later; they do not influence results."""

from collections.abc import Sequence

from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping

from yarus.db import journal
from yarus.db.errors import InputError
from yarus.tasks.config.naming import MOST_TAGS, validate_evaluation_name
from yarus.tasks.evaluation.config import EvaluationLabel


class RelabelledEvaluation(EvaluationLabel):
    """Name and tags of an evaluation after the change."""

    evaluation_id: str


def relabel_evaluation(
    engine: Engine, row: RowMapping, *, name: str | None, add: Sequence[str], remove: Sequence[str]
) -> RelabelledEvaluation:
    """Give an evaluation another name and other tags.

    Args:
        engine: of our own database.
        row: of the evaluation.
        name: the new one, '' for none; None leaves it as it is.
        add: tags that it gets.
        remove: tags that it loses.

    Raises:
        InputError: an invalid name, too many tags, or a tag to remove that it does not have.
    """
    for tag in remove:
        if tag not in row["tags"]:
            raise InputError("--untag {tag!r}: {id} has the tags {tags}", tag=tag, id=row["id"], tags=row["tags"])
    tags = [tag for tag in dict.fromkeys([*row["tags"], *add]) if tag not in remove]
    if len(tags) > MOST_TAGS:
        raise InputError(
            "--tag: {id} would have {n} tags, {most} at most; take some with --untag",
            id=row["id"],
            n=len(tags),
            most=MOST_TAGS,
        )
    try:
        new_name = row["name"] if name is None else validate_evaluation_name(name) if name.strip() else None
    except ValueError as error:
        raise InputError("--name: {error}", error=error) from None
    journal.update_evaluation(engine, row["id"], name=new_name, tags=tags)
    return {"evaluation_id": row["id"], "name": new_name, "tags": tags}

"""Dialogs among the questions of a tier: whole ones, in their order, as groups."""

from collections.abc import Sequence

import pyarrow as pa

from yarus.tasks.cases.dialogs import Place, sampled_whole, together, with_what_was_said
from yarus.tasks.cases.labels import Row
from yarus.tasks.cases.table import with_columns
from yarus.tasks.evaluation.run import Run
from yarus.tasks.loading.source import sample_of_questions


def sample_of_dialogs(run: Run, questions: Sequence[Row], found: Sequence[Place]) -> list[int]:
    """The numbers of the questions of a seeded sample of whole dialogs, or of all, each dialog's one after another.

    Where another evaluation is confirmed, or what failed in one asked again, they are those questions, and what was
    said before them.

    Raises:
        InputError: as `sample_of_questions`.
    """
    if not any(getattr(run.parameters, mark, None) for mark in ("confirms", "failed")):
        return together(sampled_whole(questions, found, run.parameters.limit, run.parameters.seed), found)
    return together(with_what_was_said(sample_of_questions(run, questions), found), found)


def with_dialogs(cases: pa.Table, found: Sequence[Place]) -> pa.Table:
    """Adds `dialog` and `turn`, and makes sure that no group parts a dialog.

    A dialog whose questions share a user, or a page, stays in that group, which is the larger one; another is a group.

    Args:
        cases: n rows with `group`.
        found: the place of each.
    """
    pairs = list(zip(cases["group"].to_pylist(), (place.dialog for place in found), strict=True))
    of: dict[str | None, list[str | None]] = {}
    for group, name in pairs:
        of.setdefault(name, []).append(group)
    shared = {name for name, groups in of.items() if len(groups) == 1 or {*groups} - {None} == {groups[0]}}
    return with_columns(
        cases,
        dialog=[place.dialog for place in found],
        turn=[place.turn for place in found],
        group=[group if name is None or name in shared else f"dialog {name}" for group, name in pairs],
    )

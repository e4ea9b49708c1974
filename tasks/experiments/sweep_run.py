"""A sweep on its way: which arms are done, from its row in the database, so that it can be resumed."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from yarus.db import analyses
from yarus.db.journal import FINISHED
from yarus.tasks.config.connections import database
from yarus.tasks.config.flow_parameters import Sweep
from yarus.tasks.experiments import documents
from yarus.tasks.experiments.across_sources import require_common_questions
from yarus.tasks.experiments.arms import Arm
from yarus.tasks.experiments.sweep import arms, combined

log = logging.getLogger("yarus")


@dataclass
class Sweeping:
    """A sweep whose lock is held."""

    id: str
    parameters: Sweep
    planned: list[Arm]
    done: dict[str, documents.Outcome] = field(default_factory=dict)

    def waiting(self) -> list[Arm]:
        """The arms that have no evaluation that finished."""
        return [
            arm for arm in self.planned if arm.name not in self.done or self.done[arm.name]["state"] not in FINISHED
        ]

    def keep(self, said: documents.Outcome) -> None:
        """Writes the outcome of an arm."""
        self.done[said["arm"]] = said
        analyses.keep(database(), self.id, {"outcomes": list(self.done.values())}, "running")

    def finish(self) -> documents.Sweep:
        """Writes what all arms come to; returns the sweep as it is printed."""
        outcomes = [self.done[arm.name] for arm in self.planned]
        found = combined(self.parameters, outcomes)
        document: documents.Sweep = {**found, "sweep_id": self.id, "outcomes": outcomes}
        analyses.keep(database(), self.id, dict(document), document["state"])
        return document


@contextmanager
def sweeping(parameters: Sweep) -> Iterator[Sweeping]:
    """Opens a sweep, or one that did not finish with the arms that it has.

    Raises:
        InputError: parameters that make no sweep; nothing to resume under that id; another process is at it.
    """
    engine = database()
    done: dict[str, documents.Outcome] = {}
    if parameters.resume:
        row = analyses.find(engine, "sweep", parameters.resume)
        parameters = Sweep.model_validate(row["parameters"] | {"resume": row["id"]})
        done = {said["arm"]: said for said in (row["document"] or {}).get("outcomes", [])}
    else:
        require_common_questions(parameters)
    planned = arms(parameters)
    kept = parameters.model_dump(mode="json", exclude={"resume"})
    with analyses.analysing(engine, "sweep", parameters.source, kept, resume=parameters.resume) as sweep_id:
        whole = False
        try:
            yield Sweeping(sweep_id, parameters, planned, done)
            whole = True
        finally:
            if not whole:
                log.warning("the other arms: yarus sweep --resume %s", sweep_id)

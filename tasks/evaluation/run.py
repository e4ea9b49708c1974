"""The value that every step takes and returns: an evaluation's parameters, and what was found out."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic

from typing_extensions import TypeVar

from yarus.tasks.config.parameters import Parameters
from yarus.tasks.config.settings import settings
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.resources import Resources

P_co = TypeVar("P_co", bound=Parameters, covariant=True, default=Parameters)

DRY_RUN = "dry-run-"
"""What the working folder of an estimate is called, which no evaluation belongs to."""


@dataclass(frozen=True)
class Run(Generic[P_co]):
    """One evaluation with its parameters: `Run[Retrieval]` asks a retriever. What `load` finds out is added by it."""

    id: str
    tier: str
    parameters: P_co
    config: EvaluationConfig = field(default_factory=EvaluationConfig)
    n_cases: int = 0
    resources: Resources = field(default_factory=Resources, compare=False, repr=False)
    """What is open while it runs."""

    @property
    def work(self) -> Path:
        """The folder of what is needed until the evaluation ends: its cases, its corpus, its finished batches."""
        configuration = settings()
        work = configuration.work
        root = Path(work) if work and "://" not in work else configuration.home / "work"
        return root.absolute() / self.id

    @property
    def n_batches(self) -> int:
        """How many batches the cases make."""
        return self.config.n_batches or -(-self.n_cases // self.config.batch_size)

"""The value that every step takes and returns: an evaluation's parameters and resolved configuration."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic

from typing_extensions import TypeVar

from yarus.tasks.config.parameters import Parameters
from yarus.tasks.config.settings import get_settings
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.resources import Resources

P_co = TypeVar("P_co", bound=Parameters, covariant=True, default=Parameters)

DRY_RUN_PREFIX = "dry-run-"
"""Prefix of an estimate's working folder, which belongs to no evaluation."""


@dataclass(frozen=True)
class EvaluationRun(Generic[P_co]):
    """One evaluation with its parameters, e.g. `EvaluationRun[RetrievalParameters]`; loading adds the configuration."""

    id: str
    tier: str
    parameters: P_co
    config: EvaluationConfig = field(default_factory=EvaluationConfig)
    n_cases: int = 0
    resources: Resources = field(default_factory=Resources, compare=False, repr=False)
    """Open resources while it runs."""

    @property
    def work(self) -> Path:
        """Return the working folder, used until the evaluation ends: its cases, corpus and finished batches."""
        settings = get_settings()
        work = settings.work_dir
        root = Path(work) if work and "://" not in work else settings.home / "work"
        return root.absolute() / self.id

    @property
    def n_batches(self) -> int:
        """Return the number of batches of the cases."""
        return self.config.n_batches or -(-self.n_cases // self.config.batch_size)

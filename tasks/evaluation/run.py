"""The value that every step takes and returns: an evaluation's parameters, and what was found out."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from metrics.table import Tier
from tasks.config.parameters import Embedding, Parameters, Retrieval
from tasks.config.settings import settings

DRY_RUN = "dry-run-"
"""What the working folder of an estimate is called, which no evaluation belongs to."""


@dataclass(frozen=True)
class Run:
    """One evaluation; what `load` finds out is added by it."""

    id: str
    tier: Tier
    parameters: Parameters
    resolved: dict[str, Any] = field(default_factory=dict)
    """What the parameters came to: unit, retriever, embedder, fallbacks used, notes."""
    n_cases: int = 0

    @property
    def work(self) -> Path:
        """The folder of what is needed until the evaluation ends: its cases, its corpus, its finished batches."""
        configuration = settings()
        work = configuration.work
        root = Path(work) if work and "://" not in work else configuration.home / "work"
        return root.absolute() / self.id

    @property
    def embedding(self) -> Embedding:
        """The parameters of a tier that needs vectors."""
        if not isinstance(self.parameters, Embedding):
            raise TypeError(f"{self.tier} needs no vectors")
        return self.parameters

    @property
    def retrieval(self) -> Retrieval:
        """The parameters of a tier that asks a retriever."""
        if not isinstance(self.parameters, Retrieval):
            raise TypeError(f"{self.tier} asks no retriever")
        return self.parameters

    @property
    def batch_size(self) -> int:
        """Cases a batch: large enough for Prefect (at most 50 batches a flow), small enough to lose little."""
        return int(self.resolved["batch_size"])

    @property
    def n_batches(self) -> int:
        """How many batches the cases make."""
        return -(-self.n_cases // self.batch_size)

"""The document that every command prints with `--json`: docs/json.md is made of this table."""

from typing import Any, NewType

from typing_extensions import TypedDict

from yarus.db.loading.fill import LoadReport
from yarus.deployments.alarms.alarms_schema import Accepted, Incidents
from yarus.deployments.alarms.expected import AlarmBudget
from yarus.deployments.automations import Applied, Tested
from yarus.deployments.prefect.home_servers import StoppedServers
from yarus.deployments.upkeep.doctor_sources import Check
from yarus.deployments.upkeep.erasure.erase import Erasure
from yarus.deployments.upkeep.erasure.erase_prefect import InPrefect
from yarus.deployments.upkeep.prune import Pruned
from yarus.deployments.upkeep.setup.plan import Begun
from yarus.flows.before.dry_run import Plans
from yarus.tasks.cases.frozen_sets import FrozenSet, ListedSet, SetDifference, Split
from yarus.tasks.comparison.bands import Trend
from yarus.tasks.comparison.comparison_schema import EvaluationComparison
from yarus.tasks.comparison.experiments.experiments_schema import JudgeAndPeople, Robustness, Sweep
from yarus.tasks.comparison.explanation.explanation_schema import Explanation
from yarus.tasks.comparison.gate_verdicts import GateResult
from yarus.tasks.dataset.corpus.corpus_schema import CorpusAnalytics
from yarus.tasks.dataset.dataset_schema import (
    Audit,
    Drawn,
    Exported,
    Imported,
    LabelsImported,
    NuggetsMade,
    SourceAgreement,
    SynthesisResult,
)
from yarus.tasks.dataset.labelling.plan import LabelPlan
from yarus.tasks.dataset.labelling.relevance.between import LabelNext
from yarus.tasks.evaluation.export import LoggedRun
from yarus.tasks.evaluation.listing import ListedEvaluation
from yarus.tasks.evaluation.relabel import Labels
from yarus.tasks.evaluation.scores import ExportedScores
from yarus.tasks.evaluation.summary import EvaluationSummary, Night

Case = NewType("Case", dict[str, Any])
"""The columns of the evaluation's file by name, without those that its tier has not."""


class ErasureEverywhere(Erasure, InPrefect):
    """What of a user went, or would go: here, and in Prefect."""


class ExportedFile(TypedDict):
    """A file that was written."""

    evaluation_id: str
    file: str
    rows: int


class ExportedRun(LoggedRun):
    """An evaluation that was logged to MLflow."""

    evaluation_id: str


class NothingFailed(TypedDict):
    """No case of the evaluation failed, so that nothing was begun."""

    failed_in: str
    """The evaluation."""
    failed: int
    """0."""


class WrittenReport(TypedDict):
    """A report that was written."""

    report: str
    """The HTML file."""


DOCUMENTS: dict[str, Any] = {
    "run": EvaluationSummary,
    "run nightly": Night,
    "run TIER --failed": NothingFailed,
    "run TIER --dry-run": Plans,
    "demo": Night,
    "runs": list[ListedEvaluation],
    "show": EvaluationSummary,
    "tag": Labels,
    "cases": list[Case],
    "compare": EvaluationComparison,
    "explain": Explanation,
    "trend": Trend,
    "gate": GateResult,
    "report": WrittenReport,
    "sweep": Sweep,
    "robustness": Robustness,
    "examine": JudgeAndPeople,
    "label --plan": LabelPlan,
    "label --between": LabelNext,
    "corpus": CorpusAnalytics,
    "init": Begun,
    "load": LoadReport,
    "dataset freeze": FrozenSet,
    "dataset list": list[ListedSet],
    "dataset diff": SetDifference,
    "dataset split": Split,
    "dataset import": LoadReport,
    "dataset synthesize": SynthesisResult,
    "dataset nuggets": NuggetsMade,
    "dataset export-annotation": Exported,
    "dataset export-annotation --random": Drawn,
    "dataset import-annotation": Imported,
    "dataset import-annotation --annotator": LabelsImported,
    "dataset agreement": SourceAgreement,
    "dataset audit": Audit,
    "export --to": ExportedFile,
    "export --to otlp": ExportedScores,
    "export --mlflow": ExportedRun,
    "prune": Pruned,
    "prune --user": ErasureEverywhere,
    "doctor": list[Check],
    "stop": StoppedServers,
    "alerts apply": Applied,
    "alerts test": Tested,
    "alerts list": Incidents,
    "alerts accept": Accepted,
    "alerts budget": AlarmBudget,
}

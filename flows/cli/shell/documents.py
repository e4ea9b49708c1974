"""The document that every command prints with `--json`: docs/json.md is made of this table."""

from typing import Any, NewType

from typing_extensions import TypedDict

from db.loading.fill import LoadReport
from deployments.automations import Applied, Tested
from tasks.cases.frozen_sets import FrozenSet, ListedSet, SetDifference, Split
from tasks.comparison.documents import EvaluationComparison
from tasks.comparison.gates.documents import GateResult
from tasks.comparison.trend_documents import Trend
from tasks.corpus.documents import CorpusAnalytics
from tasks.dataset.documents import (
    Audit,
    Drawn,
    Exported,
    Imported,
    LabelsImported,
    NuggetsMade,
    SourceAgreement,
    SynthesisResult,
)
from tasks.experiments.documents import JudgeAndPeople, Robustness, Sweep
from tasks.explanation.documents import Explanation
from tasks.labelling.plan import LabelPlan
from tasks.labelling.relevance.between import LabelNext
from tasks.operations.doctor_sources import Check
from tasks.operations.dry_run import Plans
from tasks.operations.erasure.erase import Erasure
from tasks.operations.erasure.erase_prefect import InPrefect
from tasks.operations.home_servers import StoppedServers
from tasks.operations.prune import Pruned
from tasks.operations.relabel import Labels
from tasks.operations.setup.plan import Begun
from tasks.orchestration.alarms.expected import AlarmBudget
from tasks.orchestration.documents import Accepted, Incidents
from tasks.results.exports.mlflow_export import LoggedRun
from tasks.results.listing import ListedEvaluation
from tasks.results.scores import ExportedScores
from tasks.results.summary import EvaluationSummary, Night

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

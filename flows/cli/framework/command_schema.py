"""The JSON type that every command prints with `--json`; docs/schemas is generated from this table."""

from typing import Any, NewType

from typing_extensions import TypedDict

from yarus.db.loading.load_rows import LoadReport
from yarus.deployments.alarms.alarms_schema import Accepted, Incidents
from yarus.deployments.alarms.expected_alarms import AlarmBudget
from yarus.deployments.automations import AppliedAutomations, WebhookTest
from yarus.deployments.prefect.home_servers import StoppedServers
from yarus.deployments.upkeep.doctor_sources import Check
from yarus.deployments.upkeep.erasure.erase import Erasure
from yarus.deployments.upkeep.erasure.erase_prefect import PrefectErasure
from yarus.deployments.upkeep.prune import Pruned
from yarus.deployments.upkeep.setup.plan import SetupResult
from yarus.flows.preflight.dry_run import CallEstimates
from yarus.tasks.cases.frozen_sets import CaseSetDiff, CaseSetSplit, FrozenSet, ListedSet
from yarus.tasks.comparison.bands import Trend
from yarus.tasks.comparison.comparison_schema import EvaluationComparison
from yarus.tasks.comparison.experiments.experiments_schema import JudgeAndPeople, Robustness, Sweep
from yarus.tasks.comparison.explanation.explanation_schema import Explanation
from yarus.tasks.comparison.gate_verdicts import GateResult
from yarus.tasks.dataset.corpus.corpus_schema import CorpusAnalytics
from yarus.tasks.dataset.dataset_schema import (
    AnnotationExport,
    AnnotationImport,
    AnnotatorAgreement,
    LabelAudit,
    LabelSample,
    LabelSampleImport,
    NuggetGeneration,
    SynthesisResult,
)
from yarus.tasks.dataset.labelling.plan import LabelPlan
from yarus.tasks.dataset.labelling.relevance.label_suggestions import LabelSuggestions
from yarus.tasks.evaluation.export import LoggedRun
from yarus.tasks.evaluation.listing import ListedEvaluation
from yarus.tasks.evaluation.scores import ExportedScores
from yarus.tasks.evaluation.summary import EvaluationSummary, NightDocument
from yarus.tasks.evaluation.tags import RelabelledEvaluation

Case = NewType("Case", dict[str, Any])
"""The columns of the evaluation's file by name, without those that its tier has not."""


class UserErasure(Erasure, PrefectErasure):
    """Data of a user, also in Prefect, that was removed, or would be."""


class ExportedFile(TypedDict):
    """A file that was written."""

    evaluation_id: str
    file: str
    rows: int


class ExportedRun(LoggedRun):
    """An evaluation that was logged to MLflow."""

    evaluation_id: str


class NoFailedCases(TypedDict):
    """No case of the evaluation failed, so that nothing was begun."""

    failed_in: str
    """The evaluation."""
    failed: int
    """0."""


class ReportPath(TypedDict):
    """A report that was written."""

    report: str
    """The HTML file."""


DOCUMENTS: dict[str, Any] = {
    "run": EvaluationSummary,
    "run nightly": NightDocument,
    "judge exam": EvaluationSummary,
    "run TIER --retry-failed": NoFailedCases,
    "run TIER --dry-run": CallEstimates,
    "demo": NightDocument,
    "runs": list[ListedEvaluation],
    "show": EvaluationSummary,
    "admin tag": RelabelledEvaluation,
    "cases": list[Case],
    "compare": EvaluationComparison,
    "explain": Explanation,
    "trend": Trend,
    "gate": GateResult,
    "gate --accept": Accepted,
    "report": ReportPath,
    "sweep": Sweep,
    "robustness": Robustness,
    "judge agreement": JudgeAndPeople,
    "judge plan": LabelPlan,
    "judge label --suggest": LabelSuggestions,
    "corpus": CorpusAnalytics,
    "init": SetupResult,
    "load": LoadReport,
    "dataset freeze": FrozenSet,
    "dataset list": list[ListedSet],
    "dataset diff": CaseSetDiff,
    "dataset split": CaseSetSplit,
    "dataset import": LoadReport,
    "dataset synthesize": SynthesisResult,
    "dataset nuggets": NuggetGeneration,
    "dataset export-annotation": AnnotationExport,
    "dataset export-annotation --random": LabelSample,
    "dataset import-annotation": AnnotationImport,
    "dataset import-annotation --annotator": LabelSampleImport,
    "dataset agreement": AnnotatorAgreement,
    "dataset audit": LabelAudit,
    "export --to": ExportedFile,
    "export --to otlp": ExportedScores,
    "export --mlflow": ExportedRun,
    "admin prune": Pruned,
    "admin prune --user": UserErasure,
    "doctor": list[Check],
    "admin stop": StoppedServers,
    "alerts apply": AppliedAutomations,
    "alerts test": WebhookTest,
    "alerts list": Incidents,
    "alerts accept": Accepted,
    "alerts budget": AlarmBudget,
}

"""What `yarus dataset` finds and does: its documents, as `--json` prints them."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from yarus.tasks.cases.privacy.patterns import PersonalDataKind
from yarus.tasks.cases.vocabulary import Unit
from yarus.tasks.dataset.labelling.alpha import AlphaEstimate

DatasetState = Literal["completed", "invalid"]


class DefectLocation(TypedDict):
    """Where something is wrong, and what explains it; every kind has some of these."""

    question_id: str
    question: str
    column: NotRequired[str]
    """Where the label or text stands."""
    label: NotRequired[str | list[str]]
    """What is labelled."""
    of: NotRequired[str]
    """The question that it repeats, or whose stored answer is the reference."""
    other: NotRequired[str]
    """The text of that question."""
    others: NotRequired[list[str]]
    """The questions that it contradicts."""
    similarity: NotRequired[float]
    what: NotRequired[str]
    """How labels contradict each other."""
    where: NotRequired[str]
    """Where the answer stands: cache, question, or a prompt."""
    retrieved: NotRequired[list[str]]
    evaluations: NotRequired[int]
    """That dispute the label."""
    known: NotRequired[float]
    """Share of its words that the corpus has."""
    kind: NotRequired[PersonalDataKind]
    """Of personal data."""
    text: NotRequired[str]


class DefectFinding(TypedDict):
    """One kind of defect."""

    count: int | None
    """Null where it was not looked for."""
    examples: list[DefectLocation]
    reason: NotRequired[str]
    """Why it was not looked for."""


class PersonalDataFinding(DefectFinding):
    """Personal data in questions and answers."""

    kinds: dict[str, int]
    """Kind of personal data -> how many."""


class DuplicateFinding(TypedDict):
    """Chunks and pages that say what another one says: a label on one of them is a label on all."""

    count: int
    """Chunks that say what an earlier one says."""
    pages: int
    """Pages that say nothing but what stands on another one."""
    examples: list[list[str]]
    """Ids of chunks that say the same, the largest groups first."""


class LabelAudit(TypedDict):
    """What looks wrong with a source's questions and labels."""

    source: str
    n_questions: int
    n_chunks: int
    evaluations: list[str]
    """Whose rankings may dispute labels."""
    stale: DefectFinding
    """Labels that name a chunk or page that is not in the corpus."""
    duplicates: DefectFinding
    """Questions that repeat an earlier one but for case, punctuation and white space."""
    near_duplicates: DefectFinding
    """Questions that are almost an earlier one."""
    contradictions: DefectFinding
    """Labels that exclude each other."""
    leaked: DefectFinding
    """Questions whose reference answer can be had without retrieval."""
    disputed: DefectFinding
    """Questions where no ranking has anything relevant among its first ten."""
    off_topic: DefectFinding
    """Questions of whose words hardly any is in the corpus."""
    empty: DefectFinding
    """Questions without a letter or digit."""
    personal: PersonalDataFinding
    twins: DuplicateFinding


class AnnotationExport(TypedDict):
    """Questions that were written into a file for people to label."""

    file: str
    source: str
    questions: int
    evaluations: list[str]
    disagreement: int
    """Questions chosen because evaluations disagree on them."""
    failure: int
    """Questions chosen because an evaluation failed at them."""


class NuggetGeneration(TypedDict):
    """Nuggets that a judge has made for the questions of a source."""

    state: DatasetState
    source: str
    questions: int
    without_reference: int
    """Questions without a reference, without an answer in the corpus, or rejected: nothing is made for them."""
    asked: int
    """Questions that had none yet, or were to be made anew."""
    made: int
    """Of these, those whose nuggets were stored."""
    failed: dict[str, int]
    """Status -> questions for which the judge gave none that could be read."""
    reason: str | None
    """Of the first that failed."""
    nuggets: int
    vital: int
    judge: str
    calls: int
    bought: int
    """Calls whose reply was not in the store."""
    cost_usd: float | None
    """NULL without prices."""


class LabelSample(TypedDict):
    """Judged answers that were drawn at random and written into a file for people to label."""

    file: str
    source: str
    evaluation_id: str
    metric: str
    """The judged mean that the labels correct."""
    drawn: int
    cases: int
    """Answers that the judge has scored."""
    strata: dict[str, int]
    """Level of the judge's score and status -> answers drawn of them."""


class LabelSampleImport(TypedDict):
    """What people's labels of judged answers brought."""

    annotator: str
    rows: int
    labelled: int
    empty: int
    metrics: dict[str, int]
    """Judged mean -> labels."""
    evaluations: list[str]


class AnnotationImport(TypedDict):
    """What people's labels brought."""

    source: str
    annotator: str
    rows: int
    labelled: int
    half_filled: int
    """Labelled, but not in all columns."""
    empty: int
    rejected: int
    """Questions that most annotators found unfit."""
    question_ok: int
    """Rows in which this column is filled in; the same for those below."""
    answer_ok: int
    show: int
    relevant: int
    nuggets: int
    """Rows in which these were edited."""
    notes: int
    unit: Unit
    """What evaluations count by default now: what at least half of the labelled questions have a label of."""
    unit_before: Unit
    """What they counted before this."""
    n_labelled: int
    """Questions of the source that have any label, a page's or a chunk's."""
    n_chunks: int
    """Those that have a label of a chunk."""


class ColumnAgreement(TypedDict):
    """How far two annotators agree on one column."""

    n: int
    """Questions that both have labelled."""
    agreement: float | None
    """Share of equal labels; of `relevant`, the mean Jaccard index of both sets."""
    kappa: float | None
    """Null for `relevant`."""
    ci_low: float | None
    ci_high: float | None
    reason: str | None


class _Annotators(TypedDict):
    a: str
    b: str
    field: str


class PairAgreement(_Annotators, ColumnAgreement):
    """Two annotators and a column."""


class AnnotatorAgreement(TypedDict):
    """How far annotators of a source agree: all of them, and every two."""

    source: str
    annotators: dict[str, int]
    """Name -> questions labelled."""
    alpha: dict[str, AlphaEstimate]
    """Column of yes and no -> Krippendorff's alpha of all annotators; empty where one alone has labelled."""
    pairs: list[PairAgreement]


class SynthesisExample(TypedDict):
    """A question that was written."""

    kind: str
    question: str
    answer: str


class SynthesisResult(TypedDict):
    """Questions that were written from a source's chunks."""

    state: DatasetState
    """`invalid` where none was accepted."""
    source: str
    into: str | None
    asked: int
    accepted: int
    kinds: dict[str, int]
    """Kind -> accepted."""
    rejected: dict[str, int]
    """Why -> how many."""
    generator: str
    judge: str
    calls: int
    bought: int
    """Calls that were not answered from the store."""
    cost_usd: float | None
    examples: list[SynthesisExample]

"""JSON types of `yarus dataset`, printed with `--json`."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from yarus.tasks.cases.privacy.patterns import PersonalDataKind
from yarus.tasks.cases.vocabulary import Unit
from yarus.tasks.dataset.labelling.alpha import AlphaEstimate

DatasetState = Literal["completed", "invalid"]


class DefectLocation(TypedDict):
    """Place of a defect and evidence for it; each kind of defect has some of these keys."""

    question_id: str
    question: str
    column: NotRequired[str]
    """Column of the label or text."""
    label: NotRequired[str | list[str]]
    """The defective label, or the relevant results of a disputed question."""
    other_question_id: NotRequired[str]
    """Id of the question that it repeats, or whose stored answer is the reference."""
    other_question: NotRequired[str]
    """Text of that question."""
    conflicting_question_ids: NotRequired[list[str]]
    """Ids of the questions that it contradicts."""
    similarity: NotRequired[float]
    """Similarity of the two questions, 0 to 1."""
    label_conflict: NotRequired[str]
    """How the labels contradict each other."""
    found_in: NotRequired[str]
    """Place of the leaked answer: `cache`, `question`, or `prompt NAME`."""
    retrieved: NotRequired[list[str]]
    """First three results of an evaluation that disputes the label."""
    evaluations: NotRequired[int]
    """Number of evaluations that dispute the label."""
    known_word_share: NotRequired[float]
    """Share of the question's content words that occur in the corpus, 0 to 1."""
    kind: NotRequired[PersonalDataKind]
    """Kind of personal data."""
    text: NotRequired[str]
    """The personal data, or its pseudonym."""


class DefectFinding(TypedDict):
    """One kind of defect."""

    count: int | None
    """Number of defects; null if they were not searched for."""
    examples: list[DefectLocation]
    reason: NotRequired[str]
    """Why they were not searched for."""


class PersonalDataFinding(DefectFinding):
    """Personal data in questions and answers."""

    kinds: dict[str, int]
    """Kind of personal data -> number of defects."""


class DuplicateFinding(TypedDict):
    """Chunks and pages that duplicate others. A label on one of them counts for all."""

    count: int
    """Chunks that duplicate an earlier chunk."""
    pages: int
    """Pages whose whole text is also on an earlier page."""
    examples: list[list[str]]
    """Groups of ids of duplicate chunks, the largest first."""


class LabelAudit(TypedDict):
    """Defects of a source's questions and labels."""

    source: str
    n_questions: int
    n_chunks: int
    evaluations: list[str]
    """Ids of the evaluations whose rankings may dispute labels."""
    stale: DefectFinding
    """Labels that name a chunk or page that is not in the corpus."""
    duplicates: DefectFinding
    """Questions that differ from an earlier one only in case, punctuation and white space."""
    near_duplicates: DefectFinding
    """Questions that are almost equal to an earlier one."""
    contradictions: DefectFinding
    """Labels that contradict each other."""
    leaked: DefectFinding
    """Questions whose reference answer is available without retrieval."""
    disputed: DefectFinding
    """Questions for which no ranking has a relevant result in the top ten."""
    off_topic: DefectFinding
    """Questions with at most a third of their content words in the corpus."""
    empty: DefectFinding
    """Questions without a letter or digit."""
    personal: PersonalDataFinding
    duplicate_chunks: DuplicateFinding
    """Duplicate chunks and pages."""


class AnnotationExport(TypedDict):
    """Questions written to a file for annotators."""

    file: str
    source: str
    questions: int
    """Number of questions in the file."""
    evaluations: list[str]
    disagreement: int
    """Questions chosen because evaluations disagree on them."""
    failure: int
    """Questions chosen because an evaluation failed at them."""


class NuggetGeneration(TypedDict):
    """Nuggets that a judge generated for the questions of a source."""

    state: DatasetState
    """`invalid` if the judge failed for any question."""
    source: str
    questions: int
    without_reference: int
    """Questions without usable reference: it is missing, the corpus has no answer, or annotators rejected the
    question."""
    n_selected_questions: int
    """Questions without nuggets, or all with --regenerate; those that the budget stopped count too."""
    n_made: int
    """Questions for which the judge returned nuggets."""
    failed: dict[str, int]
    """Status -> number of questions without readable nuggets."""
    reason: str | None
    """Reason of the first failure; null without failures."""
    nuggets: int
    vital: int
    """Nuggets that a good answer must contain."""
    judge: str
    calls: int
    n_new_calls: int
    """Calls to a language model that were not answered from the store."""
    cost_usd: float | None
    """Null if no bought call has a price."""


class LabelSample(TypedDict):
    """Random sample of judged answers, written to a file for annotators."""

    file: str
    source: str
    evaluation_id: str
    metric: str
    """Judged metric whose mean the labels correct."""
    n_sampled: int
    """Answers in the sample."""
    cases: int
    """Answers that the judge scored."""
    strata: dict[str, int]
    """Level of the judge's score and status -> answers in the sample."""


class LabelSampleImport(TypedDict):
    """Imported labels of judged answers."""

    annotator: str
    rows: int
    labelled: int
    empty: int
    """Rows without a label or note."""
    metrics: dict[str, int]
    """Metric -> number of labels."""
    evaluations: list[str]


class AnnotationImport(TypedDict):
    """Imported labels of questions."""

    source: str
    annotator: str
    rows: int
    labelled: int
    n_partially_filled: int
    """Rows with a label in which a yes/no column or `relevant` is empty."""
    empty: int
    """Rows without a label, note or edited nugget."""
    rejected: int
    """Questions in the file that most annotators marked as unfit."""
    question_ok: int
    """Rows with a value in this column; the next keys count theirs."""
    answer_ok: int
    show: int
    relevant: int
    nuggets: int
    """Rows with edited nuggets."""
    notes: int
    unit: Unit
    """New default unit of evaluations: `chunk` if at least half of the labelled questions have a chunk label."""
    unit_before: Unit
    """Default unit before the import."""
    n_labelled: int
    """Questions of the source with a label of a page or chunk."""
    n_chunks: int
    """Questions of the source with a label of a chunk."""


class ColumnAgreement(TypedDict):
    """Agreement of two annotators on one column."""

    n: int
    """Questions that both labelled."""
    agreement: float | None
    """Share of equal labels, 0 to 1; for `relevant`, the mean Jaccard index of both sets."""
    kappa: float | None
    """Cohen's kappa, -1 to 1; null for `relevant`."""
    ci_low: float | None
    """Lower end of the 95 % interval of `kappa`, or of `agreement` for `relevant`."""
    ci_high: float | None
    reason: str | None
    """Why there is no value."""


class _Annotators(TypedDict):
    a: str
    b: str
    field: str


class PairAgreement(_Annotators, ColumnAgreement):
    """Agreement of one pair of annotators on one column."""


class AnnotatorAgreement(TypedDict):
    """Agreement of a source's annotators: of all together, and of each pair."""

    source: str
    annotators: dict[str, int]
    """Name -> number of labelled questions."""
    alpha: dict[str, AlphaEstimate]
    """Yes/no column -> Krippendorff's alpha of all annotators; empty with a single annotator."""
    pairs: list[PairAgreement]


class SynthesisExample(TypedDict):
    """A generated question."""

    kind: str
    question: str
    answer: str


class SynthesisResult(TypedDict):
    """Questions generated from a source's chunks."""

    state: DatasetState
    """`invalid` if no question was accepted."""
    source: str
    into: str | None
    """Source that received the questions; null if none was accepted."""
    n_requested: int
    """Number of requested questions."""
    n_accepted: int
    """Number of accepted questions."""
    kinds: dict[str, int]
    """Kind -> accepted questions."""
    rejected: dict[str, int]
    """Reason -> rejected questions."""
    generator: str
    judge: str
    calls: int
    n_new_calls: int
    """Calls to language models that were not answered from the store."""
    cost_usd: float | None
    """Null if no bought call has a price."""
    examples: list[SynthesisExample]

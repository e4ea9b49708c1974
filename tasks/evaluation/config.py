"""Configuration of an evaluation, resolved from its parameters; one part of it makes the comparability key."""

from collections.abc import Collection
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic_core import CoreSchema
from sqlalchemy.engine import RowMapping
from typing_extensions import TypedDict

from yarus.db.tables import JsonObject
from yarus.tasks.cases.vocabulary import Note, Unit

UNSET: Any = None
"""Default of fields that only some tiers have: None in the others, whose steps do not read it."""


EvaluationState = Literal["running", "completed", "invalid", "failed", "cancelled"]


class EvaluationLabel(TypedDict):
    """What people call an evaluation."""

    name: str | None
    """Not unique."""
    tags: list[str]


ConfigValues = dict[str, Any]
"""Set values of a configuration, by key."""
ComparabilityParts = dict[str, Any]
"""Parts that must be equal for two evaluations to be compared: part -> value."""
MetricOptions = dict[str, int | str]
"""Options of metric signatures that an evaluation chooses: depth, gain, distance."""


def format_label(labels: EvaluationLabel | RowMapping) -> str:
    """Return the name of an evaluation, and its tags."""
    name: str | None = labels["name"]
    return " ".join([*([name] if name else []), *(f"#{tag}" for tag in labels["tags"])])


class CaseSetIdentity(TypedDict):
    """A frozen case set."""

    name: str
    sha256: str


class JudgeIdentity(TypedDict, total=False):
    """What decides a judge's verdicts; of the offline stand-in, only its name and the prompts."""

    model: str | None
    temperature: float | None
    max_tokens: int | None
    prompts: dict[str, str]
    """Metric -> digest of its wording."""
    extra_body: JsonObject
    mask_calls: bool


class ExamIdentity(TypedDict, total=False):
    """Who is examined, and with how much."""

    cases: int
    """Questions that papers were asked for."""
    judge: JudgeIdentity
    gate: JudgeIdentity
    parallel: str
    """The source with the same questions in another language."""


class ConfigPart(BaseModel):
    """A part of the configuration."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class MeasurementConfig(ConfigPart):
    """What is measured, and by what: all of it is in the comparability key, together with the metrics."""

    unit: Unit = UNSET
    """What counts as found."""
    twins: Literal["one", "apart"] = UNSET
    """Whether chunks or pages that say the same count as one."""
    own_documents: Literal["left out"] | None = None
    """Of a retrieval set whose queries are documents: the query's own id is left out of its ranking."""
    k: int = UNSET
    pool: list[str] | None = None
    """The retrievers whose results a judge has graded, where it has filled up the labels."""
    pool_reranked: str | None = None
    """What has ordered all of these results anew, and how many, where something did."""
    texts: Literal["chunks", "questions"] = UNSET
    perturbation: str | None = None
    """How the questions were changed, with seed and version."""
    context_perturbation: str | None = None
    """How the contexts were changed, with seed and version."""
    contexts: Literal["recorded"] | None = None
    """Where answers are judged against what they were made from, as the source has recorded it, not what labels say."""
    unreferenced: Literal["judged"] | None = None
    """Where recorded answers are judged also to questions without a reference."""
    judge: JudgeIdentity = UNSET
    sent: dict[str, JsonObject] | None = None
    """Judging role -> parameters that its server refused, as they were sent instead; null for those left out."""
    claims: JudgeIdentity | None = None
    """Who finds claims and checks them, where that was asked for."""
    nuggets: JudgeIdentity | None = None
    """Who looks for nuggets in the answers, where that was asked for."""
    citations: JudgeIdentity | None = None
    """Who checks what the named pages support, where that was asked for."""
    dialogs: JudgeIdentity | None = None
    """Who judges whether answers take up what was said before, where the source has dialogs."""
    exam_of: ExamIdentity | None = None
    similarity_embedder: str = UNSET


class SystemConfig(ConfigPart):
    """The system under test: what evaluations compare, so that none of it is in the key."""

    corpus: str | None = None
    """SHA-256 of what was searched: chunks, pages and digests of texts, kept in `corpus_version`."""
    retriever: str = UNSET
    reranker: str | None = None
    """As the settings or the parameters name it."""
    reranker_identity: str | None = None
    """With whatever else decides its scores: a digest of a model's files, the name of a service's model."""
    rerank_depth: int = UNSET
    """How many of the retriever's first chunks it orders anew."""
    embedder: str = UNSET
    """As the settings or the parameters name it."""
    embedder_identity: str | None = None
    """With its version and whatever else decides its vectors."""
    vectors: Literal["stored", "computed"] = UNSET
    index_recall: float | None = None
    """Share of the k nearest chunks that the index over stored vectors finds."""
    sut: str = UNSET
    """The system under test: local, a URL, openai:URL, module:function, or the answers recorded in the source."""
    takes_history: bool | None = None
    """Of a source with dialogs: whether the system is told what was said before."""
    streams: bool | None = None
    """Where it has told answers in parts as they came."""
    generator: str | None = None
    generator_prompt: str | None = None
    """Name and digest of its prompt, where that is a file of the user's own."""
    generator_sent: JsonObject | None = None
    """Parameters that its server refused, as they were sent instead; null for those left out."""
    context_tokens: int = UNSET


class RepeatConfig(ConfigPart):
    """Marks of an evaluation without news of the system; it stays out of histories (`db.journal.NON_LIVE_KEYS`)."""

    again: str | None = None
    """The evaluation that is repeated."""
    anchor: str | None = None
    """The evaluation whose answers are judged anew every night."""
    answers_of: str | None = None
    """The evaluation whose stored answers are scored again: the first, where those were reused already."""
    part_of: str | None = None
    """The sweep or the probes that the evaluation belongs to, or the evaluation that it confirms."""


class EvaluationConfig(MeasurementConfig, SystemConfig, RepeatConfig):
    """What the parameters of an evaluation came to, once its cases are loaded; each tier has a part of it."""

    batch_size: int = UNSET
    """Cases a batch: large enough for Prefect (at most 50 batches a flow), small enough to lose little."""
    n_batches: int | None = None
    """Where dialogs stay whole, for which a batch may be larger."""
    language: str = UNSET
    """Of the source, ru or en: prompts, stop words and refusals go by it."""
    source_loaded_at: str | None = None
    """ISO 8601; of a source that is read on while the evaluation runs."""
    cases: CaseSetIdentity | None = None
    """The frozen case set; of one evaluation it stands beside the system."""
    labels: Literal["filled"] | None = None
    """Where a judge has filled them up."""
    gain: Literal["linear", "binary"] = UNSET
    """Of NDCG: linear where relevance is graded. In the metrics' signatures, as are `k` and `distance`."""
    distance: Literal["cosine", "euclidean"] = UNSET
    exam_period: int = UNSET
    """The stretch of nights within which the replies of an exam are bought once."""
    examined: dict[str, str] | None = None
    """Key of judge and prompt -> what the exam said."""
    notes: list[Note] = []
    """What was met, for people to know."""

    def __or__(self, other: "EvaluationConfig") -> "EvaluationConfig":
        """Merge two configurations; values of the other one take precedence."""
        return self.model_copy(update={name: getattr(other, name) for name in other.model_fields_set})

    def only(self, names: Collection[str]) -> "EvaluationConfig":
        """Return the values of these keys."""
        return EvaluationConfig(**{name: value for name, value in self.stored().items() if name in names})

    def stored(self) -> ConfigValues:
        """Return it as JSON of the journal, by key."""
        return {name: getattr(self, name) for name in type(self).model_fields if name in self.model_fields_set}

    def document(self, *, without: Collection[str] = ()) -> ConfigValues:
        """Return it as `--json` prints it, without the notes, which are printed separately."""
        return {name: value for name, value in self.stored().items() if name not in ("notes", *without)}

    @classmethod
    def of(cls, row: RowMapping) -> "EvaluationConfig":
        """Read it from an evaluation's row of the journal, where findings are stored in the same column."""
        values = {name: value for name, value in (row["resolved"] or {}).items() if name in cls.model_fields}
        return cls.model_construct(_fields_set=set(values), **values)

    def comparability(self) -> ComparabilityParts:
        """Return the part that is in the comparability key."""
        return {name: value for name, value in self.stored().items() if name in MeasurementConfig.model_fields}


def stored_findings(row: RowMapping) -> dict[str, Any]:
    """Read the findings, by name, from an evaluation's row of the journal."""
    return {name: value for name, value in (row["resolved"] or {}).items() if name not in EvaluationConfig.model_fields}


class DumpedAs(NamedTuple):
    """Annotation of a dictionary that a model was dumped to; pydantic validates it as that model."""

    model: type[BaseModel]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(self.model)


ConfigDocument = Annotated[ConfigValues, DumpedAs(EvaluationConfig)]
"""Return type of `EvaluationConfig.document`."""

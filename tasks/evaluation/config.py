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
    """Name and tags of an evaluation."""

    name: str | None
    """Not unique; null without a name."""
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
    """Settings that determine a judge's verdicts; of the offline stand-in only its name and the prompts."""

    model: str | None
    temperature: float | None
    max_tokens: int | None
    prompts: dict[str, str]
    """Metric -> digest of its prompt."""
    extra_body: JsonObject
    mask_calls: bool


class ExamIdentity(TypedDict, total=False):
    """Judges and settings of an exam."""

    cases: int
    """Requested number of questions; the source may have fewer."""
    judge: JudgeIdentity
    gate: JudgeIdentity
    parallel: str
    """Source with the same questions in another language."""


class ConfigPart(BaseModel):
    """A part of the configuration."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class MeasurementConfig(ConfigPart):
    """Measurement settings. All of them are in the comparability key, together with the metrics."""

    unit: Unit = UNSET
    """Unit of retrieved and relevant results."""
    twins: Literal["one", "apart"] = UNSET
    """Whether duplicate chunks or pages count as one."""
    own_documents: Literal["left out"] | None = None
    """Set for retrieval sets whose queries are documents: each query's own document is removed from its ranking."""
    k: int = UNSET
    pool: list[str] | None = None
    """Retrievers whose results the judge graded; set only for LLM labels."""
    pool_reranked: str | None = None
    """Name and depth of the reranker of the pooled results, `NAME@DEPTH`; null without one."""
    texts: Literal["chunks", "questions"] = UNSET
    perturbation: str | None = None
    """Kind, seed and version of the change of the questions."""
    context_perturbation: str | None = None
    """Kind, seed and version of the change of the contexts."""
    contexts: Literal["recorded"] | None = None
    """Set if the judged contexts are those recorded in the source, not those that the labels give."""
    unreferenced: Literal["judged"] | None = None
    """Set if answers to questions without a reference are judged, too."""
    judge: JudgeIdentity = UNSET
    sent: dict[str, JsonObject] | None = None
    """Judging role -> parameters that its server refused: the values sent instead, null for omitted parameters."""
    claims: JudgeIdentity | None = None
    """Judge that extracts claims and checks them; null if not requested."""
    nuggets: JudgeIdentity | None = None
    """Judge that finds nuggets in answers; null if not requested."""
    citations: JudgeIdentity | None = None
    """Judge that checks whether the cited pages support the answer; null if not requested."""
    dialogs: JudgeIdentity | None = None
    """Judge that checks whether answers follow the earlier turns; null without dialogs."""
    exam_of: ExamIdentity | None = None
    similarity_embedder: str = UNSET


class SystemConfig(ConfigPart):
    """The system under test. Evaluations compare it, so none of its settings is in the comparability key."""

    corpus: str | None = None
    """SHA-256 of the searched corpus: chunks, pages and digests of texts, stored in `corpus_version`."""
    retriever: str = UNSET
    reranker: str | None = None
    """Name in the settings or the parameters; null without one."""
    reranker_identity: str | None = None
    """Name with everything that determines its scores: a digest of a model's files, the name of a service's model."""
    rerank_depth: int = UNSET
    """Number of the retriever's first chunks that the reranker reorders."""
    embedder: str = UNSET
    """Name in the settings or the parameters."""
    embedder_identity: str | None = None
    """Name with its version and everything else that determines its vectors."""
    vectors: Literal["stored", "computed"] = UNSET
    index_recall: float | None = None
    """Share of the k nearest chunks that the index over stored vectors finds, 0 to 1."""
    sut: str = UNSET
    """System under test: `local`, a URL, `openai:URL`, `module:function`, or the answers recorded in the source."""
    takes_history: bool | None = None
    """Whether the system receives the earlier turns; null if the source has no dialogs."""
    streams: bool | None = None
    """True if the system streamed an answer; otherwise null."""
    generator: str | None = None
    generator_prompt: str | None = None
    """Name and digest of the user's own prompt file; null for a built-in prompt."""
    generator_sent: JsonObject | None = None
    """Parameters that its server refused: the values sent instead, null for omitted parameters."""
    context_tokens: int = UNSET


class RepeatConfig(ConfigPart):
    """Marks of evaluations that measure nothing new of the system; histories omit them (`db.journal.NON_LIVE_KEYS`)."""

    again: str | None = None
    """Id of the evaluation that is repeated."""
    anchor: str | None = None
    """Id of the evaluation whose answers are judged again every night."""
    answers_of: str | None = None
    """Id of the evaluation that generated the stored answers that are scored again."""
    part_of: str | None = None
    """Id of the sweep or probes that the evaluation belongs to, or of the evaluation whose changed or failed cases it
    asks again."""


class EvaluationConfig(MeasurementConfig, SystemConfig, RepeatConfig):
    """Parameters of an evaluation, resolved after its cases are loaded; each tier has some of the fields."""

    batch_size: int = UNSET
    """Cases per batch: large enough for Prefect (at most 50 batches per flow), small enough to lose little."""
    n_batches: int | None = None
    """Number of batches; set only if whole dialogs make batches larger than `batch_size`."""
    language: str = UNSET
    """Language of the source, `ru` or `en`; it selects prompts, stop words and refusal phrases."""
    source_loaded_at: str | None = None
    """ISO 8601 time; set only if the evaluation may read the source again while it runs."""
    cases: CaseSetIdentity | None = None
    """Frozen case set; null if the source's own questions are evaluated."""
    labels: Literal["filled"] | None = None
    """Set if a judge filled in the labels."""
    gain: Literal["linear", "binary"] = UNSET
    """Gain of NDCG, `linear` if relevance is graded. Metric signatures contain it, as well as `k` and `distance`."""
    distance: Literal["cosine", "euclidean"] = UNSET
    exam_period: int = UNSET
    """Number of the 30-day period; within a period the calls of an exam are paid for once."""
    examined: dict[str, str] | None = None
    """Key of judge and prompt -> outcome of the exam."""
    notes: list[Note] = []
    """Notes on peculiarities of the data, for people."""

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

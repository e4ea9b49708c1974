"""What an evaluation measured and with what: the part of its parameters, as they came to be, that documents show."""

from typing import Any, Literal

from sqlalchemy.engine import RowMapping
from typing_extensions import TypedDict

from yarus.tasks.cases.vocabulary import Unit


class Called(TypedDict):
    """What people call an evaluation."""

    name: str | None
    """Not unique."""
    tags: list[str]


def called(of: Called | RowMapping) -> str:
    """The name of an evaluation, and its tags."""
    name: str | None = of["name"]
    return " ".join([*([name] if name else []), *(f"#{tag}" for tag in of["tags"])])


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
    extra_body: dict[str, Any]
    mask_calls: bool


class ExamIdentity(TypedDict, total=False):
    """Who is examined, and with how much."""

    cases: int
    """Questions that papers were asked for."""
    judge: JudgeIdentity
    gate: JudgeIdentity
    parallel: str
    """The source with the same questions in another language."""


class System(TypedDict, total=False):
    """Whatever decides the numbers of an evaluation; each tier has some of these."""

    batch_size: int
    """Cases a batch: large enough for Prefect (at most 50 batches a flow), small enough to lose little."""
    n_batches: int
    """Where dialogs stay whole, for which a batch may be larger."""
    language: str
    """Of the source, ru or en: prompts, stop words and refusals go by it."""
    source_loaded_at: str
    """ISO 8601; of a source that is read on while the evaluation runs."""
    unit: Unit
    """What counts as found."""
    twins: Literal["one", "apart"]
    """Whether chunks or pages that say the same count as one."""
    own_documents: Literal["left out"]
    """Of a retrieval set whose queries are documents: the query's own id is left out of its ranking."""
    labels: Literal["filled"]
    """Where a judge has filled them up."""
    pool: list[str]
    """The retrievers whose results it has judged."""
    pool_reranked: str
    """What has ordered all of these results anew, and how many, where something did."""
    corpus: str
    """SHA-256 of what was searched: chunks, pages and digests of texts, kept in `corpus_version`."""
    texts: Literal["chunks", "questions"]
    distance: Literal["cosine", "euclidean"]
    retriever: str
    reranker: str
    """As the settings or the parameters name it; there is none where it is missing."""
    reranker_identity: str
    """With whatever else decides its scores: a digest of a model's files, the name of a service's model."""
    rerank_depth: int
    """How many of the retriever's first chunks it orders anew."""
    k: int
    gain: Literal["linear", "binary"]
    """Of NDCG: linear where relevance is graded."""
    embedder: str
    """As the settings or the parameters name it."""
    embedder_identity: str
    """With its version and whatever else decides its vectors."""
    vectors: Literal["stored", "computed"]
    index_recall: float | None
    """Share of the k nearest chunks that the index over stored vectors finds."""
    perturbation: str
    """How the questions were changed, with seed and version."""
    context_perturbation: str
    """How the contexts were changed, with seed and version."""
    sut: str
    """The system under test: local, a URL, openai:URL, module:function, or the answers recorded in the source."""
    takes_history: bool
    """Of a source with dialogs: whether the system is told what was said before."""
    streams: bool
    """Where it has told answers in parts as they came."""
    contexts: Literal["recorded"]
    """Where answers are judged against what they were made from, as the source has recorded it, not what labels say."""
    unreferenced: Literal["judged"]
    """Where recorded answers are judged also to questions without a reference."""
    generator: str
    generator_prompt: str
    """Name and digest of its prompt, where that is a file of the user's own."""
    context_tokens: int
    judge: JudgeIdentity
    sent: dict[str, dict[str, Any]]
    """Judging role -> parameters that its server refused, as they were sent instead; null for those left out."""
    generator_sent: dict[str, Any]
    """The same for the generator."""
    claims: JudgeIdentity
    """Who finds claims and checks them, where that was asked for."""
    nuggets: JudgeIdentity
    """Who looks for nuggets in the answers, where that was asked for."""
    citations: JudgeIdentity
    """Who checks what the named pages support, where that was asked for."""
    dialogs: JudgeIdentity
    """Who judges whether answers take up what was said before, where the source has dialogs."""
    exam_of: ExamIdentity
    exam_period: int
    """The stretch of nights within which the replies of an exam are bought once."""
    examined: dict[str, str]
    """Key of judge and prompt -> what the exam said."""
    similarity_embedder: str
    answers_of: str
    """The evaluation whose stored answers are scored again: the first, where those were reused already."""
    again: str
    """The evaluation that is repeated."""
    anchor: str
    """The evaluation whose answers are judged anew every night."""
    part_of: str
    """The sweep or the probes that the evaluation belongs to, or the evaluation that it confirms."""
    cases: CaseSetIdentity
    """The frozen case set; of one evaluation it stands beside the system."""

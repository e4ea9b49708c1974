"""Shapes of tables that tools of the field write: by which names one is told, and what its columns are.

Each line is tested by a file as its tool writes it. Names are in the form of `recognise.plain`: small letters, words
joined by _, of nested values after the name that they are in.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from yarus.db.importers.said import MAX_LEVELS, parsed
from yarus.db.importers.traces.values import is_unanswered, messages, reply_in
from yarus.db.words import Words

PASSAGES = ("relevant_passages", "other_passages")
"""Names under which `records` puts passages that stand beside questions in one document."""
Remarks = Mapping[Words, str | None]
"""What of a row is not used as its tool means it: remark -> an example, None for the row itself."""
OTHER_ASSERTIONS = Words("rows with an assertion that is no reference answer: {n} ({examples})")
SEVERAL_REFERENCES = Words("rows with several references: {n} ({examples}); the first is used")
NEEDED_TOGETHER = Words(
    "questions that need several passages together: {n} ({examples}); each passage counts as relevant by itself"
)
ALTERNATIVES = Words(
    "questions for which one of several passages is enough: {n} ({examples}); recall counts each of them as needed"
)
UNANSWERED = Words("conversations that end with the user: {n} ({examples}); they have no answer")
Needs = tuple[str | tuple[str, ...], ...]
Record = Mapping[str, Any]


@dataclass(frozen=True)
class Shape:
    """A shape of tables."""

    name: str
    needs: Needs
    """Names that must be there; of a tuple one of them."""
    columns: Mapping[str, tuple[str, ...]]
    """Our column -> theirs, the first that has values."""
    without: tuple[str, ...] = ()
    """Names that must not be there."""
    kind: Literal["questions", "chunks"] = "questions"
    prepare: Callable[[Record], Record] | None = None
    """Adds to a row what its columns say together."""
    remarks: Callable[[Record], Remarks] | None = None
    """Returns what Yarus reads otherwise in a prepared row than the tool that wrote it."""
    leaves_out: Callable[[Record], bool] | None = None
    """Whether a row is not to be used."""
    tool: str = ""
    """Whose it is, as `dataset import` names it."""
    filled: tuple[str, ...] = field(default=())
    """Names that must have values."""


def shape_of(names: Collection[str], filled: Collection[str]) -> Shape | None:
    """The shape of a table with these columns, of which some have values; None where it is nobody's."""
    return next((shape for shape in SHAPES if _is(shape, names, filled)), None)


def _is(shape: Shape, names: Collection[str], filled: Collection[str]) -> bool:
    there = all(any(name in names for name in ((need,) if isinstance(need, str) else need)) for need in shape.needs)
    return there and not any(name in names for name in shape.without) and all(name in filled for name in shape.filled)


def _is_archived(row: Record) -> bool:
    return str(row.get("status", "")).upper() == "ARCHIVED"


def _of_candidates(row: Record) -> Record:
    """A row of MS MARCO, its candidate passages parted by whether they were selected."""
    candidates = row.get("passages")
    texts = candidates.get("passage_text") if isinstance(candidates, Mapping) else None
    marks = candidates.get("is_selected") if isinstance(candidates, Mapping) else None
    pairs = list(zip(texts or (), marks or (), strict=False))
    parted = {mark: [text for text, selected in pairs if bool(selected) == mark] for mark in (True, False)}
    return {**row, "relevant_passages": parted[True], "other_passages": parted[False]}


def _remarks_on_groups(row: Record) -> Remarks:
    """Of AutoRAG's `retrieval_gt` every group is needed, and of each group one passage."""
    groups = parsed(row.get("retrieval_gt"))
    sizes = [len(group) for group in groups if isinstance(group, list | tuple)] if isinstance(groups, list) else []
    remarks = ((NEEDED_TOGETHER, len(sizes) > 1), (ALTERNATIVES, any(size > 1 for size in sizes)))
    return {remark: None for remark, applies in remarks if applies}


def _of_turns(row: Record) -> Record:
    """A conversation of DeepEval: what its last answer was made of stands in the turn of that answer."""
    turns = parsed(row.get("turns"))
    last = turns[-1] if isinstance(turns, list) and turns else None
    return {**row, "contexts_of_turn": last.get("retrieval_context") if isinstance(last, Mapping) else None}


def _of_conversation(row: Record) -> Record:
    """A row of ragas, whose question may be a conversation with the answer in it."""
    talk = row.get("user_input")
    return row if row.get("response") or reply_in(messages(talk)) is None else {**row, "response": talk}


def _remarks_on_conversation(row: Record) -> Remarks:
    return {UNANSWERED: None} if is_unanswered(messages(row.get("messages") or row.get("turns"))) else {}


# promptfoo: what an answer is held against is an assertion, and only some are reference answers

REFERENCE = "reference of assertions"
"""Under which name a prepared row has the reference among its assertions."""
PLAIN = str | int | float
REFERENCES = ("equals", "similar", "factuality", "model-graded-factuality")


def _assertions_in(assertions: Any, levels: int = MAX_LEVELS) -> Iterator[Mapping[str, Any]]:
    """The assertions of a list, and those of the sets in it."""
    for assertion in assertions if isinstance(assertions, list) and levels else ():
        if isinstance(assertion, Mapping):
            within = assertion.get("assert")
            yield from [assertion] if within is None else _assertions_in(within, levels - 1)


def _asserted_in(row: Record) -> list[Mapping[str, Any]]:
    inner = row.get("testCase") or row.get("test_case")
    return list(_assertions_in((inner if isinstance(inner, Mapping) else row).get("assert")))


def _references_in(row: Record) -> list[str]:
    """The references among the assertions of a row: texts and numbers, of which one may list several."""
    asserted = [one.get("value") for one in _asserted_in(row) if one.get("type") in REFERENCES]
    values = [value for given in asserted for value in (given if isinstance(given, list) else [given])]
    return [value if isinstance(value, str) else json.dumps(value) for value in values if isinstance(value, PLAIN)]


def _of_test(row: Record) -> Record:
    return {**row, REFERENCE: _references_in(row) or None}


def _remarks_on_test(row: Record) -> Remarks:
    return {} if _references_in(row) else _other_assertions(one.get("type") for one in _asserted_in(row))


def _expected(row: Record) -> list[tuple[str, str]]:
    """Kind and value of each assertion of promptfoo's tables, in columns `__expected…` as `type(threshold):value`."""
    cells = (value for name, value in row.items() if name.startswith("__expected"))
    return [_assertion(value) for value in cells if isinstance(value, str) and value.strip()]


def _of_expectations(row: Record) -> Record:
    return {**row, REFERENCE: [value for kind, value in _expected(row) if kind in REFERENCES] or None}


def _remarks_on_expectations(row: Record) -> Remarks:
    kinds = [kind for kind, _ in _expected(row)]
    return {} if set(kinds) & set(REFERENCES) else _other_assertions(kinds)


def _other_assertions(kinds: Iterable[Any]) -> Remarks:
    found = ", ".join(dict.fromkeys(map(str, kinds)))
    return {OTHER_ASSERTIONS: found} if found else {}


KINDS_OF_ASSERTIONS = (
    "contains", "icontains", "contains-all", "contains-any", "icontains-all", "icontains-any", "starts-with", "regex",
    "is-json", "contains-json", "is-xml", "is-sql", "javascript", "python", "fn", "eval", "webhook", "latency", "cost",
    "perplexity", "rouge-n", "bleu", "levenshtein", "llm-rubric", "grade", "model-graded-closedqa", "g-eval",
    "moderation",
    "answer-relevance", "context-recall", "context-relevance", "context-faithfulness", "select-best", "pi",
    "classifier",
    "equals", "similar", "factuality", "model-graded-factuality", "word-count",
    "is-valid-openai-tools-call", "guardrails",
    "is-refusal", "finish-reason", "trajectory", "file", "max-score", "tool-call-f1",
)  # fmt: skip


def _assertion(text: str) -> tuple[str, str]:
    """Kind and value of an assertion written in one cell; without a kind it is `equals`."""
    head, sign, rest = text.partition(":")
    kind = head.partition("(")[0].strip().removeprefix("not-")
    is_kind = kind in KINDS_OF_ASSERTIONS and (sign or head.rstrip().endswith(")"))
    if not is_kind:
        return "equals", text.strip()
    negated = head.strip().startswith("not-")
    return (f"not-{kind}" if negated else kind), rest.strip()


QUESTION = ("question", "query", "user_input", "input", "inputs", "prompt", "message")
INPUTS = ("inputs_question", "inputs_query", "inputs_input", "inputs_user_input")
OUTPUTS = ("outputs_answer", "outputs_output", "outputs_response")
SHAPES: tuple[Shape, ...] = (
    Shape(
        "promptfoo results", (("vars", "vars_question"), ("response", "response_output"), "provider"),
        {"question": tuple(f"vars_{name}" for name in QUESTION), "answer": ("response_output",),
         "ground_truth_answer": ("reference_of_assertions",), "latency_ms": ("latency_ms",), "cost_usd": ("cost",)},
        prepare=_of_test, remarks=_remarks_on_test,
    ),
    Shape(
        "promptfoo tests", (("vars", *(f"vars_{name}" for name in QUESTION)),),
        {"question": tuple(f"vars_{name}" for name in QUESTION), "ground_truth_answer": ("reference_of_assertions",),
         "cluster": ("metadata_category",)},
        prepare=_of_test, remarks=_remarks_on_test,
    ),
    Shape(
        "promptfoo tests", (("__expected", "__expected1"),),
        {"question": QUESTION, "ground_truth_answer": ("reference_of_assertions",), "answer": ("__provider_output",),
         "cluster": ("__metadata_category",)},
        prepare=_of_expectations, remarks=_remarks_on_expectations,
    ),
    Shape(
        "a chat of Telegram", ("date_unixtime", "from_id", "question"),
        {"id": ("id",), "question": ("question",), "answer": ("answer",), "created_at": ("date_unixtime",),
         "user_id": ("from_id",), "dialog_id": ("dialog_id",)},
    ),
    Shape(
        "LlamaIndex pairs for embeddings", ("question", "relevant_passages"),
        {"id": ("id",), "question": ("question",), "relevant_chunk_ids": ("relevant_passages",),
         "other_passages": ("other_passages",)},
    ),
    Shape(
        "MLflow traces with expectations", ("inputs", ("expectations", "expectations_expected_response")),
        {"question": ("inputs",), "answer": ("outputs",), "ground_truth_answer": ("expectations_expected_response",),
         "relevant_urls": ("expectations_expected_retrieved_context",)},
    ),
    Shape(
        "LangSmith experiment",
        (("inputs", *INPUTS), ("reference_outputs", "reference_output", *(f"reference_{name}" for name in OUTPUTS))),
        {"question": (*INPUTS, "inputs"), "answer": (*OUTPUTS, "outputs"),
         "ground_truth_answer": (*(f"reference_{name}" for name in OUTPUTS), "reference_outputs", "reference_output")},
    ),
    Shape(
        "LangSmith examples", (INPUTS, OUTPUTS),
        {"id": ("id",), "question": INPUTS, "ground_truth_answer": OUTPUTS},
        without=("inputs", "run_type", "trace_id", "ground_truth", "targets", "score", "expectations"),
    ),
    Shape(
        "LangSmith examples", ("inputs", "outputs", ("dataset_id", "source_run_id", "metadata", "id")),
        {"id": ("id",), "question": ("inputs",), "ground_truth_answer": ("outputs",)},
        without=("run_type", "trace_id", "ground_truth", "targets", "score"),
    ),
    Shape(
        "Langfuse dataset items",
        ("input", "expected_output", ("dataset_id", "dataset_name", "status", "metadata", "source_trace_id", "id")),
        {"id": ("id",), "question": ("input",), "ground_truth_answer": ("expected_output",),
         "relevant_urls": ("metadata_relevant_urls", "metadata_url"),
         "relevant_chunk_ids": ("metadata_contexts", "metadata_reference_contexts"),
         "further_chunk_ids": ("metadata_relevant_chunk_ids",)},
        without=("actual_output", "retrieval_context", "output"), leaves_out=_is_archived, tool="langfuse",
    ),
    Shape(
        "Phoenix dataset", ("input_question", ("output_answer", "output_output")),
        {"id": ("example_id", "id"), "question": ("input_question",),
         "ground_truth_answer": ("output_answer", "output_output")},
    ),
    Shape(
        "Phoenix dataset", ("input", "output", ("example_id", "node_id")),
        {"id": ("example_id", "id"), "question": ("input",), "ground_truth_answer": ("output",)},
        without=("trace_id", "start_time"),
    ),
    Shape(
        "MS MARCO", ("query", "passages_passage_text", "passages_is_selected"),
        {"id": ("query_id",), "question": ("query",), "ground_truth_answer": ("answers",),
         "relevant_chunk_ids": ("relevant_passages",), "other_passages": ("other_passages",)},
        prepare=_of_candidates,
    ),
    Shape(
        "Databricks evaluation set", ("request", ("expected_response", "retrieved_context", "request_id")),
        {"id": ("request_id",), "question": ("request",), "answer": ("response",),
         "ground_truth_answer": ("expected_response",), "contexts": ("retrieved_context",),
         "relevant_urls": ("expected_retrieved_context",)},
    ),
    Shape(
        "RAGChecker input", ("query", "gt_answer"),
        {"id": ("query_id",), "question": ("query",), "answer": ("response",), "ground_truth_answer": ("gt_answer",),
         "contexts": ("retrieved_context",)},
    ),
    Shape(
        "ragas results", ("user_input", ("response", "retrieved_contexts")),
        {"question": ("user_input",), "answer": ("response",), "ground_truth_answer": ("reference",),
         "contexts": ("retrieved_contexts",), "relevant_chunk_ids": ("reference_contexts", "reference_context_ids"),
         "made_by": ("synthesizer_name",)},
        prepare=_of_conversation, tool="ragas",
    ),
    Shape(
        "ragas test set", ("user_input", ("reference", "reference_contexts")),
        {"question": ("user_input",), "ground_truth_answer": ("reference",),
         "relevant_chunk_ids": ("reference_contexts", "reference_context_ids"), "made_by": ("synthesizer_name",)},
        prepare=_of_conversation, tool="ragas",
    ),
    Shape(
        "ragas 0.1 results", ("question", ("ground_truth", "ground_truths"), "answer", ("contexts", "faithfulness")),
        {"question": ("question",), "answer": ("answer",), "ground_truth_answer": ("ground_truth", "ground_truths"),
         "contexts": ("contexts",)},
        filled=("answer",), tool="ragas",
    ),
    Shape(
        "ragas 0.1 test set", ("question", ("ground_truth", "ground_truths"), ("contexts", "evolution_type")),
        {"question": ("question",), "ground_truth_answer": ("ground_truth", "ground_truths"),
         "relevant_chunk_ids": ("contexts",), "made_by": ("evolution_type",)},
        tool="ragas",
    ),
    Shape(
        "DeepEval test cases", ("input", ("actual_output", "retrieval_context")),
        {"question": ("input",), "answer": ("actual_output",), "ground_truth_answer": ("expected_output",),
         "contexts": ("retrieval_context",), "relevant_chunk_ids": ("context",), "passage_url": ("source_file",)},
    ),
    Shape(
        "OpenAI evals", ("input", ("ideal", "target")),
        {"id": ("id",), "question": ("input",), "ground_truth_answer": ("ideal", "target")},
    ),
    Shape(
        "pydantic-evals cases", ("inputs", "expected_output"),
        {"question": ("inputs",), "ground_truth_answer": ("expected_output",), "id": ("name",)},
        without=("outputs",),
    ),
    Shape(
        "LlamaIndex labelled data set", ("query", ("reference_contexts", "reference_answer")),
        {"question": ("query",), "ground_truth_answer": ("reference_answer",),
         "relevant_chunk_ids": ("reference_contexts",)},
        without=("response",),
    ),
    Shape(
        "Haystack report", ("questions", "predicted_answers"),
        {"question": ("questions",), "answer": ("predicted_answers",), "ground_truth_answer": ("ground_truth_answers",),
         "contexts": ("contexts",), "relevant_chunk_ids": ("ground_truth_documents",)},
    ),
    Shape(
        "MLflow results", (("question", "inputs", "query"), "outputs", ("ground_truth", "targets", "source_documents")),
        {"question": ("question", "inputs", "query"), "answer": ("outputs",),
         "ground_truth_answer": ("ground_truth", "targets"), "contexts": ("source_documents", "retrieved_context")},
    ),
    Shape(
        "AutoRAG questions", ("query", "retrieval_gt"),
        {"id": ("qid",), "question": ("query",), "ground_truth_answer": ("generation_gt",),
         "relevant_chunk_ids": ("retrieval_gt",)},
        remarks=_remarks_on_groups,
    ),
    Shape(
        "AutoRAG passages", ("doc_id", "contents"),
        {"id": ("doc_id",), "text": ("contents",), "confluence_url": ("path", "metadata_path")},
        kind="chunks",
    ),
    Shape(
        "SQuAD rows", ("question", "context", ("answers", "answers_text")),
        {"id": ("id",), "question": ("question",), "ground_truth_answer": ("answers",),
         "relevant_chunk_ids": ("context",), "cluster": ("title",), "passage_url": ("title",)},
        without=("answer", "response"),
    ),
    Shape(
        "RAGBench", ("question", "documents", "response"),
        {"id": ("id",), "question": ("question",), "answer": ("response",), "contexts": ("documents",)},
    ),
    Shape(
        "judged passages (MIRACL, MTEB)", ("query", "positive_passages"),
        {"id": ("query_id",), "question": ("query",), "relevant_chunk_ids": ("positive_passages",),
         "irrelevant_passages": ("negative_passages",)},
    ),
    Shape(
        "nuggets", ("query", "nuggets"),
        {"id": ("qid",), "question": ("query",), "nuggets": ("nuggets",)},
    ),
    Shape(
        "DeepEval conversations", ("turns",),
        {"id": ("id", "name"), "question": ("turns",), "answer": ("turns",), "contexts": ("contexts_of_turn",)},
        without=("question", "query", "input", "user_input", "text"),
        prepare=_of_turns, remarks=_remarks_on_conversation,
    ),
    Shape(
        "messages of a chat", ("messages",), {"question": ("messages",), "answer": ("messages",)},
        without=("question", "query", "input", "text"), remarks=_remarks_on_conversation,
    ),
)  # fmt: skip
"""In the order in which they are tried: the more particular first."""

"""Define the table shapes of known tools: the names that identify each, and the meaning of its columns.

Each shape is tested with a file as its tool writes it. Names are in the form of `recognise.normalize_name`: small
letters, words joined by _, and nested names after the name of their object.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from yarus.db.importers.literals import MAX_LEVELS, parse_if_literal
from yarus.db.importers.traces.extraction import extract_reply, is_unanswered, parse_messages
from yarus.db.messages import Words

PASSAGE_KEYS = ("relevant_passages", "other_passages")
"""Names that `records` gives to passages in a document with questions."""
Remarks = Mapping[Words, str | None]
"""Parts of a row that Yarus does not use as its tool means them: remark -> an example, None for the row itself."""
OTHER_ASSERTIONS = Words("rows with an assertion that is no reference answer: {n} ({examples})")
SEVERAL_REFERENCES = Words("rows with several references: {n} ({examples}); the first is used")
NEEDED_TOGETHER = Words(
    "questions that need several passages together: {n} ({examples}); each passage counts as relevant by itself"
)
ALTERNATIVES = Words(
    "questions for which one of several passages is enough: {n} ({examples}); recall counts each of them as needed"
)
UNANSWERED = Words("conversations that end with the user: {n} ({examples}); they have no answer")
RequiredNames = tuple[str | tuple[str, ...], ...]
Record = Mapping[str, Any]


@dataclass(frozen=True)
class Shape:
    """A shape of tables."""

    name: str
    required_names: RequiredNames
    """Names that must be present; of a tuple, one of them."""
    columns: Mapping[str, tuple[str, ...]]
    """Our column -> candidates in the table, of which the first with values is used."""
    forbidden_names: tuple[str, ...] = ()
    """Names that must be absent."""
    kind: Literal["questions", "chunks"] = "questions"
    prepare: Callable[[Record], Record] | None = None
    """Adds fields to a row that follow from several of its columns."""
    remarks: Callable[[Record], Remarks] | None = None
    """Returns the parts of a prepared row that Yarus reads differently than the tool that wrote it."""
    is_skipped: Callable[[Record], bool] | None = None
    """Returns whether a row is skipped."""
    tool: str = ""
    """The tool, as `dataset import` names it."""
    names_with_values: tuple[str, ...] = field(default=())
    """Names that must have values."""


def detect_shape(names: Collection[str], filled: Collection[str]) -> Shape | None:
    """Return the shape of a table with these columns, of which some have values; None if it is unknown."""
    return next((shape for shape in SHAPES if _matches(shape, names, filled)), None)


def _matches(shape: Shape, names: Collection[str], filled: Collection[str]) -> bool:
    has_needs = all(
        any(name in names for name in ((need,) if isinstance(need, str) else need)) for need in shape.required_names
    )
    return (
        has_needs
        and not any(name in names for name in shape.forbidden_names)
        and all(name in filled for name in shape.names_with_values)
    )


def _is_archived(row: Record) -> bool:
    return str(row.get("status", "")).upper() == "ARCHIVED"


def _split_candidates(row: Record) -> Record:
    """Add the selected and the other passages to a row of MS MARCO."""
    candidate_columns = row.get("passages")
    passages = candidate_columns.get("passage_text") if isinstance(candidate_columns, Mapping) else None
    selections = candidate_columns.get("is_selected") if isinstance(candidate_columns, Mapping) else None
    pairs = list(zip(passages or (), selections or (), strict=False))
    by_selection = {wanted: [text for text, selected in pairs if bool(selected) == wanted] for wanted in (True, False)}
    return {**row, "relevant_passages": by_selection[True], "other_passages": by_selection[False]}


def _remarks_on_groups(row: Record) -> Remarks:
    """Return remarks on AutoRAG's `retrieval_gt`: every group is needed, and one passage of each group."""
    groups = parse_if_literal(row.get("retrieval_gt"))
    sizes = [len(group) for group in groups if isinstance(group, list | tuple)] if isinstance(groups, list) else []
    conditions = ((NEEDED_TOGETHER, len(sizes) > 1), (ALTERNATIVES, any(size > 1 for size in sizes)))
    return {remark: None for remark, applies in conditions if applies}


def _add_turn_contexts(row: Record) -> Record:
    """Add the contexts of the last answer to a DeepEval conversation, from the turn of that answer."""
    turns = parse_if_literal(row.get("turns"))
    last = turns[-1] if isinstance(turns, list) and turns else None
    return {**row, "contexts_of_turn": last.get("retrieval_context") if isinstance(last, Mapping) else None}


def _add_response(row: Record) -> Record:
    """Add the response to a row of ragas whose question is a conversation with the answer in it."""
    chat = row.get("user_input")
    return row if row.get("response") or extract_reply(parse_messages(chat)) is None else {**row, "response": chat}


def _remarks_on_conversation(row: Record) -> Remarks:
    return {UNANSWERED: None} if is_unanswered(parse_messages(row.get("messages") or row.get("turns"))) else {}


# promptfoo: answers are compared with assertions, and only some of these are reference answers

ASSERTION_REFERENCE = "reference of assertions"
"""Name of the reference from its assertions in a prepared row."""
SCALAR = str | int | float
REFERENCE_ASSERTIONS = ("equals", "similar", "factuality", "model-graded-factuality")


def _iter_assertions(assertions: Any, levels: int = MAX_LEVELS) -> Iterator[Mapping[str, Any]]:
    """Yield the assertions of a list, and those of the sets in it."""
    for assertion in assertions if isinstance(assertions, list) and levels else ():
        if isinstance(assertion, Mapping):
            nested_assertions = assertion.get("assert")
            yield from [assertion] if nested_assertions is None else _iter_assertions(nested_assertions, levels - 1)


def _row_assertions(row: Record) -> list[Mapping[str, Any]]:
    test_case = row.get("testCase") or row.get("test_case")
    return list(_iter_assertions((test_case if isinstance(test_case, Mapping) else row).get("assert")))


def _find_references(row: Record) -> list[str]:
    """Return the references among the assertions of a row: texts and numbers; one assertion may list several."""
    expected = [
        assertion.get("value") for assertion in _row_assertions(row) if assertion.get("type") in REFERENCE_ASSERTIONS
    ]
    values = [value for listed in expected for value in (listed if isinstance(listed, list) else [listed])]
    return [value if isinstance(value, str) else json.dumps(value) for value in values if isinstance(value, SCALAR)]


def _add_test_reference(row: Record) -> Record:
    return {**row, ASSERTION_REFERENCE: _find_references(row) or None}


def _remarks_on_test(row: Record) -> Remarks:
    types = (assertion.get("type") for assertion in _row_assertions(row))
    return {} if _find_references(row) else _remarks_on_assertions(types)


def _parse_expectations(row: Record) -> list[tuple[str, str]]:
    """Return kind and value of each assertion in promptfoo's `__expected…` columns, `type(threshold):value`."""
    cells = (value for name, value in row.items() if name.startswith("__expected"))
    return [_parse_assertion(value) for value in cells if isinstance(value, str) and value.strip()]


def _add_expected_reference(row: Record) -> Record:
    return {
        **row,
        ASSERTION_REFERENCE: [value for kind, value in _parse_expectations(row) if kind in REFERENCE_ASSERTIONS]
        or None,
    }


def _remarks_on_expectations(row: Record) -> Remarks:
    kinds = [kind for kind, _ in _parse_expectations(row)]
    return {} if set(kinds) & set(REFERENCE_ASSERTIONS) else _remarks_on_assertions(kinds)


def _remarks_on_assertions(kinds: Iterable[Any]) -> Remarks:
    kind_list = ", ".join(dict.fromkeys(map(str, kinds)))
    return {OTHER_ASSERTIONS: kind_list} if kind_list else {}


ASSERTION_KINDS = (
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


def _parse_assertion(text: str) -> tuple[str, str]:
    """Return kind and value of an assertion in one cell; without a kind it is `equals`."""
    kind_part, separator, value = text.partition(":")
    kind = kind_part.partition("(")[0].strip().removeprefix("not-")
    is_kind = kind in ASSERTION_KINDS and (separator or kind_part.rstrip().endswith(")"))
    if not is_kind:
        return "equals", text.strip()
    negated = kind_part.strip().startswith("not-")
    return (f"not-{kind}" if negated else kind), value.strip()


QUESTION_NAMES = ("question", "query", "user_input", "input", "inputs", "prompt", "message")
INPUT_NAMES = ("inputs_question", "inputs_query", "inputs_input", "inputs_user_input")
OUTPUT_NAMES = ("outputs_answer", "outputs_output", "outputs_response")
SHAPES: tuple[Shape, ...] = (
    Shape(
        "promptfoo results", (("vars", "vars_question"), ("response", "response_output"), "provider"),
        {"question": tuple(f"vars_{name}" for name in QUESTION_NAMES), "answer": ("response_output",),
         "ground_truth_answer": ("reference_of_assertions",), "latency_ms": ("latency_ms",), "cost_usd": ("cost",)},
        prepare=_add_test_reference, remarks=_remarks_on_test,
    ),
    Shape(
        "promptfoo tests", (("vars", *(f"vars_{name}" for name in QUESTION_NAMES)),),
        {"question": tuple(f"vars_{name}" for name in QUESTION_NAMES),
         "ground_truth_answer": ("reference_of_assertions",), "cluster": ("metadata_category",)},
        prepare=_add_test_reference, remarks=_remarks_on_test,
    ),
    Shape(
        "promptfoo tests", (("__expected", "__expected1"),),
        {"question": QUESTION_NAMES, "ground_truth_answer": ("reference_of_assertions",),
         "answer": ("__provider_output",), "cluster": ("__metadata_category",)},
        prepare=_add_expected_reference, remarks=_remarks_on_expectations,
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
        (("inputs", *INPUT_NAMES),
         ("reference_outputs", "reference_output", *(f"reference_{name}" for name in OUTPUT_NAMES))),
        {"question": (*INPUT_NAMES, "inputs"), "answer": (*OUTPUT_NAMES, "outputs"),
         "ground_truth_answer": (
             *(f"reference_{name}" for name in OUTPUT_NAMES), "reference_outputs", "reference_output"
         )},
    ),
    Shape(
        "LangSmith examples", (INPUT_NAMES, OUTPUT_NAMES),
        {"id": ("id",), "question": INPUT_NAMES, "ground_truth_answer": OUTPUT_NAMES},
        forbidden_names=("inputs", "run_type", "trace_id", "ground_truth", "targets", "score", "expectations"),
    ),
    Shape(
        "LangSmith examples", ("inputs", "outputs", ("dataset_id", "source_run_id", "metadata", "id")),
        {"id": ("id",), "question": ("inputs",), "ground_truth_answer": ("outputs",)},
        forbidden_names=("run_type", "trace_id", "ground_truth", "targets", "score"),
    ),
    Shape(
        "Langfuse dataset items",
        ("input", "expected_output", ("dataset_id", "dataset_name", "status", "metadata", "source_trace_id", "id")),
        {"id": ("id",), "question": ("input",), "ground_truth_answer": ("expected_output",),
         "relevant_urls": ("metadata_relevant_urls", "metadata_url"),
         "relevant_chunk_ids": ("metadata_contexts", "metadata_reference_contexts"),
         "further_chunk_ids": ("metadata_relevant_chunk_ids",)},
        forbidden_names=("actual_output", "retrieval_context", "output"), is_skipped=_is_archived, tool="langfuse",
    ),
    Shape(
        "Phoenix dataset", ("input_question", ("output_answer", "output_output")),
        {"id": ("example_id", "id"), "question": ("input_question",),
         "ground_truth_answer": ("output_answer", "output_output")},
    ),
    Shape(
        "Phoenix dataset", ("input", "output", ("example_id", "node_id")),
        {"id": ("example_id", "id"), "question": ("input",), "ground_truth_answer": ("output",)},
        forbidden_names=("trace_id", "start_time"),
    ),
    Shape(
        "MS MARCO", ("query", "passages_passage_text", "passages_is_selected"),
        {"id": ("query_id",), "question": ("query",), "ground_truth_answer": ("answers",),
         "relevant_chunk_ids": ("relevant_passages",), "other_passages": ("other_passages",)},
        prepare=_split_candidates,
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
        prepare=_add_response, tool="ragas",
    ),
    Shape(
        "ragas test set", ("user_input", ("reference", "reference_contexts")),
        {"question": ("user_input",), "ground_truth_answer": ("reference",),
         "relevant_chunk_ids": ("reference_contexts", "reference_context_ids"), "made_by": ("synthesizer_name",)},
        prepare=_add_response, tool="ragas",
    ),
    Shape(
        "ragas 0.1 results", ("question", ("ground_truth", "ground_truths"), "answer", ("contexts", "faithfulness")),
        {"question": ("question",), "answer": ("answer",), "ground_truth_answer": ("ground_truth", "ground_truths"),
         "contexts": ("contexts",)},
        names_with_values=("answer",), tool="ragas",
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
        forbidden_names=("outputs",),
    ),
    Shape(
        "LlamaIndex labelled data set", ("query", ("reference_contexts", "reference_answer")),
        {"question": ("query",), "ground_truth_answer": ("reference_answer",),
         "relevant_chunk_ids": ("reference_contexts",)},
        forbidden_names=("response",),
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
        forbidden_names=("answer", "response"),
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
        forbidden_names=("question", "query", "input", "user_input", "text"),
        prepare=_add_turn_contexts, remarks=_remarks_on_conversation,
    ),
    Shape(
        "messages of a chat", ("messages",), {"question": ("messages",), "answer": ("messages",)},
        forbidden_names=("question", "query", "input", "text"), remarks=_remarks_on_conversation,
    ),
)  # fmt: skip
"""Shapes in the order in which they are tried: the more specific first."""

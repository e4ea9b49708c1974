"""Detect rows that are traces by the names of their columns, and classify other documents."""

from collections.abc import Collection

REQUEST_KEYS = ("resourceSpans", "resource_spans", "batches")
TRACE_IDS = frozenset({"traceId", "trace_id", "context.trace_id", "context.traceId"})
SPAN_IDS = frozenset({"spanId", "span_id", "context.span_id", "context.spanId"})
SPAN_NAMES = frozenset({
    "attributes", "parentSpanId", "parent_span_id", "parent_id", "parentId", "span_kind", "spanKind",
    "startTimeUnixNano", "start_time_unix_nano",
})  # fmt: skip
OBSERVATION_NAMES = frozenset({"parentObservationId", "parent_observation_id"})
START_NAMES = frozenset({"startTime", "start_time"})
TRACE_NAMES = frozenset({
    "release", "version", "environment", "tags", "bookmarked", "public", "scores", "comments", "projectId",
    "project_id", "totalCost", "total_cost", "htmlPath", "sessionId", "session_id",
})  # fmt: skip
"""Columns of Langfuse traces besides id, timestamp, input and output; two of them suffice."""
ITEM_NAMES = frozenset({"datasetId", "dataset_id", "datasetName", "dataset_name", "expectedOutput", "expected_output"})
RUN_NAMES = frozenset({"parent_run_id", "parent_run_ids", "dotted_order", "child_run_ids"})
RECORD_NAMES = frozenset({
    "app_id", "app_name", "app_json", "app_version", "total_tokens", "total_cost", "perf_json", "cost_json",
})  # fmt: skip


def is_trace_row(names: Collection[str]) -> bool:
    """Return whether rows with these columns are traces: spans, observations, runs or records.

    Args:
        names: of the columns, or of the fields of one object.
    """
    text_names = {name for name in names if isinstance(name, str)}
    kinds = (_is_request, _is_span, _is_observation, _is_trace, is_run, is_record)
    return any(is_kind(text_names) for is_kind in kinds)


def is_run(names: Collection[str]) -> bool:
    """Return whether an object with these names is a run of LangSmith."""
    has_texts = any(name.partition(".")[0] in ("inputs", "outputs") for name in names)
    return has_texts and ("run_type" in names or ("trace_id" in names and not RUN_NAMES.isdisjoint(names)))


def is_record(names: Collection[str]) -> bool:
    """Return whether an object with these names is a record of TruLens."""
    if {"main_input", "main_output"}.issubset(names):
        return True
    if "record_id" not in names:
        return False
    return "record_json" in names or ({"input", "output"}.issubset(names) and not RECORD_NAMES.isdisjoint(names))


def _is_request(names: set[str]) -> bool:
    return "resourceSpans" in names or "resource_spans" in names


def _is_span(names: set[str]) -> bool:
    has_details = not SPAN_NAMES.isdisjoint(names) or any(name.startswith("attributes.") for name in names)
    if "context" in names:  # an object, as SDKs print spans
        return "attributes" in names and not names.isdisjoint((*SPAN_NAMES - {"attributes"}, *START_NAMES))
    has_ids = not TRACE_IDS.isdisjoint(names) and not SPAN_IDS.isdisjoint(names)
    return has_details and (has_ids or "context.trace_id" in names)


def _is_observation(names: set[str]) -> bool:
    if "id" not in names or TRACE_IDS.isdisjoint(names):
        return False
    return not OBSERVATION_NAMES.isdisjoint(names) or ("type" in names and not START_NAMES.isdisjoint(names))


def _is_trace(names: set[str]) -> bool:
    if "trace" in names and "observations" in names:
        return True
    if not {"id", "timestamp"} <= names or not ITEM_NAMES.isdisjoint(names):
        return False
    return "observations" in names or ({"input", "output"} <= names and len(TRACE_NAMES & names) >= 2)

"""Which rows are traces, by the names of their columns alone, and what else a document may be."""

from collections.abc import Collection

REQUESTS = ("resourceSpans", "resource_spans", "batches")
TRACE_IDS = frozenset({"traceId", "trace_id", "context.trace_id", "context.traceId"})
SPAN_IDS = frozenset({"spanId", "span_id", "context.span_id", "context.spanId"})
OF_SPANS = frozenset({
    "attributes", "parentSpanId", "parent_span_id", "parent_id", "parentId", "span_kind", "spanKind",
    "startTimeUnixNano", "start_time_unix_nano",
})  # fmt: skip
OF_OBSERVATIONS = frozenset({"parentObservationId", "parent_observation_id"})
STARTS = frozenset({"startTime", "start_time"})
OF_TRACES = frozenset({
    "release", "version", "environment", "tags", "bookmarked", "public", "scores", "comments", "projectId",
    "project_id", "totalCost", "total_cost", "htmlPath", "sessionId", "session_id",
})  # fmt: skip
"""Columns of Langfuse's traces beside id, timestamp, input and output; two of them are enough."""
OF_DATASETS = frozenset({"datasetId", "dataset_id", "datasetName", "dataset_name", "expectedOutput", "expected_output"})
OF_RUNS = frozenset({"parent_run_id", "parent_run_ids", "dotted_order", "child_run_ids"})
OF_RECORDS = frozenset({
    "app_id", "app_name", "app_json", "app_version", "total_tokens", "total_cost", "perf_json", "cost_json",
})  # fmt: skip


def is_trace_row(names: Collection[str]) -> bool:
    """Return whether rows with these columns are traces: spans, observations, runs or records.

    Args:
        names: of the columns, or of the fields of one object.
    """
    given = {name for name in names if isinstance(name, str)}
    kinds = (_is_request, _is_span, _is_observation, _is_trace, is_run, is_record)
    return any(is_kind(given) for is_kind in kinds)


def is_run(names: Collection[str]) -> bool:
    """Return whether an object with these names is a run of LangSmith."""
    has_texts = any(name.partition(".")[0] in ("inputs", "outputs") for name in names)
    return has_texts and ("run_type" in names or ("trace_id" in names and not OF_RUNS.isdisjoint(names)))


def is_record(names: Collection[str]) -> bool:
    """Return whether an object with these names is a record of TruLens."""
    if {"main_input", "main_output"}.issubset(names):
        return True
    if "record_id" not in names:
        return False
    return "record_json" in names or ({"input", "output"}.issubset(names) and not OF_RECORDS.isdisjoint(names))


def _is_request(names: set[str]) -> bool:
    return "resourceSpans" in names or "resource_spans" in names


def _is_span(names: set[str]) -> bool:
    described = not OF_SPANS.isdisjoint(names) or any(name.startswith("attributes.") for name in names)
    if "context" in names:  # an object, as SDKs print spans
        return "attributes" in names and not names.isdisjoint((*OF_SPANS - {"attributes"}, *STARTS))
    named = not TRACE_IDS.isdisjoint(names) and not SPAN_IDS.isdisjoint(names)
    return described and (named or "context.trace_id" in names)


def _is_observation(names: set[str]) -> bool:
    if "id" not in names or TRACE_IDS.isdisjoint(names):
        return False
    return not OF_OBSERVATIONS.isdisjoint(names) or ("type" in names and not STARTS.isdisjoint(names))


def _is_trace(names: set[str]) -> bool:
    if "trace" in names and "observations" in names:
        return True
    if not {"id", "timestamp"} <= names or not OF_DATASETS.isdisjoint(names):
        return False
    return "observations" in names or ({"input", "output"} <= names and len(OF_TRACES & names) >= 2)

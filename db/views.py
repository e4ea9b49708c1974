"""SQL views over the journal for BI tools; every column has a comment (docs/sql.md).

Views hold no data, so the newest migration about them drops and creates all of them; older ones then create none.
"""

from typing import NamedTuple

from sqlalchemy import Connection, text

from yarus.db.tables import SCHEMA


class View(NamedTuple):
    """A view of the schema `yarus`."""

    meaning: str
    columns: dict[str, str]
    """Name -> meaning, in the order of the query."""
    query: str


METRIC_COLUMNS = {
    "metric": "as in docs/metrics.md",
    "stratum": "part of the cases; '' where the tier has none",
    "value": "NULL when it was not measured",
    "ci_low": "lower end of the 95 % interval",
    "ci_high": "upper end of the 95 % interval; NULL beside a ci_low where it is open",
    "n_scored": "cases that the value rests on",
    "n_total": "cases asked for",
    "grade": "excellent, good, attention (silhouette: strong … none)",
}

NAME_COLUMNS = {"name": "what people call the evaluation", "tags": "words that people gave it: 'nightly' = ANY(tags)"}
IS_LIVE = "NOT (jsonb_strip_nulls(coalesce({}.resolved, '{{}}')) ?| ARRAY['again', 'anchor', 'answers_of', 'part_of'])"
"""SQL condition for evaluations of the live system: no repeat, no judging of stored answers, no sweep variant."""

LATEST = View(
    "the newest finished evaluation of every tier and source, a row a metric",
    {
        "tier": "tier0 … ux",
        "source": "where the questions came from",
        "evaluation_id": "id in yarus.evaluation",
        "state": "completed or invalid; do not rely on the values of an invalid one",
        "started_at": "start in UTC",
        "finished_at": "end in UTC",
        "sut_label": "version of the system under test",
        **NAME_COLUMNS,
        "comparability_key": "equal keys: the metrics can be compared",
        "coverage": "measured cases / cases that could be measured",
        **METRIC_COLUMNS,
        "direction": "higher, lower or neither is better",
        "reason": "why value is NULL",
    },
    f"""
    SELECT e.tier, e.source, e.id AS evaluation_id, e.state, e.started_at, e.finished_at, e.sut_label,
           e.name, e.tags, e.comparability_key, e.coverage, m.metric, m.stratum, m.value, m.ci_low, m.ci_high,
           m.n_scored, m.n_total, m.grade, m.direction, m.reason
    FROM (
        SELECT DISTINCT ON (tier, source) * FROM yarus.evaluation AS of
        WHERE state IN ('completed', 'invalid') AND {IS_LIVE.format("of")}
        ORDER BY tier, source, started_at DESC, id DESC
    ) AS e
    JOIN yarus.evaluation_metric AS m ON m.evaluation_id = e.id
    """,  # noqa: S608 - no outside values
)

TREND = View(
    "every metric of every completed evaluation, beside the evaluation before it that it can be compared with",
    {
        "tier": "tier0 … ux",
        "source": "where the questions came from",
        **METRIC_COLUMNS,
        "evaluation_id": "id in yarus.evaluation",
        "started_at": "start in UTC",
        "sut_label": "version of the system under test",
        **NAME_COLUMNS,
        "comparability_key": "draw one line a key: values of different keys must not be joined",
        "previous_id": "the evaluation before it with the same key; NULL for the first of a key",
        "previous_value": "its value",
        "difference": "value - previous_value, without a test: yarus compare says whether it is real",
        "is_break": "the key differs from that of the evaluation before it: the line is broken here",
    },
    f"""
    SELECT e.tier, e.source, m.metric, m.stratum, m.value, m.ci_low, m.ci_high, m.n_scored, m.n_total, m.grade,
           e.id AS evaluation_id, e.started_at, e.sut_label, e.name, e.tags, e.comparability_key,
           lag(e.id) OVER of_key AS previous_id,
           lag(m.value) OVER of_key AS previous_value,
           m.value - lag(m.value) OVER of_key AS difference,
           coalesce(e.comparability_key <> lag(e.comparability_key) OVER of_line, false) AS is_break
    FROM yarus.evaluation AS e
    JOIN yarus.evaluation_metric AS m ON m.evaluation_id = e.id
    WHERE e.state = 'completed' AND {IS_LIVE.format("e")}
    WINDOW of_key AS (
               PARTITION BY e.tier, e.source, m.metric, m.stratum, e.comparability_key ORDER BY e.started_at, e.id
           ),
           of_line AS (PARTITION BY e.tier, e.source, m.metric, m.stratum ORDER BY e.started_at, e.id)
    """,  # noqa: S608 - no outside values
)

FAILURES = View(
    "cases of every finished evaluation that were not scored in full, counted by status",
    {
        "evaluation_id": "id in yarus.evaluation",
        "tier": "tier0 … ux",
        "source": "where the questions came from",
        "started_at": "start in UTC",
        "state": "completed or invalid",
        "sut_label": "version of the system under test",
        **NAME_COLUMNS,
        "status": "sut_error, sut_refusal, judge_error, parse_error, unlabelled, stale_label, not_applicable, …",
        "measurable": "false where no evaluation could have scored them: unlabelled, stale_label, not_applicable",
        "cases": "how many cases have this status",
        "share": "of all cases of the evaluation, 0 to 1",
    },
    """
    SELECT e.id AS evaluation_id, e.tier, e.source, e.started_at, e.state, e.sut_label, e.name, e.tags, s.key AS status,
           s.key NOT IN ('unlabelled', 'stale_label', 'not_applicable') AS measurable,
           s.value::integer AS cases,
           s.value::double precision / nullif(e.n_cases, 0) AS share
    FROM yarus.evaluation AS e, jsonb_each_text(e.statuses) AS s
    WHERE e.state IN ('completed', 'invalid') AND s.key <> 'ok'
    """,
)

VIEWS: dict[str, View] = {"latest": LATEST, "trend": TREND, "failures": FAILURES}


def create(connection: Connection) -> None:
    """Drop and create all views, with a comment on each view and column."""
    drop(connection)
    for name, view in VIEWS.items():
        connection.exec_driver_sql(f"CREATE VIEW {SCHEMA}.{name} AS {view.query}")
        _add_comment(connection, "VIEW", f"{SCHEMA}.{name}", view.meaning)
        for column, meaning in view.columns.items():
            _add_comment(connection, "COLUMN", f"{SCHEMA}.{name}.{column}", meaning)


def drop(connection: Connection) -> None:
    """Drop the existing views."""
    for name in VIEWS:
        connection.execute(text(f"DROP VIEW IF EXISTS {SCHEMA}.{name}"))


def _add_comment(connection: Connection, kind: str, name: str, meaning: str) -> None:
    quoted = meaning.replace("'", "''")
    connection.exec_driver_sql(f"COMMENT ON {kind} {name} IS '{quoted}'".replace("%", "%%"))

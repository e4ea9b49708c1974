"""An evaluation as a run of MLflow."""

import json
import os
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from typing_extensions import TypedDict

from yarus.db.errors import InputError
from yarus.db.words import Words
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.results.summary import EvaluationSummary, summary


class LoggedRun(TypedDict):
    """A run of MLflow tracking."""

    tracking_uri: str
    experiment: str
    run_id: str


def to_mlflow(engine: Engine, evaluation_id: str, uri: str | None) -> LoggedRun:
    """Logs an evaluation as a run of MLflow tracking, in the experiment `yarus/TIER`; the same one only once.

    Args:
        engine: of our own database.
        evaluation_id: or the beginning or end of it, or `last`.
        uri: of the tracking store; None: MLFLOW_TRACKING_URI, or what MLflow takes without it.

    Raises:
        InputError: MLflow is not installed, there is no such evaluation, it is not finished, or its run is there.
        OSError: the tracking store cannot be reached or refuses us.
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # before the import, which looks at it
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")  # by itself it would wait four minutes for nobody
    try:
        import mlflow
        from mlflow.exceptions import MlflowException
    except ImportError:
        raise InputError("--mlflow needs the package mlflow: pip install 'yarus[mlflow]'") from None
    found = summary(engine, evaluation_id)
    if not found["metrics"]:
        raise InputError(
            "evaluation {evaluation} is {state} and has no metrics",
            evaluation=found["evaluation_id"],
            state=found["state"],
        )
    place = uri or mlflow.get_tracking_uri()
    try:
        experiment, run_id = _log(mlflow.MlflowClient(tracking_uri=place), found)
    except (MlflowException, SQLAlchemyError) as error:
        raise OSError(
            Words("MLflow at {place}: {error}. Check --tracking-uri", place=redact_urls(place), error=error)
        ) from None
    return {"tracking_uri": redact_urls(place), "experiment": experiment, "run_id": run_id}


def mlflow_name(metric: str, stratum: str = "") -> str:
    """A metric's name as MLflow allows it: `hit_rate@10` is `hit_rate_at_10`, a stratum goes before it."""
    name = metric.replace("@", "_at_")
    return f"{stratum}/{name}" if stratum else name


def _log(client: Any, found: EvaluationSummary) -> tuple[str, str]:
    """Experiment and run; the run is marked finished last, so that a half-logged one shows."""
    said: Mapping[str, Any] = found
    name, evaluation_id = f"yarus/{found['tier']}", found["evaluation_id"]
    known = client.get_experiment_by_name(name)
    experiment_id = known.experiment_id if known else client.create_experiment(name)
    query = f"tags.`yarus.evaluation_id` = '{evaluation_id}' and attributes.status = 'FINISHED'"
    if there := client.search_runs([experiment_id], query):
        raise InputError(
            "evaluation {evaluation} is logged already: run {run} of {name}",
            evaluation=evaluation_id,
            run=there[0].info.run_id,
            name=name,
        )
    begun, ended = (int(datetime.fromisoformat(said[key]).timestamp() * 1000) for key in ("started_at", "finished_at"))
    tags = {"yarus.evaluation_id": evaluation_id, **{f"yarus.{key}": str(said[key]) for key in TAGS if said[key]}}
    run_id = client.create_run(experiment_id, run_name=evaluation_id, start_time=begun, tags=tags).info.run_id
    for key, value in found["system"].items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        client.log_param(run_id, key, text[:LONGEST_PARAMETER])
    parts = {"": found["metrics"], **found.get("strata", {})}
    for stratum, metrics in parts.items():
        for metric, measured in metrics.items():
            parts_of = {"": measured["value"], "_ci_low": measured["ci_low"], "_ci_high": measured["ci_high"]}
            for suffix, number in parts_of.items():
                if number is not None:
                    client.log_metric(run_id, mlflow_name(metric, stratum) + suffix, number, timestamp=ended)
    client.set_terminated(run_id, end_time=ended)
    return name, run_id


TAGS = ("tier", "source", "state", "comparability_key", "case_set_hash", "sut_label", "parquet")
LONGEST_PARAMETER = 500  # characters; MLflow stores up to 6000, servers before 2.9 only 500

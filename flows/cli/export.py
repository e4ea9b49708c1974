"""`yarus export`: an evaluation for other programs."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from yarus.db.messages import Words
from yarus.flows.cli import as_json, format_json, warn_about_pseudonyms

if TYPE_CHECKING:
    from yarus.flows.cli.framework.command_schema import ExportedFile, ExportedRun
    from yarus.tasks.evaluation.scores import ExportedScores, ScoreFormat

STORES: tuple["ScoreFormat", ...] = ("otlp", "langfuse")
"""Trace stores that scores can be written for."""


@click.command()
@click.argument("evaluation")
@click.option(
    "--to",
    "target",
    metavar="FILE|otlp|langfuse",
    type=click.Path(path_type=Path),
    help="File to write: .csv, .jsonl or .parquet; or the store of traces that its scores are for.",
)
@click.option("--metrics", is_flag=True, help="One row per metric instead of one per case.")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@click.option("--mlflow", "is_mlflow", is_flag=True, help="Log the evaluation as a run of MLflow tracking.")
@click.option(
    "--tracking-uri",
    hidden=True,
    help="Address of MLflow, for example sqlite:///mlflow.db; default: MLFLOW_TRACKING_URI.",
)
@as_json
def export(
    evaluation: str,
    target: Path | None,
    metrics: bool,
    overwrite: bool,
    is_mlflow: bool,
    tracking_uri: str | None,
    as_json: bool,
) -> None:
    """Write the cases or metrics of an evaluation to a file, its scores for a store of traces, or log it to MLflow.

    \b
    yarus export last --to cases.csv
    yarus export last --to metrics.parquet --metrics
    yarus export last --to otlp
    yarus export last --to langfuse
    yarus export last --mlflow --tracking-uri sqlite:///mlflow.db

    otlp and langfuse write EVALUATION.otlp.jsonl or EVALUATION.langfuse.jsonl: one request per line, with the scores of
    cases that have a trace id.

    CSV contains lists as JSON. A text that begins with = + - @ or a tab gets an apostrophe, so that spreadsheets do not
    run it as a formula. The other formats keep texts unchanged.
    """
    if (target is None) != is_mlflow:
        raise click.UsageError(Words("expected either --to FILE.csv (.jsonl, .parquet) or --mlflow"))
    if is_mlflow and (metrics or overwrite):
        raise click.UsageError(Words("--metrics and --overwrite need --to FILE; --mlflow always logs the metrics"))
    if tracking_uri and not is_mlflow:
        raise click.UsageError(Words("--tracking-uri needs --mlflow"))
    from yarus.db import journal
    from yarus.tasks.config.connections import database
    from yarus.tasks.config.settings import get_settings
    from yarus.tasks.config.texts import texts
    from yarus.tasks.evaluation.export import export_file as write_cases
    from yarus.tasks.evaluation.export import log_to_mlflow

    engine, words = database(), texts("terminal", get_settings().language)
    row = journal.find_evaluation(engine, evaluation)
    result: ExportedFile | ExportedRun | ExportedScores
    store = next((store for store in STORES if target is not None and str(target) == store), None)
    if store is not None and metrics:
        raise click.UsageError(Words("--metrics needs --to FILE: scores are of single cases"))
    if store is not None:
        from yarus.tasks.evaluation.scores import export_scores  # imports all metrics

        result = export_scores(engine, evaluation, store, overwrite=overwrite)
        message = words["exported scores"].format(**result)
        if result["unjoined"]:
            message += "\n" + words["scores unjoined"].format(**result)
    elif target is None:
        result = {"evaluation_id": row["id"], **log_to_mlflow(engine, evaluation, tracking_uri)}
        message = words["logged to mlflow"].format(**result)
    else:
        n = write_cases(engine, evaluation, target, metrics=metrics, overwrite=overwrite)
        result = {"evaluation_id": row["id"], "file": str(target), "rows": n}
        message = words["exported"].format(**result)
    click.echo(format_json(result) if as_json else message)
    if target is not None and not metrics:
        warn_about_pseudonyms(row["source"])

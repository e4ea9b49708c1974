"""`yarus judge`: examine the judge, compare it with people, and label its answers."""

import copy
from functools import partial
from pathlib import Path
from typing import Literal

import click

from yarus.db.messages import Words
from yarus.flows.cli import as_json, print_document, start_prefect_early
from yarus.flows.cli.run import run


@click.group()
def judge() -> None:
    """Test the judge: exam, agreement with people, labels."""


exam = copy.copy(run)
exam.name, exam.params = "exam", [parameter for parameter in run.params if parameter.name != "tier"]
exam.callback = partial(run.callback or run, tier="judge")
exam.help = """Examine the judge with correct and wrong answers to your own questions, as `yarus run judge` does.

\b
yarus judge exam --source xquad_ru --exam 60
"""
judge.add_command(exam)


@judge.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--other-scores", type=click.Path(path_type=Path), help="The same pairs with another judge's scores.")
@click.option(
    "--language", type=click.Choice(["ru", "en"]), default="en", show_default=True, help="Language of the prompts."
)
@click.option("--seed", default=0, show_default=True, hidden=True, help="Random seed of the intervals.")
@as_json
def agreement(file: Path, other_scores: Path | None, language: Literal["ru", "en"], seed: int, as_json: bool) -> None:
    """Measure the agreement of the judge with people who compared the same pairs of answers.

    FILE is a JSON list with one row per pair and person: instance_id, query, gt_answer, model1 and model2 with their
    response. The labels correctness_label, completeness_label and overall_label (-2..2) rate the second answer. The
    exam on your own questions is `yarus judge exam`.

    \b
    yarus judge agreement human_labeled_data.json
    yarus judge agreement human_labeled_data.json --other-scores baseline_ragchecker.json
    """
    start_prefect_early()
    import asyncio

    from yarus.flows.terminal.experiments import print_people
    from yarus.tasks.comparison.experiments.people_pairs import compare_judge_with_people

    result = asyncio.run(compare_judge_with_people(file, language, scored=other_scores, seed=seed))
    print_document(result, print_people, as_json=as_json)


@judge.command()
@click.argument("metric", required=False)
@click.option(
    "--width",
    required=True,
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Width of the interval.",
)
@click.option("--evaluation", metavar="E", default="last", show_default=True, help="Evaluation with the answers.")
@as_json
def plan(metric: str | None, width: float, evaluation: str, as_json: bool) -> None:
    """Print how many labels an interval of --width needs for a judged mean.

    METRIC is a judged mean; default: the first of the evaluation.

    \b
    yarus judge plan avg_faithfulness --width 0.1
    """
    from yarus.flows.terminal.labels import list_plan_lines
    from yarus.tasks.config.connections import database
    from yarus.tasks.dataset.labelling.plan import LabelPlan, plan_labels

    def print_plan(label_plan: LabelPlan, language: str) -> None:
        click.echo("\n".join(list_plan_lines(label_plan, language)))

    print_document(plan_labels(database(), evaluation, metric, width), print_plan, as_json=as_json)


@judge.command()
@click.option("--evaluation", metavar="E", help="Evaluation whose answers are labelled; default: choose on the page.")
@click.option("--results", is_flag=True, help="Label results of an evaluation with --labels llm.")
@click.option("--metric", help="Judged mean to correct; default: choose on the page, or the first of --evaluation.")
@click.option("--port", default=4281, show_default=True, type=click.IntRange(0, 65_535), help="Port; 0: any free one.")
@click.option(
    "--suggest",
    nargs=2,
    metavar="A B",
    help="List the results whose relevance affects the comparison of A and B most, and exit.",
)
@as_json
def label(
    evaluation: str | None,
    results: bool,
    metric: str | None,
    port: int,
    suggest: tuple[str, str] | None,
    as_json: bool,
) -> None:
    """Label judged answers, or results, on a page of this machine, until Ctrl-C; labels correct the judge's means.

    \b
    yarus judge label
    yarus judge label --evaluation last --metric avg_faithfulness
    yarus judge label --results
    yarus judge label --suggest tier1-20261120-030000-4f2a last
    """
    if results and metric:
        raise click.UsageError(Words("--results cannot be combined with --metric"))
    if suggest and (results or evaluation):
        raise click.UsageError(Words("--suggest A B can be combined only with --metric"))
    if as_json and not suggest:
        raise click.UsageError(Words("--json needs --suggest"))
    if suggest:
        from yarus.flows.terminal.comparisons.comparison import print_label_suggestions
        from yarus.tasks.config.connections import database
        from yarus.tasks.dataset.labelling.relevance.label_suggestions import suggest_labels

        document = suggest_labels(database(), *suggest, *([metric] if metric else []))
        print_document(document, print_label_suggestions, as_json=as_json)
        return
    from yarus.deployments.pages.label_server import serve_until_stopped
    from yarus.tasks.config.settings import get_settings
    from yarus.tasks.config.texts import texts

    words = texts("labels", get_settings().language)

    def ready(address: str) -> None:
        click.echo(words["page"].format(address=address))
        click.echo(words["stop page"], err=True)

    metric = "relevance" if results else metric
    serve_until_stopped(port, evaluation or ("last" if metric else None), metric, ready)

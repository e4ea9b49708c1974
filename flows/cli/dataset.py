"""`yarus dataset`: freezes and imports case sets, has questions labelled, finds defects in labels."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from yarus.db.messages import Words
from yarus.flows.cli import as_json, parse_moment, print_document, warn_about_pseudonyms
from yarus.flows.cli.load import choose_source_name, language_option, load_recognised

if TYPE_CHECKING:
    from yarus.tasks.dataset.dataset_schema import SynthesisResult

source = click.option("--source", default="sample", show_default=True, help="A loaded source, or production.")
evaluations = click.option(
    "--evaluation", "evaluations", multiple=True, metavar="E", help="Evaluation of the source to use; repeatable."
)


@click.group()
def dataset() -> None:
    """Build, freeze, label and check the cases that evaluations use."""


@dataset.command()
@click.argument("name")
@source
@click.option("--limit", type=click.IntRange(1), help="Maximum number of questions; every topic keeps its share.")
@click.option("--seed", default=0, show_default=True, hidden=True, help="Random seed of the sample.")
@click.option("--since", metavar="DATE", help="Only questions asked at or after this time.")
@click.option("--until", metavar="DATE", help="Only questions asked before this time.")
@as_json
def freeze(
    name: str, source: str, limit: int | None, seed: int, since: str | None, until: str | None, as_json: bool
) -> None:
    """Freeze a source's questions and labels under NAME; evaluate them with --cases NAME."""
    from yarus.flows.terminal.dataset import print_set
    from yarus.tasks.cases.frozen_sets import freeze

    begin, end = parse_moment("--since", since), parse_moment("--until", until)
    print_document(freeze(name, source, limit=limit, seed=seed, since=begin, until=end), print_set, as_json=as_json)


@dataset.command("list")
@as_json
def list_(as_json: bool) -> None:
    """List frozen case sets."""
    from yarus.flows.terminal.dataset import print_sets
    from yarus.tasks.cases.frozen_sets import list_frozen_sets

    print_document(list_frozen_sets(), print_sets, as_json=as_json)


@dataset.command()
@click.argument("a")
@click.argument("b")
@as_json
def diff(a: str, b: str, as_json: bool) -> None:
    """Show what changed from frozen set A to B: added, removed, reworded, relabelled."""
    from yarus.flows.terminal.dataset import print_difference
    from yarus.tasks.cases.frozen_sets import diff_frozen_sets

    document = diff_frozen_sets(a, b)
    print_document(document, print_difference, as_json=as_json)
    warn_about_pseudonyms(document["b"]["source"])


@dataset.command()
@click.argument("name")
@click.option("--from-date", required=True, metavar="DATE", help="Start of the second half.")
@click.option("--into", required=True, nargs=2, metavar="A B", help="Names of the two halves.")
@as_json
def split(name: str, from_date: str, into: tuple[str, str], as_json: bool) -> None:
    """Split a frozen set by time: questions asked before DATE, and the rest."""
    from yarus.flows.terminal.dataset import print_split
    from yarus.tasks.cases.frozen_sets import split_frozen_set

    moment = parse_moment("--from-date", from_date)
    if moment is None:
        raise click.UsageError(Words("--from-date: a date is needed"))
    print_document(split_frozen_set(name, moment, into), print_split, as_json=as_json)


@dataset.command("import")
@click.argument("kind", type=click.Choice(["ragas", "langfuse"]))
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--into", "name", required=True, metavar="NAME", help="Source to load into.")
@language_option
@as_json
def import_(kind: Literal["ragas", "langfuse"], file: Path, name: str, language: str | None, as_json: bool) -> None:
    """Load a test set exported from ragas or Langfuse; `yarus load table` and `yarus init` read it, too."""
    from yarus.db.errors import InputError
    from yarus.db.importers.reader import recognise_source

    source_name = choose_source_name(name, file.stem)
    recognised = recognise_source(file)
    if recognised.table is None or recognised.table.shape is None or recognised.table.shape.tool != kind:
        raise InputError(
            "{path}: its columns are not those that {kind} exports; to load it as what it is: yarus load table {path}",
            path=file,
            kind=kind,
        )
    load_recognised(recognised, source_name, language, as_json=as_json)


@dataset.command()
@source
@click.option("--into", required=True, metavar="NAME", help="Source to write the questions to.")
@click.option("--n", default=100, show_default=True, type=click.IntRange(1), help="Number of questions.")
@click.option("--kinds", metavar="A,B", help="single, multi (two chunks), unanswerable; default: all, in equal shares.")
@click.option("--seed", default=0, show_default=True, hidden=True, help="Random seed of the sample of chunks.")
@as_json
def synthesize(as_json: bool, **options: Any) -> None:
    """Generate questions and answers from a source's chunks, and keep those that pass the checks.

    If you run it again with the same options, no call is paid twice; YARUS_BUDGET_USD limits its cost.
    """
    from pydantic import ValidationError

    from yarus.flows.cli.runner import run_analysis_flow
    from yarus.flows.preflight.checks import check_roles
    from yarus.flows.terminal.dataset import print_synthesis
    from yarus.tasks.config.settings import get_settings
    from yarus.tasks.config.validation import invalid_value_error
    from yarus.tasks.dataset.synthesis.generator import SynthesisParameters, check_parameters

    try:
        chosen = SynthesisParameters.model_validate({key: value for key, value in options.items() if value is not None})
    except ValidationError as error:
        raise invalid_value_error(error, "synthesize") from None
    check_roles({"generator", "judge"}, get_settings())
    check_parameters(chosen)

    async def work() -> "SynthesisResult":
        from yarus.flows.synthesize import synthesize

        return await synthesize(chosen)

    result = run_analysis_flow(work, level=logging.WARNING if as_json else logging.INFO)
    print_document(result, print_synthesis, as_json=as_json)
    raise SystemExit(0 if result["state"] == "completed" else 1)


@dataset.command()
@source
@click.option("--limit", type=click.IntRange(1), help="Maximum number of questions.")
@click.option(
    "--regenerate", is_flag=True, hidden=True, help="Regenerate existing nuggets, except those that people have edited."
)
@as_json
def nuggets(source: str, limit: int | None, regenerate: bool, as_json: bool) -> None:
    """Have the judge list what a good answer to each question must contain; edit it with export-annotation.

    Needs reference answers; measured by --nuggets true in tiers 2 and 3. If you run it again, it continues.
    """
    import asyncio

    from yarus.flows.terminal.dataset import print_nuggets
    from yarus.tasks.dataset.nuggets import generate_nuggets

    result = asyncio.run(generate_nuggets(source, limit=limit, remake=regenerate))
    print_document(result, print_nuggets, as_json=as_json)
    raise SystemExit(0 if result["state"] == "completed" else 1)


@dataset.command("export-annotation")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@source
@evaluations
@click.option("--limit", type=click.IntRange(1), help="Maximum number of questions, the most instructive first.")
@click.option(
    "--random",
    "n_random",
    type=click.IntRange(1),
    metavar="N",
    help="Draw a random sample of N judged answers; their labels correct the judge's mean.",
)
@click.option("--metric", help="With --random: the judged mean to correct; default: the first of the evaluation.")
@click.option("--seed", default=0, show_default=True, hidden=True, help="With --random: random seed of the draw.")
@as_json
def export_annotation(
    file: Path,
    source: str,
    evaluations: tuple[str, ...],
    limit: int | None,
    n_random: int | None,
    metric: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """Write questions into FILE (.csv or .xlsx) for people to label, the most instructive first.

    With --random, a random sample of the answers that a judge has scored (of --evaluation, else the last). Only labels
    of a random sample can estimate how good all answers are.
    """
    if n_random is not None:
        if limit is not None or len(evaluations) > 1:
            raise click.UsageError(Words("--random N draws from one --evaluation, without --limit"))
        from yarus.flows.terminal.dataset import print_drawn
        from yarus.tasks.dataset.annotation_tables.judged_answers import export_label_sample

        sample = export_label_sample(file, evaluations[0] if evaluations else "last", metric, n_random, seed=seed)
        print_document(sample, print_drawn, as_json=as_json)
        warn_about_pseudonyms(sample["source"], unset=True)
        return
    if metric is not None or seed:
        raise click.UsageError(Words("--metric and --seed belong to --random N"))
    from yarus.flows.terminal.dataset import print_exported
    from yarus.tasks.dataset.annotation_tables.round_trip import export_annotation_file

    print_document(export_annotation_file(file, source, evaluations, limit=limit), print_exported, as_json=as_json)
    warn_about_pseudonyms(source, unset=True)


@dataset.command("import-annotation")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--annotator", required=True, metavar="NAME", help="Name of the annotator.")
@click.option("--into", metavar="SOURCE", help="Source to write the labels to; default: the one named in the file.")
@as_json
def import_annotation(file: Path, annotator: str, into: str | None, as_json: bool) -> None:
    """Import a completed FILE: all of it, or nothing if a row is wrong."""
    from yarus.flows.terminal.dataset import print_imported, print_labels
    from yarus.tasks.dataset.annotation_tables import spreadsheets
    from yarus.tasks.dataset.annotation_tables.judged_answers import import_label_sample, is_label_sample
    from yarus.tasks.dataset.annotation_tables.round_trip import import_annotation_file

    header, lines = spreadsheets.read_table(file)
    if is_label_sample(header):
        print_document(import_label_sample(file, header, lines, annotator), print_labels, as_json=as_json)
    else:
        print_document(import_annotation_file(file, annotator, into), print_imported, as_json=as_json)


@dataset.command()
@source
@as_json
def agreement(source: str, as_json: bool) -> None:
    """Measure how far annotators agree: kappa with an interval for every pair."""
    from yarus.flows.terminal.dataset import print_agreement
    from yarus.tasks.dataset.annotation_tables.reviews import annotator_agreement

    print_document(annotator_agreement(source), print_agreement, as_json=as_json)


@dataset.command()
@source
@evaluations
@click.option(
    "--examples", default=10, show_default=True, type=click.IntRange(0), help="Number of examples of each defect."
)
@as_json
def audit(source: str, evaluations: tuple[str, ...], examples: int, as_json: bool) -> None:
    """Find defects in a source's questions and labels: stale, duplicate, contradicting, personal data …"""
    from yarus.flows.terminal.dataset import print_audit
    from yarus.tasks.dataset.audit import audit_labels

    print_document(audit_labels(source, evaluations, examples=examples), print_audit, as_json=as_json)
    warn_about_pseudonyms(source, unset=True)

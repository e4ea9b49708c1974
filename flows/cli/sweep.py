"""`yarus sweep` and `robustness`: compare systems, and questions in other forms."""

from typing import Any

import click

from yarus.flows.cli import add_verbosity_options, as_json, print_document

source = click.option("--source", help="Where the questions come from; default: the bundled sample.")
limit = click.option("--limit", type=int, help="A seeded random sample of this many questions.")
KINDS_HELP = (
    "Of questions: typos, yo (е for ё), lower, layout, paraphrase. Of contexts: distractors, gold_first, gold_middle, "
    "gold_last, gold_removed, counterfactual, injection"
)
TIERS_HELP = (
    "tier1: change of rank; tier2: answers from bad contexts; tier3: change of answer; default: those that know the "
    "kinds, without kinds tier1 and tier3."
)


@click.command()
@source
@click.option("--tier", help="Tier that every arm evaluates: tier3 (default), tier1 or tier2.")
@click.option("--sources", metavar="A,B", help="Sources with the same questions and different chunks.")
@click.option("--generators", metavar="A,B", help="Models at YARUS_GENERATOR__BASE_URL.")
@click.option("--prompts", hidden=True, metavar="A,B", help="Files with the generator's prompt (tier2, tier3).")
@click.option(
    "--judges", hidden=True, metavar="A,B", help="Models at YARUS_JUDGE__BASE_URL; also compared with the log's scores."
)
@click.option("--embedders", metavar="A,B", help="lexical, sentence-transformers models, http(s)://…/v1#MODEL.")
@click.option("--retrievers", metavar="A,B", help="dense, fulltext, hybrid, pgvector, a URL or module:function.")
@click.option("--rerankers", metavar="A,B", help="none, a cross-encoder's name or folder, a URL or module:function.")
@click.option("--k", metavar="1,3", help="Depths of the rankings.")
@limit
@click.option("--resume", metavar="SWEEP", help="Run the missing arms of a stopped sweep.")
@as_json
@add_verbosity_options
def sweep(as_json: bool, level: int, **options: Any) -> None:
    """Compare models, prompts, retrievers, re-rankers, depths, chunkings: every combination, then one table.

    \b
    yarus sweep --retrievers dense,fulltext --k 1,3
    yarus sweep --tier tier1 --sources by_heading,by_500 --rerankers none,my_search:rerank
    yarus sweep --tier tier2 --generators small,large --judges strict,mild
    """
    from yarus.flows.cli.runner import parse_parameters
    from yarus.flows.terminal.experiments import print_sweep
    from yarus.tasks.comparison.experiments.sweep import plan_arms
    from yarus.tasks.config.flow_parameters import SweepParameters

    chosen = parse_parameters("sweep", {key: value for key, value in options.items() if value is not None}, (), ())
    if isinstance(chosen, SweepParameters) and not chosen.resume:
        plan_arms(chosen)  # reports an impossible sweep before anything is started
    _run("sweep", chosen, print_sweep, as_json=as_json, level=level)


@click.command()
@source
@click.option("--perturbations", metavar="A,B", help=f"{KINDS_HELP}; default: all of the tiers.")
@click.option("--tiers", metavar="A,B", help=TIERS_HELP)
@limit
@as_json
@add_verbosity_options
def robustness(as_json: bool, level: int, **options: Any) -> None:
    """Ask the same questions in other forms, for example with typos: are they still found and answered?

    Tier 2 answers them from bad contexts. Passages of other pages are added (with the right ones anywhere, first, in
    the middle, last, or removed), a number or date is changed, or an instruction is added. Each kind is an evaluation.

    \b
    yarus robustness --perturbations typos,layout --tiers tier1
    yarus robustness --perturbations gold_removed,injection --limit 200
    yarus robustness --tiers tier2
    """
    from yarus.flows.cli.runner import parse_parameters
    from yarus.flows.terminal.experiments import print_robustness

    chosen = parse_parameters("robustness", {key: value for key, value in options.items() if value is not None}, (), ())
    _run("robustness", chosen, print_robustness, as_json=as_json, level=level)


def _run(name: str, chosen: Any, print_result: Any, *, as_json: bool, level: int) -> None:
    from yarus.flows.cli.runner import run_flow

    result = run_flow(name, chosen, level=level)
    print_document(result, print_result, as_json=as_json)
    raise SystemExit(0 if result["state"] == "completed" else 1)

"""`yarus corpus`: what of the corpus is used, what people ask about, what to write next."""

import click

from yarus.flows.cli import as_json, print_document, warn_about_pseudonyms


@click.command()
@click.option("--source", default="sample", show_default=True, help="Source whose corpus and log are analysed.")
@click.option("--evaluation", help="Evaluation whose rankings and outcomes are used; default: the source's newest.")
@click.option(
    "--map-points", hidden=True, type=click.IntRange(1), help="Maximum number of map points in --json; default: 50,000."
)
@click.option("--limit", type=click.IntRange(1), help="Use only this many of the newest questions; default: all.")
@as_json
def corpus(source: str, evaluation: str | None, map_points: int | None, limit: int | None, as_json: bool) -> None:
    """Analyse a corpus: chunks that are never retrieved, topics, how well each is served, and which pages to write.

    \b
    yarus run tier1 --source helpdesk
    yarus corpus --source helpdesk
    """
    from yarus.flows.terminal.corpus import print_corpus
    from yarus.tasks.cases.privacy import pseudonyms
    from yarus.tasks.config.connections import database
    from yarus.tasks.dataset.corpus.analytics import MAX_MAP_POINTS, analyse_corpus

    analytics = analyse_corpus(
        database(), source, evaluation=evaluation, points=map_points or MAX_MAP_POINTS, limit=limit
    )
    print_document(pseudonyms.mask_document(analytics, source), print_corpus, as_json=as_json)
    warn_about_pseudonyms(source)

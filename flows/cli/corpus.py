"""`yarus corpus`: what of the corpus is used, what people ask about, what to write next."""

import click


@click.command()
@click.option("--source", default="sample", show_default=True, help="Source whose corpus and log are analysed.")
@click.option("--evaluation", help="Evaluation whose rankings and outcomes are used; default: the source's newest.")
@click.option("--points", type=click.IntRange(1), help="Maximum number of map points in --json; default: 50,000.")
@click.option("--limit", type=click.IntRange(1), help="Use only this many of the newest questions; default: all.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def corpus(source: str, evaluation: str | None, points: int | None, limit: int | None, as_json: bool) -> None:
    """Analyse a corpus: chunks that are never retrieved, topics and how well each is served, what to write next.

    \b
    yarus run tier1 --source helpdesk
    yarus corpus --source helpdesk
    """
    from yarus.flows.terminal.corpus import print_corpus
    from yarus.flows.terminal.printing import say_pseudonyms
    from yarus.tasks.cases.privacy import pseudonyms
    from yarus.tasks.config.connections import database
    from yarus.tasks.config.settings import settings
    from yarus.tasks.dataset.corpus.analytics import POINTS
    from yarus.tasks.dataset.corpus.analytics import corpus as look
    from yarus.tasks.evaluation.summary import as_json as document

    found = look(database(), source, evaluation=evaluation, points=points or POINTS, limit=limit)
    found = pseudonyms.document(found, source)
    if as_json:
        click.echo(document(found))
    else:
        print_corpus(found, settings().language)
    say_pseudonyms(source)

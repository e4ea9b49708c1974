"""`yarus compare`: did it get better?"""

import click

from flows.commands_read import _journal, as_json


@click.command()
@click.argument("a")
@click.argument("b")
@click.option("--metric", "metrics", multiple=True, metavar="METRIC", help="Compare only this metric; repeatable.")
@click.option("--slice", "slice_name", metavar="NAME", help="Show all of: topic page group length type answerable.")
@click.option("--force", is_flag=True, help="Show what is not comparable all the same, marked as such.")
@as_json
def compare(a: str, b: str, metrics: tuple[str, ...], slice_name: str | None, force: bool, as_json: bool) -> None:
    """Compare evaluation A (before) with B (after), case by case.

    Each is an id, the beginning or end of it, or 'last'; A may be 'previous', the one before B with the same key:

    \b
    yarus compare previous last
    yarus compare previous last --metric mrr --slice type
    """
    from db.errors import unknown
    from tasks.compare import compare as compared
    from tasks.compare_slices import SLICES
    from tasks.report import as_json as document

    if slice_name is not None and slice_name not in SLICES:
        raise unknown("slice", slice_name, SLICES)
    found = compared(_journal(), a, b, force=force, only=metrics)
    if slice_name is not None:
        found["slices"] = {name: values for name, values in found["slices"].items() if name == slice_name}
        found["small_slices"] = {name: n for name, n in found["small_slices"].items() if name == slice_name}
    from flows.printing import say_what_stands_there
    from flows.printing_compare import print_comparison
    from tasks.settings import settings

    if as_json:
        click.echo(document(found))
    else:
        print_comparison(found, settings().language, slice_name=slice_name)
    say_what_stands_there(found["b"]["source"])

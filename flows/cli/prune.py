"""`yarus admin prune`: remove old evaluations, or erase one user's questions."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yarus.db.messages import Words
from yarus.flows.cli import open_database, print_document

if TYPE_CHECKING:
    from yarus.deployments.upkeep.erasure.erase import UserData
    from yarus.deployments.upkeep.erasure.erase_prefect import PrefectErasure
    from yarus.flows.cli.framework.command_schema import UserErasure

AGE_OPTIONS = ("older_than", "keep_last", "gates", "with_calls", "everything")


@click.command()
@click.option("--older-than", metavar="AGE", help="Remove evaluations older than this, such as 90d, 12w or 36h.")
@click.option("--keep-last", type=click.IntRange(1), metavar="N", help="Keep the newest N of every tier and source.")
@click.option(
    "--gate",
    "gates",
    multiple=True,
    hidden=True,
    type=click.Path(path_type=Path),
    help="Gate file whose baselines are kept.",
)
@click.option(
    "--replies",
    "with_calls",
    is_flag=True,
    hidden=True,
    help="Also remove model replies of that age, and unused vectors.",
)
@click.option(
    "--include-baselines",
    "everything",
    is_flag=True,
    hidden=True,
    help="Also remove the last completed one of a comparability key.",
)
@click.option("--user", metavar="USER_ID", help="Erase everything kept of this user's questions; needs --source.")
@click.option("--source", help="Source where --user asked: a loaded one, or production, which is never written to.")
@click.option("--dry-run", is_flag=True, help="Print what would be removed, and exit.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout; needs --yes or --dry-run.")
def prune(user: str | None, source: str | None, dry_run: bool, yes: bool, as_json: bool, **by_age: Any) -> None:
    """Remove old evaluations, or everything that is kept of one user's questions.

    \b
    yarus admin prune --older-than 90d --keep-last 7 --dry-run
    yarus admin prune --user 4711 --source production

    Running evaluations, baselines pinned in a gate file and the last completed evaluation of a comparability key stay.
    """
    age_options = [name for name in AGE_OPTIONS if by_age[name]]
    if (user is None) != (source is None):
        raise click.UsageError(
            Words("--user and --source must be given together: whose questions, and in which source")
        )
    if user is not None and age_options:
        raise click.UsageError(
            Words(
                "--user erases questions of any age; leave out --older-than, --keep-last, --gate, --replies and "
                "--include-baselines"
            )
        )
    if user is None and not (by_age["older_than"] or by_age["keep_last"]):
        raise click.UsageError(Words("expected --older-than AGE, --keep-last N, or --user USER_ID with --source NAME"))
    if by_age["with_calls"] and not by_age["older_than"]:
        raise click.UsageError(Words("--replies needs --older-than: replies are removed by age"))
    if as_json and not (yes or dry_run):
        raise click.UsageError(Words("--json cannot ask for confirmation: add --yes or --dry-run"))
    remove = _prepare_prune(**by_age) if user is None else _prepare_erasure(user, str(source))
    plan = remove(dry_run=True)
    only_planned = dry_run or (user is None and not _has_removals(plan))
    if only_planned or not as_json:
        print_document(plan, _print_removals, as_json=as_json)
    if only_planned:
        return
    if not yes and _has_removals(plan):
        from yarus.tasks.config.settings import get_settings
        from yarus.tasks.config.texts import texts

        click.confirm(texts("prune", get_settings().language)["sure"], abort=True)
    result = remove(dry_run=False)
    print_document(result, _print_removals, as_json=as_json)
    raise SystemExit(1 if result["outside_results"] else 0)


def _prepare_prune(*, older_than: str | None, keep_last: int | None, everything: bool, **options: Any) -> Any:
    from functools import partial

    from yarus.deployments.upkeep.prune import parse_age, plan_pruning
    from yarus.deployments.upkeep.prune import prune as remove

    min_age = parse_age(older_than) if older_than else None
    engine = open_database()
    return partial(
        remove,
        engine,
        plan_pruning(engine, older_than=min_age, keep_last=keep_last or 0, everything=everything, **options),
    )


def _prepare_erasure(user: str, source: str) -> Any:
    from yarus.deployments.upkeep.erasure.erase import erase_user_data, find_user_data
    from yarus.tasks.config.connections import database

    user_data = find_user_data(database(), user, source)

    def remove(*, dry_run: bool) -> "UserErasure":
        """Erase in Prefect first, because what is erased afterwards is needed to find it there."""
        prefect = _erase_in_prefect(user_data, remove=not dry_run)
        own = erase_user_data(database(), user_data, dry_run=dry_run)
        return {**own, **prefect, "not_erased": [*prefect["not_erased"], *own["not_erased"]]}

    return remove


def _erase_in_prefect(data: "UserData", *, remove: bool) -> "PrefectErasure":
    import asyncio

    from yarus.deployments.upkeep.erasure.erase_prefect import erase_in_prefect, erase_on_other_server

    artifacts, beyond = (0, []) if data.is_empty else asyncio.run(erase_on_other_server(data.case_ids, remove=remove))
    result = erase_in_prefect(data.search_texts, remove=remove)
    return {**result, "artifacts": result["artifacts"] + artifacts, "not_erased": [*beyond, *result["not_erased"]]}


def _has_removals(document: Mapping[str, Any]) -> bool:
    """Return whether anything is removed."""
    return any(
        value for name, value in document.items() if name not in ("user", "source", "kept", "not_erased", "dry_run")
    )


def _print_removals(document: Mapping[str, Any], language: str) -> None:
    from yarus.tasks.config.texts import texts

    words = texts("prune", language)
    scope = "user" if "user" in document else "age"
    title = f"{scope} {'planned' if document['dry_run'] else 'done'}" if _has_removals(document) else f"{scope} nothing"
    click.echo(words[title].format(**document))
    for name, value in document.items():
        n = len(value) if isinstance(value, list | dict) else value
        if name not in ("user", "source", "dry_run", "kept", "not_erased") and n:
            click.echo(f"  {words.get(f'{scope} {name}') or words[name]}: {n}")
    for reason, n in document.get("kept", {}).items():
        click.echo(f"  {words[f'kept {reason}']}: {n}")
    for location in document.get("not_erased", ()):
        click.echo(f"{words['beyond']} {location}")
    if document.get("calls") and "user" in document:
        click.echo(words["calls of all"])
    if document.get("source") == "production":
        click.echo(words["production"])

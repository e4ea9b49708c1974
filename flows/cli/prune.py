"""`yarus prune`: retention, and erasure of one user's questions."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yarus.db.words import Words
from yarus.flows.cli import own_database, print_document

if TYPE_CHECKING:
    from yarus.deployments.upkeep.erasure.erase import Found
    from yarus.deployments.upkeep.erasure.erase_prefect import InPrefect
    from yarus.flows.cli.shell.documents import ErasureEverywhere

AGE = ("older_than", "keep_last", "gates", "with_calls", "everything")


@click.command()
@click.option("--older-than", metavar="AGE", help="Remove evaluations older than this, such as 90d, 12w or 36h.")
@click.option("--keep-last", type=click.IntRange(1), metavar="N", help="Keep the newest N of every tier and source.")
@click.option(
    "--gate", "gates", multiple=True, type=click.Path(path_type=Path), help="Gate file whose baselines are kept."
)
@click.option("--calls", "with_calls", is_flag=True, help="Also remove model replies of that age, and unused vectors.")
@click.option("--all", "everything", is_flag=True, help="Also remove the last completed one of a comparability key.")
@click.option("--user", metavar="USER_ID", help="Erase everything kept of this user's questions; needs --source.")
@click.option("--source", help="Source where --user asked: a loaded one, or production, which is never written to.")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout; needs --yes or --dry-run.")
def prune(user: str | None, source: str | None, dry_run: bool, yes: bool, as_json: bool, **by_age: Any) -> None:
    """Remove old evaluations, or everything that is kept of one user's questions.

    \b
    yarus prune --older-than 90d --keep-last 7 --dry-run
    yarus prune --user 4711 --source production

    Running evaluations, baselines pinned in a gate file and the last completed evaluation of a comparability key stay.
    """
    given = [name for name in AGE if by_age[name]]
    if (user is None) != (source is None):
        raise click.UsageError(
            Words("--user and --source must be given together: whose questions, and in which source")
        )
    if user is not None and given:
        raise click.UsageError(
            Words("--user erases questions of any age; leave out --older-than, --keep-last, --gate, --calls and --all")
        )
    if user is None and not (by_age["older_than"] or by_age["keep_last"]):
        raise click.UsageError(Words("expected --older-than AGE, --keep-last N, or --user USER_ID with --source NAME"))
    if by_age["with_calls"] and not by_age["older_than"]:
        raise click.UsageError(Words("--calls needs --older-than: replies are removed by age"))
    if as_json and not (yes or dry_run):
        raise click.UsageError(Words("--json cannot ask for confirmation: add --yes or --dry-run"))
    work = _by_age(**by_age) if user is None else _of_user(user, str(source))
    planned = work(dry_run=True)
    only_planned = dry_run or (user is None and not _any(planned))
    if only_planned or not as_json:
        print_document(planned, _print, as_json=as_json)
    if only_planned:
        return
    if not yes and _any(planned):
        from yarus.tasks.config.settings import settings
        from yarus.tasks.config.texts import texts

        click.confirm(texts("prune", settings().language)["sure"], abort=True)
    done = work(dry_run=False)
    print_document(done, _print, as_json=as_json)
    raise SystemExit(1 if done["elsewhere"] else 0)


def _by_age(*, older_than: str | None, keep_last: int | None, everything: bool, **rest: Any) -> Any:
    from functools import partial

    from yarus.deployments.upkeep.prune import age, plan
    from yarus.deployments.upkeep.prune import prune as work

    before = age(older_than) if older_than else None
    engine = own_database()
    return partial(
        work, engine, plan(engine, older_than=before, keep_last=keep_last or 0, everything=everything, **rest)
    )


def _of_user(user: str, source: str) -> Any:
    from yarus.deployments.upkeep.erasure.erase import erase, find
    from yarus.tasks.config.connections import database

    found = find(database(), user, source)

    def work(*, dry_run: bool) -> "ErasureEverywhere":
        """In Prefect first: there it is found by what is erased after."""
        there = _in_prefect(found, remove=not dry_run)
        here = erase(database(), found, dry_run=dry_run)
        return {**here, **there, "beyond": [*there["beyond"], *here["beyond"]]}

    return work


def _in_prefect(found: "Found", *, remove: bool) -> "InPrefect":
    import asyncio

    from yarus.deployments.upkeep.erasure.erase_prefect import in_prefect, on_another_server

    artifacts, beyond = (0, []) if found.nothing else asyncio.run(on_another_server(found.case_ids, remove=remove))
    there = in_prefect(found.looked_for, remove=remove)
    return {**there, "artifacts": there["artifacts"] + artifacts, "beyond": [*beyond, *there["beyond"]]}


def _any(document: Mapping[str, Any]) -> bool:
    """Whether there is anything to remove."""
    return any(value for name, value in document.items() if name not in ("user", "source", "kept", "beyond", "dry_run"))


def _print(document: Mapping[str, Any], language: str) -> None:
    from yarus.tasks.config.texts import texts

    words = texts("prune", language)
    whose = "user" if "user" in document else "age"
    heading = f"{whose} {'planned' if document['dry_run'] else 'done'}" if _any(document) else f"{whose} nothing"
    click.echo(words[heading].format(**document))
    for name, value in document.items():
        n = len(value) if isinstance(value, list | dict) else value
        if name not in ("user", "source", "dry_run", "kept", "beyond") and n:
            click.echo(f"  {words.get(f'{whose} {name}') or words[name]}: {n}")
    for why, n in document.get("kept", {}).items():
        click.echo(f"  {words[f'kept {why}']}: {n}")
    for what in document.get("beyond", ()):
        click.echo(f"{words['beyond']} {what}")
    if document.get("calls") and "user" in document:
        click.echo(words["calls of all"])
    if document.get("source") == "production":
        click.echo(words["production"])

"""What an evaluation needs, checked one by one, each with what to do where it fails."""

import os
import uuid
from collections.abc import Callable, Iterator
from typing import NamedTuple

import fsspec
from sqlalchemy import func, select, text

from db import tables
from db.engine import reaching
from db.errors import DatabaseUnavailable, InputError
from db.sources import SAMPLE
from metrics.selftest import self_test
from tasks.connect import database, source
from tasks.models.embedders import embedder
from tasks.settings import masked, settings


class Finding(NamedTuple):
    """One thing that was checked."""

    what: str
    found: str
    way_out: str = ""
    code: int = 0
    """0 fine, 2 a setting to mend, 3 something outside to mend."""


def examine() -> list[Finding]:
    """Checks settings, database, sources, results folder, embedder and metrics."""
    checks: tuple[Callable[[], Iterator[Finding]], ...] = (
        _settings,
        _database,
        _sources,
        _results,
        _embedder,
        _metrics,
    )
    findings: list[Finding] = []
    for check in checks:
        findings.extend(_guarded(check))
        if findings[-1].code and check is _settings:
            break
    return findings


def _guarded(check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    what = check.__name__.removeprefix("_")
    try:
        yield from check()
    except InputError as error:
        yield Finding(what, masked(str(error)), code=2)
    except (DatabaseUnavailable, OSError) as error:
        yield Finding(what, masked(str(error)), code=3)


def _settings() -> Iterator[Finding]:
    configuration = settings()
    yield Finding("settings", f"home {configuration.home.absolute()}, language {configuration.language}")


def _database() -> Iterator[Finding]:
    engine = database()
    with reaching(engine), engine.connect() as connection:
        version = connection.scalar(text("SHOW server_version"))
        vector = connection.scalar(text("SELECT extversion FROM pg_extension WHERE extname = 'vector'"))
    kind = "embedded" if settings().database_url is None else engine.url.render_as_string(hide_password=True)
    yield Finding("database", f"PostgreSQL {version}, pgvector {vector}, {kind}")


def _sources() -> Iterator[Finding]:
    engine = database()
    source(SAMPLE)
    with engine.connect() as connection:
        names = list(connection.scalars(select(tables.source.c.name).order_by(tables.source.c.name)))
        for name in names:
            found = source(name)
            counts = (
                connection.scalar(select(func.count()).select_from(found.tables[table])) for table in tables.REQUIRED
            )
            yield Finding(f"source {name}", "{:,} questions, {:,} chunks".format(*counts))


def _results() -> Iterator[Finding]:
    root = settings().results_root
    filesystem, folder = fsspec.core.url_to_fs(root)
    probe = f"{folder}/.yarus-{uuid.uuid4().hex}"
    filesystem.makedirs(folder, exist_ok=True)
    filesystem.pipe_file(probe, b"")
    filesystem.rm_file(probe)
    yield Finding("results", f"{root} can be written")


def _embedder() -> Iterator[Finding]:
    name = settings().embedder
    model = embedder(name)
    vectors = model.encode(["Как получить студенческий билет?"])
    yield Finding("embedder", f"{model.identity.split('|')[0]}, {vectors.shape[1]} dimensions")
    if api := os.environ.get("PREFECT_API_URL"):
        yield Finding("prefect", f"server {masked(api)}")


def _metrics() -> Iterator[Finding]:
    problems = self_test()
    if not problems:
        yield Finding("metrics", "the self-test agrees with the published values")
    for problem in problems:
        yield Finding("metrics", str(problem), "Reinstall Yarus; do not trust its numbers until this is gone", code=3)

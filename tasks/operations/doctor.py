"""What an evaluation needs, checked one by one, each with what to do where it fails."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import get_args

from sqlalchemy import select, text

from yarus.db import tables
from yarus.db.engine import reaching, shown
from yarus.db.errors import DatabaseUnavailable, InputError, ModelUnavailable
from yarus.db.sources import PRODUCTION, SAMPLE
from yarus.db.words import Words
from yarus.metrics.selftest import self_test
from yarus.tasks.config.connections import database, source
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.settings import settings
from yarus.tasks.models.calls import RoleName
from yarus.tasks.models.embedders import Embedder, embedder, embedders, measuring_embedder
from yarus.tasks.operations.doctor_home import examine_home
from yarus.tasks.operations.doctor_sources import Check, examine_source
from yarus.tasks.operations.home_servers import described
from yarus.tasks.results.parquet_files import require_writable


def examine() -> list[Check]:
    """Checks settings, database, who may enter the home, results folder, embedder, metrics, and every source."""
    findings = list(_guarded(Words("settings"), _settings))
    if findings[-1].code:  # nothing else can be checked
        return findings
    parts: dict[Words, Callable[[], Iterator[Check]]] = {
        Words("database"): _database,
        Words("prefect"): _prefect,
        Words("home"): _home,
        Words("results"): _results,
        Words("embedder"): _embedder,
        Words("models"): _models,
        Words("metrics"): _metrics,
        Words("sources"): _sources,
    }
    for what, check in parts.items():
        findings.extend(_guarded(what, check))
    return findings


def _guarded(what: str, check: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    try:
        yield from check()
    except InputError as error:
        yield Check(what, redact_urls(str(error)), code=2)
    except (DatabaseUnavailable, ModelUnavailable, OSError) as error:
        yield Check(what, redact_urls(str(error)), code=3)


def _settings() -> Iterator[Check]:
    configuration = settings()
    yield Check(
        Words("settings"),
        Words("home {home}, language {language}", home=configuration.home.absolute(), language=configuration.language),
    )


def _database() -> Iterator[Check]:
    engine = database()
    with reaching(engine), engine.connect() as connection:
        version = connection.scalar(text("SHOW server_version"))
        vector = connection.scalar(text("SELECT extversion FROM pg_extension WHERE extname = 'vector'"))
    kind = Words("embedded") if settings().database_url is None else shown(engine.url)
    yield Check(
        Words("database"),
        Words("PostgreSQL {version}, pgvector {vector}, {kind}", version=version, vector=vector, kind=kind),
    )


def _sources() -> Iterator[Check]:
    source(SAMPLE)
    with database().connect() as connection:
        names = list(connection.scalars(select(tables.source.c.name).order_by(tables.source.c.name)))
    if settings().source_url is not None:
        names.append(PRODUCTION)
    for name in names:  # one that cannot be read does not hide the others
        yield from _guarded(Words("source {name}", name=name), partial(_source, name))


def _source(name: str) -> Iterator[Check]:
    return examine_source(source(name))


def _home() -> Iterator[Check]:
    return examine_home()


def _results() -> Iterator[Check]:
    root = settings().results_root
    require_writable(root)
    yield Check(Words("results"), Words("{root} can be written", root=redact_urls(root)))


def _embedder() -> Iterator[Check]:
    model, _ = embedders(settings().embedder, settings())
    yield from _guarded(Words("embedder"), partial(_embeds, Words("embedder"), model))
    if settings().similarity_embedder:
        what = Words("similarity embedder")
        yield from _guarded(what, lambda: _embeds(what, embedder(measuring_embedder())))


def _embeds(what: str, model: Embedder) -> Iterator[Check]:
    vectors = model.encode(["Как получить студенческий билет?"])
    yield Check(
        what, Words("{embedder}, {size} dimensions", embedder=model.identity.split("|")[0], size=vectors.shape[1])
    )


def _models() -> Iterator[Check]:
    for name in get_args(RoleName):
        if getattr(settings(), name).base_url is None:
            continue
        from yarus.tasks.operations.doctor_models import examine_model  # aiohttp, which only servers need

        yield from _guarded(Words("model {name}", name=name), partial(examine_model, name))


def _prefect() -> Iterator[Check]:
    api = os.environ.get("PREFECT_API_URL")
    yield Check(
        Words("prefect"), Words("server {api}", api=redact_urls(api)) if api else described(settings().home.absolute())
    )


def _metrics() -> Iterator[Check]:
    problems = self_test()
    if not problems:
        yield Check(Words("metrics"), Words("the self-test agrees with the published values"))
    for problem in problems:
        yield Check(
            Words("metrics"),
            str(problem),
            Words("Reinstall Yarus; do not trust its numbers until this is gone"),
            code=3,
        )

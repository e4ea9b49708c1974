"""Checks of an installation, each with what to do if it fails."""

import os
import pwd
import re
import shlex
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import get_args

from dotenv import dotenv_values
from sqlalchemy import select, text

from yarus.db import tables
from yarus.db.engine import reaching, shown
from yarus.db.errors import DatabaseUnavailable, InputError, ModelUnavailable
from yarus.db.home import open_parts
from yarus.db.sources import PRODUCTION, SAMPLE
from yarus.db.words import Words
from yarus.deployments.prefect.home_servers import described
from yarus.deployments.upkeep.doctor_sources import Check, examine_source
from yarus.metrics.selftest import self_test
from yarus.tasks.config.connections import database, source
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.settings import settings
from yarus.tasks.evaluation.result_files import require_writable
from yarus.tasks.models.calls import RoleName
from yarus.tasks.models.embedding.embedders import Embedder, embedder, embedders, measuring_embedder

SECRETS = re.compile(r"KEY|HEADERS|PASSWORD|TOKEN|SECRET|WEBHOOK|AUTH|_URL", re.IGNORECASE)
"""Variables of a file `.env` that are likely to hold a secret."""


def examine_home() -> Iterator[Check]:
    """Looks at modes and owners; what is wrong is named with the command that mends it, and hinders nothing."""
    home = settings().home.absolute()
    if not home.is_dir():
        yield Check(Words("home"), Words("{home} is not there yet; it is made when it is first needed", home=home))
        return
    found = [*_open(home), *_owner(home), *_links(home)]
    yield from found or [Check(Words("home"), Words("{home} is closed to other accounts", home=home))]
    yield from _result_files(home)
    yield from _env(Path(".env").absolute())


def _open(home: Path) -> Iterator[Check]:
    for path in open_parts(home):
        mode = f"{stat.S_IMODE(path.stat().st_mode):04o}"
        way_out = Words("chmod go-rwx {path}", path=shlex.quote(str(path)))
        if path == home and os.geteuid() == 0:
            way_out = Words("chmod go-rw {path}", path=shlex.quote(str(path)))  # PostgreSQL's account has to pass
        way_out = Words(
            "{command}; if it stays open, the file system has no modes: set YARUS_HOME to a folder on another",
            command=way_out,
        )
        yield Check(
            Words("home"),
            Words("{path} is open to other accounts of this machine ({mode})", path=path, mode=mode),
            way_out,
        )


def _owner(home: Path) -> Iterator[Check]:
    """The owner of a home reads all of it and may open it."""
    owner, us = home.stat().st_uid, os.geteuid()
    if owner != us:
        yield Check(
            Words("home"),
            Words("{home} belongs to {name}, and you are {us}", home=home, name=_name(owner), us=_name(us)),
            Words("use a home of your own"),
        )


def _links(home: Path) -> Iterator[Check]:
    """Parts that lie elsewhere, where what is private is the user's business."""
    for part in sorted(home.iterdir()):
        if part.is_symlink() and part.exists() and part.stat().st_mode & stat.S_IROTH:
            way_out = Words(
                "chmod go-rwx {path}, unless it is meant to be shared", path=shlex.quote(str(part.resolve()))
            )
            yield Check(
                Words("home"),
                Words("{part} is a link to {target}, which every account can read", part=part, target=part.resolve()),
                way_out,
            )


def _result_files(home: Path) -> Iterator[Check]:
    root = settings().results_root
    path = Path(root)
    if "://" in root or path.resolve().is_relative_to(home.resolve()) or not path.is_dir():
        return
    if path.stat().st_mode & stat.S_IROTH and all(way.stat().st_mode & stat.S_IXOTH for way in path.resolve().parents):
        way_out = Words(
            "chmod o-rwx {path}, unless everybody is meant to see people's questions", path=shlex.quote(root)
        )
        yield Check(Words("results"), Words("{root} can be read by every account of this machine", root=root), way_out)


def _env(path: Path) -> Iterator[Check]:
    """Whether others may read a file `.env` that holds keys."""
    with suppress(OSError):
        if path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
            named = [name for name, value in dotenv_values(path).items() if value and SECRETS.search(name)]
            if named:
                found = Words(
                    "{path} can be read by other accounts, and holds {named}", path=path, named=", ".join(sorted(named))
                )
                yield Check(Words("settings"), found, Words("chmod go-rwx {path}", path=shlex.quote(str(path))))


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return Words("user {uid}", uid=uid)


def examine() -> list[Check]:
    """Checks settings, database, who may enter the home, results folder, embedder, metrics, and every source."""
    findings = list(_guarded(Words("settings"), _settings))
    if findings[-1].code:  # nothing else can be checked
        return findings
    parts: dict[Words, Callable[[], Iterator[Check]]] = {
        Words("database"): _database,
        Words("prefect"): _prefect,
        Words("home"): examine_home,
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
        from yarus.deployments.upkeep.doctor_models import examine_model  # aiohttp, which only servers need

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

"""Check an installation, with advice for each failed check."""

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
from yarus.db.engine import redact_database_url, reporting_unreachable
from yarus.db.errors import DatabaseUnavailable, InputError, ModelUnavailable
from yarus.db.home import find_accessible_paths
from yarus.db.messages import Words
from yarus.db.sources import PRODUCTION, SAMPLE
from yarus.deployments.prefect.home_servers import describe_server
from yarus.deployments.upkeep.doctor_sources import Check, examine_source
from yarus.metrics.selftest import self_test
from yarus.tasks.config.connections import database, open_source
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.settings import get_settings
from yarus.tasks.evaluation.result_files import require_writable
from yarus.tasks.models.calls import RoleName
from yarus.tasks.models.embedding.embedders import (
    Embedder,
    get_embedder,
    get_embedder_pair,
    get_measuring_embedder_name,
)

SECRETS = re.compile(r"KEY|HEADERS|PASSWORD|TOKEN|SECRET|WEBHOOK|AUTH|_URL", re.IGNORECASE)
"""Variables of a file `.env` that probably hold a secret."""


def examine_home() -> Iterator[Check]:
    """Check modes and owners; each problem comes with a command that fixes it, and does not stop anything."""
    home = get_settings().home.absolute()
    if not home.is_dir():
        yield Check(Words("home"), Words("{home} is not there yet; it is made when it is first needed", home=home))
        return
    problems = [*_check_modes(home), *_check_owner(home), *_check_links(home)]
    yield from problems or [Check(Words("home"), Words("{home} is closed to other accounts", home=home))]
    yield from _check_result_files(home)
    yield from _check_env_file(Path(".env").absolute())


def _check_modes(home: Path) -> Iterator[Check]:
    for path in find_accessible_paths(home):
        mode = f"{stat.S_IMODE(path.stat().st_mode):04o}"
        way_out = Words("chmod go-rwx {path}", path=shlex.quote(str(path)))
        if path == home and os.geteuid() == 0:
            way_out = Words("chmod go-rw {path}", path=shlex.quote(str(path)))  # PostgreSQL's account needs access
        way_out = Words(
            "{command}; if it stays open, the file system has no modes: set YARUS_HOME to a folder on another",
            command=way_out,
        )
        yield Check(
            Words("home"),
            Words("{path} is open to other accounts of this machine ({mode})", path=path, mode=mode),
            way_out,
        )


def _check_owner(home: Path) -> Iterator[Check]:
    """Check the owner of a home, who can read all of it and may open it to others."""
    owner, user = home.stat().st_uid, os.geteuid()
    if owner != user:
        yield Check(
            Words("home"),
            Words("{home} belongs to {name}, and you are {us}", home=home, name=_user_name(owner), us=_user_name(user)),
            Words("use a home of your own"),
        )


def _check_links(home: Path) -> Iterator[Check]:
    """Check linked parts of the home, whose permissions are the user's responsibility."""
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


def _check_result_files(home: Path) -> Iterator[Check]:
    root = get_settings().results_root
    path = Path(root)
    if "://" in root or path.resolve().is_relative_to(home.resolve()) or not path.is_dir():
        return
    if path.stat().st_mode & stat.S_IROTH and all(
        parent.stat().st_mode & stat.S_IXOTH for parent in path.resolve().parents
    ):
        way_out = Words(
            "chmod o-rwx {path}, unless everybody is meant to see people's questions", path=shlex.quote(root)
        )
        yield Check(Words("results"), Words("{root} can be read by every account of this machine", root=root), way_out)


def _check_env_file(path: Path) -> Iterator[Check]:
    """Check whether others may read a file `.env` that holds keys."""
    with suppress(OSError):
        if path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
            secrets = [name for name, value in dotenv_values(path).items() if value and SECRETS.search(name)]
            if secrets:
                finding = Words(
                    "{path} can be read by other accounts, and holds {named}",
                    path=path,
                    named=", ".join(sorted(secrets)),
                )
                yield Check(Words("settings"), finding, Words("chmod go-rwx {path}", path=shlex.quote(str(path))))


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return Words("user {uid}", uid=uid)


def examine() -> list[Check]:
    """Check settings, database, access to the home, results folder, embedder, metrics, and every source."""
    findings = list(_catch_errors(Words("settings"), _check_settings))
    if findings[-1].exit_code:  # nothing else can be checked
        return findings
    parts: dict[Words, Callable[[], Iterator[Check]]] = {
        Words("database"): _check_database,
        Words("prefect"): _check_prefect,
        Words("home"): examine_home,
        Words("results"): _check_results,
        Words("embedder"): _check_embedder,
        Words("models"): _check_models,
        Words("metrics"): _check_metrics,
        Words("sources"): _check_sources,
    }
    for subject, check in parts.items():
        findings.extend(_catch_errors(subject, check))
    return findings


def _catch_errors(subject: str, check: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    try:
        yield from check()
    except InputError as error:
        yield Check(subject, redact_urls(str(error)), exit_code=2)
    except (DatabaseUnavailable, ModelUnavailable, OSError) as error:
        yield Check(subject, redact_urls(str(error)), exit_code=3)


def _check_settings() -> Iterator[Check]:
    settings = get_settings()
    yield Check(
        Words("settings"),
        Words("home {home}, language {language}", home=settings.home.absolute(), language=settings.language),
    )


def _check_database() -> Iterator[Check]:
    engine = database()
    with reporting_unreachable(engine), engine.connect() as connection:
        version = connection.scalar(text("SHOW server_version"))
        vector = connection.scalar(text("SELECT extversion FROM pg_extension WHERE extname = 'vector'"))
    kind = Words("embedded") if get_settings().database_url is None else redact_database_url(engine.url)
    yield Check(
        Words("database"),
        Words("PostgreSQL {version}, pgvector {vector}, {kind}", version=version, vector=vector, kind=kind),
    )


def _check_sources() -> Iterator[Check]:
    open_source(SAMPLE)
    with database().connect() as connection:
        names = list(connection.scalars(select(tables.source.c.name).order_by(tables.source.c.name)))
    if get_settings().source_url is not None:
        names.append(PRODUCTION)
    for name in names:  # an unreadable source does not hide the others
        yield from _catch_errors(Words("source {name}", name=name), partial(_check_source, name))


def _check_source(name: str) -> Iterator[Check]:
    return examine_source(open_source(name))


def _check_results() -> Iterator[Check]:
    root = get_settings().results_root
    require_writable(root)
    yield Check(Words("results"), Words("{root} can be written", root=redact_urls(root)))


def _check_embedder() -> Iterator[Check]:
    model, _ = get_embedder_pair(get_settings().embedder, get_settings())
    yield from _catch_errors(Words("embedder"), partial(_try_embedder, Words("embedder"), model))
    if get_settings().similarity_embedder:
        subject = Words("similarity embedder")
        yield from _catch_errors(subject, lambda: _try_embedder(subject, get_embedder(get_measuring_embedder_name())))


def _try_embedder(subject: str, model: Embedder) -> Iterator[Check]:
    vectors = model.encode(["Как получить студенческий билет?"])
    yield Check(
        subject, Words("{embedder}, {size} dimensions", embedder=model.identity.split("|")[0], size=vectors.shape[1])
    )


def _check_models() -> Iterator[Check]:
    for name in get_args(RoleName):
        if get_settings().get_role(name).base_url is None:
            continue
        # Imported here because it loads aiohttp, which only model servers need.
        from yarus.deployments.upkeep.doctor_models import examine_model

        yield from _catch_errors(Words("model {name}", name=name), partial(examine_model, name))


def _check_prefect() -> Iterator[Check]:
    api = os.environ.get("PREFECT_API_URL")
    yield Check(
        Words("prefect"),
        Words("server {api}", api=redact_urls(api)) if api else describe_server(get_settings().home.absolute()),
    )


def _check_metrics() -> Iterator[Check]:
    problems = self_test()
    if not problems:
        yield Check(Words("metrics"), Words("the self-test agrees with the published values"))
    for problem in problems:
        yield Check(
            Words("metrics"),
            str(problem),
            Words("Reinstall Yarus; do not trust its numbers until this is gone"),
            exit_code=3,
        )

"""What `yarus init` would do, and what it has done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from yarus.db.importers.reader import Recognised, match_labels
from yarus.db.loading.fill import LoadReport
from yarus.deployments.upkeep.readiness import Ready
from yarus.deployments.upkeep.setup.database import FoundTable, look_at_database
from yarus.deployments.upkeep.setup.files import (
    FoundFile,
    Written,
    corpus_of,
    describe,
    language_of,
    planned,
    recognise_all,
)
from yarus.deployments.upkeep.setup.system import FoundSystem, ask
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.settings import settings

HELLO = "Как получить справку?"
"""Asked of a system where no log has a question."""


@dataclass
class Begun:
    """What was found, what was written, and what can be measured now."""

    source: str
    language: str
    """Of the texts."""
    files: list[FoundFile]
    database: str | None
    """Its address, without the password."""
    tables: list[FoundTable]
    system: FoundSystem | None
    env: Written
    loaded: list[LoadReport] = field(default_factory=list)
    """One a file; none where nothing was to be done yet (`--dry-run`)."""
    readiness: list[Ready] = field(default_factory=list)


def plan(
    files: Sequence[Path],
    mapping: Mapping[str, str],
    source_url: str | None,
    sut: str | None,
    language: str | None,
    env: Path,
    encoding: str | None,
    where: Mapping[str, str],
) -> tuple[Begun, dict[str, str], list[Recognised]]:
    """Looks at what somebody has; nothing is loaded or written.

    Args:
        files: a log, and pages.
        mapping: our column -> theirs, where somebody knows it.
        source_url: of a production database, in place of files.
        sut: address of a system, which is asked one question.
        language: of the texts; None for what they look like.
        env: the file of settings.
        encoding: of text files; None for what their bytes say.
        where: column -> the value that a row must have to be loaded.

    Returns:
        What was found, the settings to write, and the files as they are to be loaded.

    Raises:
        InputError: what cannot be read, or told from its names and content.
        DatabaseUnavailable: the database cannot be reached.
        ModelUnavailable: the system does not answer.
    """
    recognised = recognise_all(files, mapping, encoding, where)
    corpus = corpus_of(recognised)
    unmatched = match_labels(recognised, corpus) if len(corpus) else []
    found = [describe(one) for one in recognised]
    if found:
        found[0].notes.extend(unmatched)
    tables = look_at_database(source_url) if source_url else []
    question = next((one.example for one in found if one.kind != "chunks" and one.example), HELLO)
    system = ask(sut, question) if sut else None
    wanted = {"YARUS_SOURCE_URL": source_url} if source_url else {}
    wanted |= {name: value for one in tables for name, value in one.settings()}
    if system:
        wanted |= {"YARUS_SUT": system.address}
        wanted |= {f"YARUS_SUT_SERVICE__{name.upper()}": value for name, value in system.settings.items()}
    spoken = language or (language_of(found) if found else settings().language)
    address = redact_urls(source_url) if source_url else None
    return Begun("", spoken, found, address, tables, system, planned(env, wanted)), wanted, recognised

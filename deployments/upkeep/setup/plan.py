"""Plan what `yarus init` does, and report what it has done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from yarus.db.importers.reader import RecognisedSource, report_unmatched_labels
from yarus.db.loading.load_rows import LoadReport
from yarus.deployments.upkeep.readiness import TierReadiness
from yarus.deployments.upkeep.setup.database import FoundTable, inspect_database
from yarus.deployments.upkeep.setup.files import (
    EnvChanges,
    FoundFile,
    describe_file,
    detect_language,
    plan_settings,
    read_corpus_names,
    recognise_all,
)
from yarus.deployments.upkeep.setup.system import FoundSystem, ask_system
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.settings import Settings, get_settings

DEFAULT_QUESTION = "Как получить справку?"
"""The question for a system if no log has one."""


@dataclass
class SetupResult:
    """Recognised data, written settings, and tiers that can be measured."""

    source: str
    language: str
    """Language of the texts."""
    files: list[FoundFile]
    database: str | None
    """Its address, without the password."""
    tables: list[FoundTable]
    system: FoundSystem | None
    env: EnvChanges
    loaded: list[LoadReport] = field(default_factory=list)
    """One report per file; empty with `--dry-run`."""
    readiness: list[TierReadiness] = field(default_factory=list)


def _would_change_prompts(configuration: Settings, language: str | None) -> bool:
    """Return whether there may be evaluations with prompts in another language."""
    root = configuration.results_root
    has_evaluations = "://" in root or (Path(root).is_dir() and any(Path(root).iterdir()))
    return has_evaluations and language != configuration.text_language


def plan_setup(
    files: Sequence[Path],
    mapping: Mapping[str, str],
    source_url: str | None,
    sut: str | None,
    language: str | None,
    env: Path,
    encoding: str | None,
    where: Mapping[str, str],
) -> tuple[SetupResult, dict[str, str], list[RecognisedSource]]:
    """Examine files, database and system; nothing is loaded or written.

    Args:
        files: a log, and pages.
        mapping: our column -> the file's, if known.
        source_url: the address of a production database, instead of files.
        sut: the address of a system, which is asked one question.
        language: the language of the texts; None: detected.
        env: the file of settings.
        encoding: the encoding of text files; None: detected from their bytes.
        where: column -> the value that a row must have to be loaded.

    Returns:
        The findings, the settings to write, and the files to load.

    Raises:
        InputError: a file cannot be read, or recognised from its names and content.
        DatabaseUnavailable: the database cannot be reached.
        ModelUnavailable: the system does not answer.
    """
    recognised = recognise_all(files, mapping, encoding, where)
    corpus = read_corpus_names(recognised)
    unmatched = report_unmatched_labels(recognised, corpus) if len(corpus) else []
    found_files = [describe_file(file) for file in recognised]
    if found_files:
        found_files[0].notes.extend(unmatched)
    tables, sampled_texts = inspect_database(source_url) if source_url else ([], [file.example for file in found_files])
    question = next((file.example for file in found_files if file.kind != "chunks" and file.example), DEFAULT_QUESTION)
    system = ask_system(sut, question) if sut else None
    settings = {"YARUS_SOURCE_URL": source_url} if source_url else {}
    settings |= {name: value for table in tables for name, value in table.settings()}
    if system:
        settings |= {"YARUS_SUT": system.address}
        settings |= {f"YARUS_SUT_SERVICE__{name.upper()}": value for name, value in system.settings.items()}
    configuration = get_settings()
    detected = language or detect_language(sampled_texts)
    is_free = configuration.follows_locale and not _would_change_prompts(configuration, detected)
    if detected and (is_free or (source_url and language)):
        settings["YARUS_LANGUAGE"] = detected  # so that prompts are in this language, and no locale changes it
    address = redact_urls(source_url) if source_url else None
    # A loaded source has a language of its own, a database that of the settings.
    text_language = detected if detected and (is_free or not source_url) else configuration.text_language
    return (
        SetupResult(
            "",
            text_language,
            found_files,
            address,
            tables,
            system,
            plan_settings(env, settings),
        ),
        settings,
        recognised,
    )

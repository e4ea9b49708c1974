"""Working folder of an evaluation: its cases and corpus, here or on an object store."""

import contextlib
import fnmatch
import hashlib
import json
import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from fsspec import AbstractFileSystem

from yarus.db import journal
from yarus.db.source_rows import Corpus
from yarus.db.sources import Source
from yarus.db.urls import canonical_url
from yarus.tasks.cases.frozen_sets import find_frozen_set
from yarus.tasks.cases.labels import page_by_chunk
from yarus.tasks.cases.table import column_spec, column_values, iterate_rows, optional_column_values
from yarus.tasks.cases.text import join_within_limit
from yarus.tasks.cases.unmatched_labels import compare_labels
from yarus.tasks.cases.vocabulary import Duplicates, Note, Unit
from yarus.tasks.config.connections import database
from yarus.tasks.config.parameters import Parameters
from yarus.tasks.config.settings import get_settings
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.corpus_versions import save_version
from yarus.tasks.evaluation.repeats import repeat_config
from yarus.tasks.evaluation.result_files import make_folder, open_filesystem, read_parquet
from yarus.tasks.evaluation.run import DRY_RUN_PREFIX, EvaluationRun

P = TypeVar("P", bound=Parameters)
PAGE_TOKENS = 3_000
"""Tokens of a page that is read as a whole; longer ones are cut."""
CASE_SET_COLUMNS: tuple[str, ...] = ("case_id", "question", "text", "labelled", "cluster", "stratum", "reference")
CASE_SET_COLUMNS += ("answerable", "answer", "shown", "human_score", "nuggets", "dialog", "turn")
"""Columns of cases that identify a case set."""
log = logging.getLogger("yarus")


def case_set_hash(*tables: pa.Table) -> str:
    """Return the SHA-256 of the questions and their labels, independent of their order.

    Args:
        tables: the cases, and what else they are measured against.
    """
    lines = sorted(digest for cases in tables for digest in _iterate_digests(cases))
    return hashlib.sha256(b"".join(lines)).hexdigest()


def _iterate_digests(cases: pa.Table) -> Iterator[bytes]:
    content = CASE_SET_COLUMNS
    if "score" in cases.column_names:  # the log in time order, which the measures need
        content += ("score", "asked_at", "page")
    names = [name for name in content if name in cases.column_names]
    rows = (row for batch in cases.select(names).to_batches(10_000) for row in batch.to_pylist())
    for row in rows:
        text = json.dumps(row, ensure_ascii=False, sort_keys=True, default=str)
        yield hashlib.sha256(text.encode(errors="surrogatepass")).digest()


def read_cases(run: EvaluationRun, batch: int | None = None) -> pa.Table:
    """Read the cases as they were loaded; all, or those of a batch."""
    cases = read_parquet(run.work / "cases.parquet", group=batch)
    return cases.cast(pa.schema([(name, column_spec(name).type) for name in cases.column_names]))


def batch_sizes(run: EvaluationRun) -> list[int]:
    """Return how many cases each batch has."""
    stored = pq.read_metadata(run.work / "cases.parquet")
    return [stored.row_group(batch).num_rows for batch in range(run.n_batches)]


def read_stored_corpus(run: EvaluationRun) -> Corpus:
    """Read the corpus as it was loaded."""
    stored = read_parquet(run.work / "corpus.parquet")
    vectors = run.work / "stored.npy"
    ids, urls, texts = (column_values(stored, name) for name in ("id", "url", "text"))
    return Corpus(ids, urls, texts, np.load(vectors, mmap_mode="r") if vectors.exists() else None)


def read_duplicates(run: EvaluationRun) -> Duplicates:
    """Return the duplicates of this evaluation: chunk or page -> the first of its duplicates."""
    return _read_duplicates(run.work / "corpus.parquet")


@lru_cache(maxsize=1)
def _read_duplicates(file: Path) -> Duplicates:
    stored = read_parquet(file)
    if "stands_for" not in stored.column_names:  # begun by a version that did not look for duplicates
        return {}
    duplicates = stored.filter(stored["stands_for"].is_valid())
    return dict(iterate_rows(duplicates, "unit", "stands_for"))


def read_texts(run: EvaluationRun) -> Mapping[str, str]:
    """Return the text of each chunk or page, in the evaluation's unit; of a long page the beginning."""
    return _read_texts(run.work / "corpus.parquet", run.config.unit)


@lru_cache(maxsize=1)
def _read_texts(file: Path, unit: Unit) -> Mapping[str, str]:
    stored = read_parquet(file)
    ids, urls, texts = (column_values(stored, name) for name in ("id", "url", "text"))
    if unit == "chunk":
        return dict(zip(ids, texts, strict=True))
    pages: dict[str, list[str]] = defaultdict(list)
    for url, text in zip(urls, texts, strict=True):
        if (page := canonical_url(url)) is not None:
            pages[page].append(text)
    return {page: join_within_limit(parts, PAGE_TOKENS)[0] for page, parts in pages.items()}


def is_loaded(run: EvaluationRun) -> bool:
    """Return whether an earlier try of this evaluation has loaded its cases."""
    return bool(run.config.model_fields_set) and (run.work / "cases.parquet").exists()


def choose_batch_size(n_cases: int) -> int:
    """Return the cases per batch: at most 50 batches, each small enough to be repeated after an interruption."""
    return max(100, -(-n_cases // 50))


def batch_cuts(cases: pa.Table, size: int) -> list[int]:
    """Return the rows where batches begin, and the end of the last one; dialogs are not split.

    Args:
        cases: n rows; those of a dialog are consecutive.
        size: least number of cases in a batch.
    """
    dialogs = optional_column_values(cases, "dialog")
    cuts = [0]
    for row in range(1, len(cases)):
        is_within = dialogs[row] is not None and dialogs[row] == dialogs[row - 1]
        if row - cuts[-1] >= size and not is_within:
            cuts.append(row)
    return [*cuts, len(cases)]


def save_loaded(
    run: EvaluationRun[P],
    where: Source,
    cases: pa.Table,
    corpus: Corpus,
    notes: list[Note],
    config: EvaluationConfig,
    *,
    beside: Sequence[pa.Table] = (),
    twins: Duplicates = MappingProxyType({}),
) -> EvaluationRun[P]:
    """Write cases and corpus into the working folder, and describe them in the journal.

    Args:
        run: the evaluation.
        where: the source.
        cases: as loaded.
        corpus: what is searched.
        notes: on peculiarities of the data.
        config: resolved from the parameters.
        beside: further tables that the cases are measured against; they belong to the case set.
        twins: duplicates, in the evaluation's unit.
    """
    if unit := config.unit:
        notes = compare_labels(notes, cases, corpus, unit)
    config = EvaluationConfig(batch_size=choose_batch_size(len(cases)), language=where.language, notes=notes) | config
    if run.parameters.cases and config.texts != "chunks":  # chunks are the corpus, which cannot be frozen
        case_set = find_frozen_set(run.parameters.cases, where.name)
        config |= EvaluationConfig(cases={"name": case_set.name, "sha256": case_set.sha256})
    if where.loaded_at and config.retriever == "pgvector":  # it may still read the source later
        config |= EvaluationConfig(source_loaded_at=where.loaded_at.isoformat())
    config |= repeat_config(run.parameters)
    if (shared := run.resources.shared) and shared.part_of:
        config |= EvaluationConfig(part_of=shared.part_of)
    units = list(page_by_chunk(corpus).values()) if config.unit == "page" else corpus.ids
    columns = {"id": corpus.ids, "url": corpus.urls, "text": corpus.texts, "unit": units}
    columns["stands_for"] = [twins.get(name) if name is not None else None for name in units]
    schema = pa.schema([(name, pa.string()) for name in columns])
    pq.write_table(pa.table(columns, schema=schema), run.work / "corpus.parquet")
    if corpus.vectors is not None:
        np.save(run.work / "stored.npy", corpus.vectors)
    cuts = batch_cuts(cases, config.batch_size)
    if len(cuts) - 1 != -(-len(cases) // config.batch_size):
        config |= EvaluationConfig(n_batches=len(cuts) - 1)
    with pq.ParquetWriter(run.work / "cases.parquet", cases.schema) as file:
        for begin, end in pairwise(cuts):  # a batch is a group
            file.write_table(cases.slice(begin, end - begin), row_group_size=end - begin)
    if not run.id.startswith(DRY_RUN_PREFIX):
        config |= EvaluationConfig(corpus=save_version(database(), corpus))
    run = replace(run, config=config, n_cases=len(cases))
    digest = case_set_hash(cases, *beside)
    journal.update_evaluation(database(), run.id, n_cases=len(cases), case_set_hash=digest, resolved=config.stored())
    log.info("%s: %d cases, %d chunks", f"{run.tier}, {where.name}", len(cases), len(corpus.ids))
    return run


BATCH_PATTERN = "batch-*.parquet"


def upload_files(evaluation_id: str, files: Iterable[Path]) -> None:
    """Upload finished files of the working folder, replacing what an interrupted upload may have left."""
    if folder := _on_store(evaluation_id):
        filesystem, name = folder
        for file in files:
            filesystem.put_file(str(file), f"{name}/{file.name}")


def download_files(evaluation_id: str, folder: Path, *, batches: bool) -> None:
    """Download the files that the store has and the working folder lacks, each completely or not at all.

    Args:
        evaluation_id: of the evaluation.
        folder: its working folder here; made if missing.
        batches: whether to get the finished batches too, or only their inputs.
    """
    if not (stored := _on_store(evaluation_id)):
        return
    filesystem, name = stored
    make_folder(folder)
    for file_name in _list_names(*stored):
        if (folder / file_name).exists() or (fnmatch.fnmatch(file_name, BATCH_PATTERN) and not batches):
            continue
        partial = folder / f".{file_name}.{id(filesystem)}.part"
        try:
            filesystem.get_file(f"{name}/{file_name}", str(partial))
            partial.replace(folder / file_name)
        finally:
            partial.unlink(missing_ok=True)


def list_uploads() -> set[str]:
    """Return the evaluations that have a folder on the store."""
    root = _on_store()
    return set(_list_names(*root)) if root else set()


def delete_upload(evaluation_id: str) -> None:
    """Remove a finished evaluation's folder from the store."""
    if folder := _on_store(evaluation_id):
        filesystem, name = folder
        with contextlib.suppress(FileNotFoundError):
            filesystem.rm(name, recursive=True)


def _on_store(*evaluation: str) -> tuple[AbstractFileSystem, str] | None:
    """Return the store and the folder of an evaluation, or of all of them; None without a store."""
    work = get_settings().work_dir
    if not work or "://" not in work:
        return None
    return open_filesystem("/".join((work.rstrip("/"), *evaluation)), "YARUS_WORK_DIR")


def _list_names(filesystem: AbstractFileSystem, name: str) -> list[str]:
    filesystem.invalidate_cache()  # other machines write there too
    try:
        return [Path(path).name for path in filesystem.ls(name, detail=False)]
    except FileNotFoundError:
        return []

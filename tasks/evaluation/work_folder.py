"""The working folder of an evaluation: its cases and corpus, here or on an object store."""

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
from yarus.tasks.cases.frozen_sets import frozen
from yarus.tasks.cases.labels import pages_of
from yarus.tasks.cases.table import declared, rows_of, values_if_any, values_of
from yarus.tasks.cases.text import fit
from yarus.tasks.cases.unmatched_labels import compare_labels
from yarus.tasks.cases.vocabulary import Note, Twins, Unit
from yarus.tasks.config.connections import database
from yarus.tasks.config.parameters import Parameters
from yarus.tasks.config.settings import settings
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.corpus_versions import keep_version
from yarus.tasks.evaluation.repeats import repeating
from yarus.tasks.evaluation.result_files import make_folder, parquet, store
from yarus.tasks.evaluation.run import DRY_RUN, Run

P = TypeVar("P", bound=Parameters)
PAGE_TOKENS = 3_000
"""Of a page that is read as a whole: what is longer is cut."""
CONTENT: tuple[str, ...] = ("case_id", "question", "text", "labelled", "cluster", "stratum", "reference", "answerable")
CONTENT += ("answer", "shown", "human_score", "nuggets", "dialog", "turn")
"""The columns of cases that make a case set."""
log = logging.getLogger("yarus")


def case_set_hash(*tables: pa.Table) -> str:
    """SHA-256 of the questions and their labels, whatever their order: equal for equal content.

    Args:
        tables: the cases, and what else they are measured against.
    """
    lines = sorted(digest for cases in tables for digest in _digests(cases))
    return hashlib.sha256(b"".join(lines)).hexdigest()


def _digests(cases: pa.Table) -> Iterator[bytes]:
    content = CONTENT
    if "score" in cases.column_names:  # the log in time, whose measures rest on these
        content += ("score", "asked_at", "page")
    named = [name for name in content if name in cases.column_names]
    rows = (row for some in cases.select(named).to_batches(10_000) for row in some.to_pylist())
    for row in rows:
        text = json.dumps(row, ensure_ascii=False, sort_keys=True, default=str)
        yield hashlib.sha256(text.encode(errors="surrogatepass")).digest()


def read_cases(run: Run, batch: int | None = None) -> pa.Table:
    """The cases as they were loaded; all, or those of a batch."""
    cases = parquet(run.work / "cases.parquet", group=batch)
    return cases.cast(pa.schema([(name, declared(name).type) for name in cases.column_names]))


def batch_sizes(run: Run) -> list[int]:
    """How many cases each batch has."""
    stored = pq.read_metadata(run.work / "cases.parquet")
    return [stored.row_group(batch).num_rows for batch in range(run.n_batches)]


def read_stored_corpus(run: Run) -> Corpus:
    """The corpus as it was loaded."""
    stored = parquet(run.work / "corpus.parquet")
    vectors = run.work / "stored.npy"
    ids, urls, texts = (values_of(stored, name) for name in ("id", "url", "text"))
    return Corpus(ids, urls, texts, np.load(vectors, mmap_mode="r") if vectors.exists() else None)


def read_twins(run: Run) -> Twins:
    """What counts as one in this evaluation: chunk or page -> the first of its twins."""
    return _twins(run.work / "corpus.parquet")


@lru_cache(maxsize=1)
def _twins(file: Path) -> Twins:
    stored = parquet(file)
    if "stands_for" not in stored.column_names:  # of an evaluation that was begun before twins were known
        return {}
    known = stored.filter(stored["stands_for"].is_valid())
    return dict(rows_of(known, "unit", "stands_for"))


def read_texts(run: Run) -> Mapping[str, str]:
    """What stands in each chunk or page, of the evaluation's unit; of a long page the beginning."""
    return _texts(run.work / "corpus.parquet", run.config.unit)


@lru_cache(maxsize=1)
def _texts(file: Path, unit: Unit) -> Mapping[str, str]:
    stored = parquet(file)
    ids, urls, texts = (values_of(stored, name) for name in ("id", "url", "text"))
    if unit == "chunk":
        return dict(zip(ids, texts, strict=True))
    pages: dict[str, list[str]] = defaultdict(list)
    for url, text in zip(urls, texts, strict=True):
        if (page := canonical_url(url)) is not None:
            pages[page].append(text)
    return {page: fit(parts, PAGE_TOKENS)[0] for page, parts in pages.items()}


def loaded(run: Run) -> bool:
    """Whether an earlier try of this evaluation has loaded what it works on."""
    return bool(run.config.model_fields_set) and (run.work / "cases.parquet").exists()


def batch_size(n_cases: int) -> int:
    """Cases a batch: at most 50 batches an evaluation, and not many to do again when one is cut off."""
    return max(100, -(-n_cases // 50))


def batch_cuts(cases: pa.Table, size: int) -> list[int]:
    """The rows where batches begin, and where the last one ends; none ends within a dialog.

    Args:
        cases: n rows, those of a dialog one after another.
        size: cases that a batch has at least.
    """
    dialogs = values_if_any(cases, "dialog")
    found = [0]
    for row in range(1, len(cases)):
        within = dialogs[row] is not None and dialogs[row] == dialogs[row - 1]
        if row - found[-1] >= size and not within:
            found.append(row)
    return [*found, len(cases)]


def keep_loaded(
    run: Run[P],
    where: Source,
    cases: pa.Table,
    corpus: Corpus,
    notes: list[Note],
    config: EvaluationConfig,
    *,
    beside: Sequence[pa.Table] = (),
    twins: Twins = MappingProxyType({}),
) -> Run[P]:
    """Writes cases and corpus into the working folder, and into the journal what they are.

    Args:
        run: of which.
        where: the source.
        cases: as loaded.
        corpus: what is searched.
        notes: on what was met.
        config: what the parameters came to.
        beside: what else the cases are measured against, so that it belongs to the case set.
        twins: what counts as one, of the evaluation's unit.
    """
    if unit := config.unit:
        notes = compare_labels(notes, cases, corpus, unit)
    config = EvaluationConfig(batch_size=batch_size(len(cases)), language=where.language, notes=notes) | config
    if run.parameters.cases and config.texts != "chunks":  # chunks are the corpus, which is never frozen
        kept = frozen(run.parameters.cases, where.name)
        config |= EvaluationConfig(cases={"name": kept.name, "sha256": kept.sha256})
    if where.loaded_at and config.retriever == "pgvector":  # which may go on reading the source
        config |= EvaluationConfig(source_loaded_at=where.loaded_at.isoformat())
    config |= repeating(run.parameters)
    if (common := run.resources.shared) and common.part_of:
        config |= EvaluationConfig(part_of=common.part_of)
    units = list(pages_of(corpus).values()) if config.unit == "page" else corpus.ids
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
    if not run.id.startswith(DRY_RUN):
        config |= EvaluationConfig(corpus=keep_version(database(), corpus))
    run = replace(run, config=config, n_cases=len(cases))
    digest = case_set_hash(cases, *beside)
    journal.describe(database(), run.id, n_cases=len(cases), case_set_hash=digest, resolved=config.stored())
    log.info("%s: %d cases, %d chunks", where.name, len(cases), len(corpus.ids))
    return run


BATCHES = "batch-*.parquet"


def upload(evaluation_id: str, files: Iterable[Path]) -> None:
    """Puts finished files of the working folder on the store, over what a put that was cut off may have left."""
    if folder := _on_store(evaluation_id):
        filesystem, name = folder
        for file in files:
            filesystem.put_file(str(file), f"{name}/{file.name}")


def download(evaluation_id: str, folder: Path, *, batches: bool) -> None:
    """Gets what the store has and the working folder has not, each file whole or not at all.

    Args:
        evaluation_id: whose.
        folder: its working folder here; made where it is not.
        batches: the finished batches too, or only what they are computed from.
    """
    if not (stored := _on_store(evaluation_id)):
        return
    filesystem, name = stored
    make_folder(folder)
    for file in _names(*stored):
        if (folder / file).exists() or (fnmatch.fnmatch(file, BATCHES) and not batches):
            continue
        partial = folder / f".{file}.{id(filesystem)}.part"
        try:
            filesystem.get_file(f"{name}/{file}", str(partial))
            partial.replace(folder / file)
        finally:
            partial.unlink(missing_ok=True)


def uploaded() -> set[str]:
    """The evaluations that have a folder on the store."""
    root = _on_store()
    return set(_names(*root)) if root else set()


def delete(evaluation_id: str) -> None:
    """Removes a finished evaluation's folder from the store."""
    if folder := _on_store(evaluation_id):
        filesystem, name = folder
        with contextlib.suppress(FileNotFoundError):
            filesystem.rm(name, recursive=True)


def _on_store(*evaluation: str) -> tuple[AbstractFileSystem, str] | None:
    """The folder of an evaluation, or of all of them, and the store that it is on; None without a store."""
    work = settings().work
    if not work or "://" not in work:
        return None
    return store("/".join((work.rstrip("/"), *evaluation)), "YARUS_WORK")


def _names(filesystem: AbstractFileSystem, name: str) -> list[str]:
    filesystem.invalidate_cache()  # other machines write there too
    try:
        return [Path(path).name for path in filesystem.ls(name, detail=False)]
    except FileNotFoundError:
        return []

"""Check the content of a source before it is used. Large tables are counted in SQL."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import numpy as np
from sqlalchemy import Connection, Table, Text, cast, func, inspect, select, text

from yarus.db import tables
from yarus.db.errors import InputError
from yarus.db.messages import Words, join_messages
from yarus.db.privileged import find_privileged_role
from yarus.db.source_rows import Corpus, has_annotations, label_columns
from yarus.db.sources import Source, open_snapshot
from yarus.db.stores.fulltext import TEXT_SEARCH_CONFIGURATIONS
from yarus.db.urls import canonical_url
from yarus.tasks.cases.labels import parse_grades
from yarus.tasks.config.connections import database
from yarus.tasks.config.settings import get_settings
from yarus.tasks.models.embedding.cache import N_PROBED_CHUNKS, check_stored_vectors
from yarus.tasks.models.embedding.embedders import Embedder, get_embedder_pair


class Check(NamedTuple):
    """One thing that was checked."""

    check_name: str
    """What was checked."""
    check_result: str
    """What was found."""
    recommended_action: str = ""
    """Recommended action; it may be useful even if nothing is broken."""
    exit_code: int = 0
    """0: fine; 2: a setting is wrong; 3: something outside is wrong."""


ANNOTATE = Words("annotate some questions: yarus dataset")
N_EXAMPLES = 3


class Urls(NamedTuple):
    """The addresses in one table with the number of their rows, without NULL."""

    rows: Counter[str]

    @property
    def pages(self) -> Counter[str]:
        """Return the pages of the addresses, with the number of rows."""
        pages: Counter[str] = Counter()
        for url, count in self.rows.items():
            if (page := canonical_url(url)) is not None:
                pages[page] += count
        return pages


def examine_source(source: Source) -> Iterator[Check]:
    """Check the rows, vectors, addresses and labels of one source.

    Raises:
        InputError: a table or column is missing, or a label cannot be read.
        DatabaseUnavailable: it cannot be reached or refuses the connection.
    """
    name = Words("source {name}", name=source.name)
    with open_snapshot(source) as connection:
        question, chunk = source.tables["question_answer"], source.tables["chunk"]
        annotated = has_annotations(connection, source)
        yield _check_rows(name, connection, source, annotated)
        yield from _find_gaps(name, connection, question, ("answer", "confluence_url", "score", "user_id", "embedding"))
        yield from _find_gaps(name, connection, chunk, ("confluence_url", "text", "embedding"))
        questions, chunks = get_embedder_pair(get_settings().embedder, get_settings())
        yield from _check_vectors(name, connection, chunk, chunk.c.text, chunks)
        yield from _check_vectors(name, connection, question, question.c.question, questions)
        log, corpus = (_read_urls(connection, table) for table in (question, chunk))
        yield from _check_addresses(name, log, corpus)
        yield from _check_labels(name, connection, source, annotated, log, corpus)
        if source.kind == "production":
            yield _check_privileges(name, connection, (question, chunk))
    yield _check_text_search(name, source.language)


def _check_rows(name: str, connection: Connection, source: Source, annotated: bool) -> Check:
    names = (*tables.REQUIRED_TABLES, *([tables.ANNOTATION_TABLE] if annotated else []))
    counts = [connection.scalar(select(func.count()).select_from(source.tables[table])) or 0 for table in names]
    count_texts = (Words("{n:,} questions", n=counts[0]), Words("{n:,} chunks", n=counts[1]))
    finding = join_messages((*count_texts, *(Words("{n:,} annotations", n=n) for n in counts[2:])), ", ")
    if not any(counts[:2]) or (counts[1] and not counts[0]):
        return Check(name, finding, Words("fill it: yarus load … --into {source}", source=source.name), exit_code=2)
    if not counts[1] and get_settings().sut == "local":
        return Check(
            name,
            finding,
            Words(
                "our own system has nothing to search: load the pages (yarus load table FILE --kind chunks --into "
                "{source}), or name the system that answers: YARUS_SUT",
                source=source.name,
            ),
            exit_code=2,
        )
    return Check(name, finding)


def _find_gaps(name: str, connection: Connection, table: Table, columns: Iterable[str]) -> Iterator[Check]:
    """Yield the share of NULL in each existing column."""
    existing = [column for column in columns if table.c[column].name in _column_names(connection, table)]
    counts = [func.count(table.c[column]) for column in existing]
    total, *value_counts = connection.execute(select(func.count(), *counts).select_from(table)).one()
    if not total:
        return
    gaps = {column: 1 - count / total for column, count in zip(existing, value_counts, strict=True)}
    finding = ", ".join(f"{column} {gap:.1%}" for column, gap in gaps.items())
    empty = [column for column, gap in gaps.items() if gap == 1 and column in GAP_CONSEQUENCES]
    yield Check(
        Words("{name}: NULL in {table}", name=name, table=table.name),
        finding,
        join_messages(GAP_CONSEQUENCES[column] for column in empty),
    )


GAP_CONSEQUENCES = {
    "answer": Words("without answers tiers 2 and 3 need annotated references: {annotate}", annotate=ANNOTATE),
    "confluence_url": Words("without pages only annotated chunks can be scored: {annotate}", annotate=ANNOTATE),
    "score": Words("without scores real_users has no confirmed questions, and its headline is not measured"),
    "user_id": Words("without users no dialogs can be told apart, and every question counts as independent"),
}
"""The consequence of a column without values."""


def _check_vectors(name: str, connection: Connection, table: Table, passage: Any, model: Embedder) -> Iterator[Check]:
    """Check that the stored vectors of a table have one size, and are from the configured embedder."""
    if table.c.embedding.name not in _column_names(connection, table):
        return
    vector, topic = table.c.embedding, Words("{name}: vectors in {table}", name=name, table=table.name)
    size = func.vector_dims(vector)
    zero_count = func.count().filter(func.vector_norm(vector) == 0)
    counts = select(size, func.count(), zero_count).where(vector.is_not(None)).group_by(size).order_by(size)
    sizes = connection.execute(counts).all()
    if not sizes:
        return
    finding = join_messages(
        (Words("{n:,} of {size} dimensions", n=count, size=dimensions) for dimensions, count, _ in sizes), ", "
    )
    if len(sizes) > 1:
        yield Check(
            topic, finding, Words("embed all of them anew with one model, or give --vectors computed"), exit_code=2
        )
        return
    if zeros := sizes[0][2]:
        yield Check(
            topic,
            Words("{n:,} of them are zero", n=zeros),
            Words("nothing is near to them: embed their texts anew"),
        )
    id_text = cast(table.c.id, Text)
    is_usable = vector.is_not(None) & passage.is_not(None) & (func.vector_norm(vector) > 0)
    rows = connection.execute(
        select(id_text, cast(passage, Text), vector).where(is_usable).order_by(func.md5(id_text)).limit(N_PROBED_CHUNKS)
    ).all()
    vectors = [np.asarray(row[2], dtype=np.float32) for row in rows]
    matrix = np.stack(vectors) if vectors else None
    probe = Corpus([row[0] for row in rows], [None] * len(rows), [row[1] for row in rows], matrix)
    try:
        check_stored_vectors(probe, model, table.fullname)
    except InputError as error:
        yield Check(topic, join_messages((finding, error.args[0])), exit_code=2)
    else:
        yield Check(topic, Words("{found}; {n} embedded again are equal", found=finding, n=len(rows)))


def _read_urls(connection: Connection, table: Table) -> Urls:
    url = cast(table.c.confluence_url, Text)
    rows = connection.execute(select(url, func.count()).where(url.is_not(None)).group_by(url))
    return Urls(Counter({row[0]: row[1] for row in rows}))


def _check_addresses(name: str, log: Urls, corpus: Urls) -> Iterator[Check]:
    """Yield the forms in which pages are named, before they get their canonical names."""
    forms: Counter[str] = Counter()
    for url, count in (log.rows + corpus.rows).items():
        forms.update(dict.fromkeys(url_forms(url), count))
    if not forms:
        return
    most_first = sorted(forms.items(), key=lambda item: (-item[1], item[0]))
    finding = Words(
        "{n:,} addresses of {n_pages:,} pages: {forms}",
        n=len(log.rows.keys() | corpus.rows.keys()),
        n_pages=len(log.pages | corpus.pages),
        forms=join_messages((Words("{form} {n:,}", form=Words(form), n=count) for form, count in most_first), ", "),
    )
    yield Check(Words("{name}: addresses", name=name), finding)


def url_forms(url: str) -> list[str]:
    """Return the peculiarities of an address: how it names its page, and what the canonical URL leaves out."""
    canonical = canonical_url(url)
    if canonical is None:
        return [Words("empty or None")]
    parts = urlsplit(url.replace("&amp;", "&")) if "[" not in url else urlsplit("")
    names = {name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    canonical_names = {name.lower() for name, _ in parse_qsl(canonical.partition("?")[2], keep_blank_values=True)}
    forms = {
        "pageId": "pageid" in names,
        "display": "/display/" in parts.path,
        "preview=": "preview" in names,
        "#fragment": bool(parts.fragment),
        "tracking": bool(names - canonical_names - {"preview"}),
        "no http": parts.scheme.lower() not in {"http", "https"},
    }
    return [form for form, is_present in forms.items() if is_present] or ["plain"]


def _check_unread_columns(name: str, connection: Connection, source: Source) -> Iterator[Check]:
    """Check for annotation columns that are not read: they may be labels under other names."""
    table = source.tables[tables.ANNOTATION_TABLE]
    if source.kind == "production" and (
        names := sorted(_column_names(connection, table) - {column.name for column in table.c})
    ):
        yield Check(
            Words("{name}: annotations", name=name),
            Words("columns that are not read: {names}", names=", ".join(names)),
            Words("map those that are labels: YARUS_SOURCE_COLUMNS__ANNOTATION__GROUND_TRUTH_ANSWER=NAME"),
        )


def _check_labels(
    name: str, connection: Connection, source: Source, annotated: bool, log: Urls, corpus: Urls
) -> Iterator[Check]:
    """Check for labels of chunks or pages that are not in the corpus, or for a lack of labels."""
    pages = log.pages
    annotation = source.tables[tables.ANNOTATION_TABLE].c
    chunks: Counter[str] = Counter()
    if annotated:
        yield from _check_unread_columns(name, connection, source)
        label_names = {"relevant_chunk_ids", "relevant_urls"}.intersection(label_columns(connection, source))
        columns = [annotation[column] for column in ("question_id", *sorted(label_names))]
        for record in connection.execute(select(*columns)):
            row = record._asdict()
            chunks.update(parse_grades(row, "relevant_chunk_ids").keys())
            pages.update(page for url in parse_grades(row, "relevant_urls") if (page := canonical_url(url)) is not None)
    if not chunks and not pages:
        yield Check(
            Words("{name}: labels", name=name),
            Words("none"),
            Words("no ranking can be scored: {annotate}", annotate=ANNOTATE),
        )
        return
    chunk_ids = set(connection.scalars(select(cast(source.tables["chunk"].c.id, Text)))) if chunks else set()
    stale = [
        (Words("chunks"), chunks, chunks.keys() - chunk_ids),
        (Words("pages"), pages, pages.keys() - corpus.pages.keys()),
    ]
    for unit, labels, missing in stale:
        if missing:
            examples = ", ".join(sorted(missing)[:N_EXAMPLES]) + (" …" if len(missing) > N_EXAMPLES else "")
            count = sum(labels[label] for label in missing)
            finding = Words(
                "{n:,} labels name {n_gone:,} {what} that are not in the corpus: {examples}",
                n=count,
                n_gone=len(missing),
                what=unit,
                examples=examples,
            )
            yield Check(
                Words("{name}: labels", name=name),
                finding,
                join_messages((STALE, *([TITLES] if any("/display/" in page for page in missing) else []))),
            )
    if not any(missing for _, _, missing in stale):
        yield Check(
            Words("{name}: labels", name=name),
            Words("all {n:,} name what is in the corpus", n=sum(chunks.values()) + sum(pages.values())),
        )


STALE = Words("they are left out and counted as stale: load the corpus that they were made on, or label anew")
TITLES = Words(
    "a page named by its title (/display/) in one table and by its pageId in the other is two pages: map both to a "
    "column or view with one form: YARUS_SOURCE_COLUMNS__…__CONFLUENCE_URL"
)


def _check_privileges(name: str, connection: Connection, source_tables: Iterable[Table]) -> Check:
    """Check whether the role can write, which Yarus never does, or is privileged on its server."""
    privileges = "INSERT, UPDATE, DELETE, TRUNCATE"
    quote_table = connection.dialect.identifier_preparer.format_table
    writable = [
        table.name
        for table in source_tables
        if connection.scalar(select(func.has_table_privilege(quote_table(table), privileges)))
    ]
    if (role := find_privileged_role(connection)) is not None:
        way_out = Words(
            "views and code of others are refused to it; a role that may only SELECT is safer: docs/operators.md"
        )
        return Check(Words("{name}: rights", name=name), Words("the role is {role}", role=role), way_out)
    if writable:
        way_out = Words("every transaction is read-only anyway; a role that may only SELECT is safer")
        return Check(
            Words("{name}: rights", name=name), Words("the role may write to {able}", able=", ".join(writable)), way_out
        )
    return Check(Words("{name}: rights", name=name), Words("the role may only read"))


def _check_text_search(name: str, language: str) -> Check:
    """Check whether our database, where texts are indexed, supports the source's language."""
    topic, configuration = Words("{name}: text search", name=name), TEXT_SEARCH_CONFIGURATIONS.get(language)
    with database().connect() as connection:
        configurations = set(connection.scalars(text("SELECT cfgname FROM pg_ts_config")))
    if configuration not in configurations:
        way_out = Words(
            "load it with a language of these: {configurations}; or use another retriever",
            configurations=", ".join(sorted(TEXT_SEARCH_CONFIGURATIONS)),
        )
        finding = Words("no configuration for language {language!r} in our database", language=language)
        return Check(topic, finding, way_out, exit_code=2)
    return Check(topic, Words("configuration {configuration}", configuration=configuration))


def _column_names(connection: Connection, table: Table) -> set[str]:
    return {column["name"] for column in inspect(connection).get_columns(table.name, schema=table.schema)}

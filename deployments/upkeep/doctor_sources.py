"""What is in a source, looked at before anything rests on it. Large tables are counted where they are, in SQL."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import numpy as np
from sqlalchemy import Connection, Table, Text, cast, func, inspect, select, text

from yarus.db import tables
from yarus.db.errors import InputError
from yarus.db.privileged import privilege
from yarus.db.source_rows import Corpus, has_annotations, label_columns
from yarus.db.sources import Source, snapshot
from yarus.db.stores.fulltext import CONFIGURATIONS
from yarus.db.urls import canonical_url
from yarus.db.words import Words, joined
from yarus.tasks.cases.labels import graded
from yarus.tasks.config.connections import database
from yarus.tasks.config.settings import settings
from yarus.tasks.models.embedding.cache import PROBED, check_stored
from yarus.tasks.models.embedding.embedders import Embedder, embedders


class Check(NamedTuple):
    """One thing that was checked."""

    what: str
    found: str
    way_out: str = ""
    """What to do; it may be worth doing where nothing is broken, too."""
    code: int = 0
    """0 fine, 2 a setting to mend, 3 something outside to mend."""


ANNOTATE = Words("annotate some questions: yarus dataset")
EXAMPLES = 3


class Urls(NamedTuple):
    """The addresses in one table, each with the number of its rows; NULL left out."""

    rows: Counter[str]

    @property
    def pages(self) -> Counter[str]:
        """The pages that they name, with the number of rows."""
        pages: Counter[str] = Counter()
        for url, count in self.rows.items():
            if (page := canonical_url(url)) is not None:
                pages[page] += count
        return pages


def examine_source(source: Source) -> Iterator[Check]:
    """Looks at the rows, vectors, addresses and labels of one source.

    Raises:
        InputError: a table or column is missing, or a label cannot be read.
        DatabaseUnavailable: it cannot be reached, or refuses us.
    """
    name = Words("source {name}", name=source.name)
    with snapshot(source) as connection:
        question, chunk = source.tables["question_answer"], source.tables["chunk"]
        annotated = has_annotations(connection, source)
        yield _rows(name, connection, source, annotated)
        yield from _gaps(name, connection, question, ("answer", "confluence_url", "score", "user_id", "embedding"))
        yield from _gaps(name, connection, chunk, ("confluence_url", "text", "embedding"))
        questions, chunks = embedders(settings().embedder, settings())
        yield from _vectors(name, connection, chunk, chunk.c.text, chunks)
        yield from _vectors(name, connection, question, question.c.question, questions)
        log, corpus = (_urls(connection, table) for table in (question, chunk))
        yield from _addresses(name, log, corpus)
        yield from _labels(name, connection, source, annotated, log, corpus)
        if source.kind == "production":
            yield _rights(name, connection, (question, chunk))
    yield _text_search(name, source.language)


def _rows(name: str, connection: Connection, source: Source, annotated: bool) -> Check:
    names = (*tables.REQUIRED, *([tables.ANNOTATION] if annotated else []))
    counts = [connection.scalar(select(func.count()).select_from(source.tables[table])) or 0 for table in names]
    words = (Words("{n:,} questions", n=counts[0]), Words("{n:,} chunks", n=counts[1]))
    found = joined((*words, *(Words("{n:,} annotations", n=n) for n in counts[2:])), ", ")
    if not any(counts[:2]) or (counts[1] and not counts[0]):
        return Check(name, found, Words("fill it: yarus load … --into {source}", source=source.name), code=2)
    if not counts[1] and settings().sut == "local":
        return Check(
            name,
            found,
            Words(
                "our own system has nothing to search: load the pages (yarus load table FILE --kind chunks --into "
                "{source}), or name the system that answers: YARUS_SUT",
                source=source.name,
            ),
            code=2,
        )
    return Check(name, found)


def _gaps(name: str, connection: Connection, table: Table, wanted: Iterable[str]) -> Iterator[Check]:
    """How often each column is NULL, of those that are there."""
    there = [column for column in wanted if table.c[column].name in _columns(connection, table)]
    counts = [func.count(table.c[column]) for column in there]
    total, *filled = connection.execute(select(func.count(), *counts).select_from(table)).one()
    if not total:
        return
    gaps = {column: 1 - count / total for column, count in zip(there, filled, strict=True)}
    found = ", ".join(f"{column} {gap:.1%}" for column, gap in gaps.items())
    empty = [column for column, gap in gaps.items() if gap == 1 and column in GAPS]
    yield Check(
        Words("{name}: NULL in {table}", name=name, table=table.name),
        found,
        joined(GAPS[column] for column in empty),
    )


GAPS = {
    "answer": Words("without answers tiers 2 and 3 need annotated references: {annotate}", annotate=ANNOTATE),
    "confluence_url": Words("without pages only annotated chunks can be scored: {annotate}", annotate=ANNOTATE),
    "score": Words("without scores real_users has no confirmed questions, and its headline is not measured"),
    "user_id": Words("without users no dialogs can be told apart, and every question counts as independent"),
}
"""What the lack of a whole column means."""


def _vectors(name: str, connection: Connection, table: Table, passage: Any, model: Embedder) -> Iterator[Check]:
    """Whether the stored vectors of a table are of one size, and of the embedder that is set."""
    if table.c.embedding.name not in _columns(connection, table):
        return
    vector, what = table.c.embedding, Words("{name}: vectors in {table}", name=name, table=table.name)
    size = func.vector_dims(vector)
    zero = func.count().filter(func.vector_norm(vector) == 0)
    counts = select(size, func.count(), zero).where(vector.is_not(None)).group_by(size).order_by(size)
    sizes = connection.execute(counts).all()
    if not sizes:
        return
    found = joined(
        (Words("{n:,} of {size} dimensions", n=count, size=dimensions) for dimensions, count, _ in sizes), ", "
    )
    if len(sizes) > 1:
        yield Check(what, found, Words("embed all of them anew with one model, or give --vectors computed"), code=2)
        return
    if zeros := sizes[0][2]:
        yield Check(
            what,
            Words("{n:,} of them are zero", n=zeros),
            Words("nothing is near to them: embed their texts anew"),
        )
    key = cast(table.c.id, Text)
    usable = vector.is_not(None) & passage.is_not(None) & (func.vector_norm(vector) > 0)
    rows = connection.execute(
        select(key, cast(passage, Text), vector).where(usable).order_by(func.md5(key)).limit(PROBED)
    ).all()
    vectors = [np.asarray(row[2], dtype=np.float32) for row in rows]
    matrix = np.stack(vectors) if vectors else None
    probe = Corpus([row[0] for row in rows], [None] * len(rows), [row[1] for row in rows], matrix)
    try:
        check_stored(probe, model, table.fullname)
    except InputError as error:
        yield Check(what, joined((found, error.args[0])), code=2)
    else:
        yield Check(what, Words("{found}; {n} embedded again are equal", found=found, n=len(rows)))


def _urls(connection: Connection, table: Table) -> Urls:
    url = cast(table.c.confluence_url, Text)
    counted = connection.execute(select(url, func.count()).where(url.is_not(None)).group_by(url))
    return Urls(Counter({row[0]: row[1] for row in counted}))


def _addresses(name: str, log: Urls, corpus: Urls) -> Iterator[Check]:
    """In which forms pages are named, before they get their canonical names."""
    forms: Counter[str] = Counter()
    for url, count in (log.rows + corpus.rows).items():
        forms.update(dict.fromkeys(url_forms(url), count))
    if not forms:
        return
    most_first = sorted(forms.items(), key=lambda item: (-item[1], item[0]))
    found = Words(
        "{n:,} addresses of {n_pages:,} pages: {forms}",
        n=len(log.rows.keys() | corpus.rows.keys()),
        n_pages=len(log.pages | corpus.pages),
        forms=joined((Words("{form} {n:,}", form=Words(form), n=count) for form, count in most_first), ", "),
    )
    yield Check(Words("{name}: addresses", name=name), found)


def url_forms(url: str) -> list[str]:
    """What is special about an address: how it names its page, and what the canonical URL leaves out."""
    canonical = canonical_url(url)
    if canonical is None:
        return [Words("empty or None")]
    parts = urlsplit(url.replace("&amp;", "&")) if "[" not in url else urlsplit("")
    names = {name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    kept = {name.lower() for name, _ in parse_qsl(canonical.partition("?")[2], keep_blank_values=True)}
    forms = {
        "pageId": "pageid" in names,
        "display": "/display/" in parts.path,
        "preview=": "preview" in names,
        "#fragment": bool(parts.fragment),
        "tracking": bool(names - kept - {"preview"}),
        "no http": parts.scheme.lower() not in {"http", "https"},
    }
    return [form for form, there in forms.items() if there] or ["plain"]


def _unread(name: str, connection: Connection, source: Source) -> Iterator[Check]:
    """Columns of the annotations that are not read: they may be labels under other names."""
    table = source.tables[tables.ANNOTATION]
    if source.kind == "production" and (names := sorted(_columns(connection, table) - {one.name for one in table.c})):
        yield Check(
            Words("{name}: annotations", name=name),
            Words("columns that are not read: {names}", names=", ".join(names)),
            Words("map those that are labels: YARUS_SOURCE_COLUMNS__ANNOTATION__GROUND_TRUTH_ANSWER=NAME"),
        )


def _labels(
    name: str, connection: Connection, source: Source, annotated: bool, log: Urls, corpus: Urls
) -> Iterator[Check]:
    """Labels that name chunks or pages which are not in the corpus; or none at all."""
    pages = log.pages
    annotation = source.tables[tables.ANNOTATION].c
    chunks: Counter[str] = Counter()
    if annotated:
        yield from _unread(name, connection, source)
        there = {"relevant_chunk_ids", "relevant_urls"}.intersection(label_columns(connection, source))
        columns = [annotation[column] for column in ("question_id", *sorted(there))]
        for row in connection.execute(select(*columns)):
            label = row._asdict()
            chunks.update(graded(label, "relevant_chunk_ids").keys())
            pages.update(page for url in graded(label, "relevant_urls") if (page := canonical_url(url)) is not None)
    if not chunks and not pages:
        yield Check(
            Words("{name}: labels", name=name),
            Words("none"),
            Words("no ranking can be scored: {annotate}", annotate=ANNOTATE),
        )
        return
    known = set(connection.scalars(select(cast(source.tables["chunk"].c.id, Text)))) if chunks else set()
    stale = [
        (Words("chunks"), chunks, chunks.keys() - known),
        (Words("pages"), pages, pages.keys() - corpus.pages.keys()),
    ]
    for what, labels, gone in stale:
        if gone:
            examples = ", ".join(sorted(gone)[:EXAMPLES]) + (" …" if len(gone) > EXAMPLES else "")
            count = sum(labels[missing] for missing in gone)
            found = Words(
                "{n:,} labels name {n_gone:,} {what} that are not in the corpus: {examples}",
                n=count,
                n_gone=len(gone),
                what=what,
                examples=examples,
            )
            yield Check(
                Words("{name}: labels", name=name),
                found,
                joined((STALE, *([TITLES] if any("/display/" in page for page in gone) else []))),
            )
    if not any(gone for _, _, gone in stale):
        yield Check(
            Words("{name}: labels", name=name),
            Words("all {n:,} name what is in the corpus", n=sum(chunks.values()) + sum(pages.values())),
        )


STALE = Words("they are left out and counted as stale: load the corpus that they were made on, or label anew")
TITLES = Words(
    "a page named by its title (/display/) in one table and by its pageId in the other is two pages: map both to a "
    "column or view with one form: YARUS_SOURCE_COLUMNS__…__CONFLUENCE_URL"
)


def _rights(name: str, connection: Connection, there: Iterable[Table]) -> Check:
    """Whether the role could write, which Yarus never does, or rules its server."""
    wanted = "INSERT, UPDATE, DELETE, TRUNCATE"
    quoted = connection.dialect.identifier_preparer.format_table
    able = [table.name for table in there if connection.scalar(select(func.has_table_privilege(quoted(table), wanted)))]
    if (role := privilege(connection)) is not None:
        way_out = Words(
            "views and code of others are refused to it; a role that may only SELECT is safer: docs/operators.md"
        )
        return Check(Words("{name}: rights", name=name), Words("the role is {role}", role=role), way_out)
    if able:
        way_out = Words("every transaction is read-only anyway; a role that may only SELECT is safer")
        return Check(
            Words("{name}: rights", name=name), Words("the role may write to {able}", able=", ".join(able)), way_out
        )
    return Check(Words("{name}: rights", name=name), Words("the role may only read"))


def _text_search(name: str, language: str) -> Check:
    """Whether our own database, where texts are indexed, knows the words of the source's language."""
    what, configuration = Words("{name}: text search", name=name), CONFIGURATIONS.get(language)
    with database().connect() as connection:
        known = set(connection.scalars(text("SELECT cfgname FROM pg_ts_config")))
    if configuration not in known:
        way_out = Words(
            "load it with a language of these: {configurations}; or use another retriever",
            configurations=", ".join(sorted(CONFIGURATIONS)),
        )
        found = Words("no configuration for language {language!r} in our database", language=language)
        return Check(what, found, way_out, code=2)
    return Check(what, Words("configuration {configuration}", configuration=configuration))


def _columns(connection: Connection, table: Table) -> set[str]:
    return {column["name"] for column in inspect(connection).get_columns(table.name, schema=table.schema)}

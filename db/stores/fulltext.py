"""Search a corpus by PostgreSQL's text search, in Yarus's own database: production sources stay read-only."""

from collections.abc import Sequence

from sqlalchemy import Engine, func, select, text

from yarus.db.engine import driver_connection
from yarus.db.stores.vectors import corpus_name, is_indexed
from yarus.db.tables import fulltext

TEXT_SEARCH_CONFIGURATIONS = {"ru": "russian", "en": "english"}

SEARCH_QUERY = text("""
    WITH question AS (
        SELECT replace(words::text, ' & ', ' | ')::tsquery AS words
        FROM plainto_tsquery(CAST(:configuration AS regconfig), :question) AS words
    )
    SELECT position, ts_rank(vector, words, 1) AS rank
    FROM yarus.fulltext, question
    WHERE corpus = :corpus AND vector @@ words
    ORDER BY rank DESC, position
    LIMIT :k
""")


def index_corpus(engine: Engine, configuration: str, texts: Sequence[str]) -> str:
    """Index the texts for search, unless they are indexed already; return the corpus's name in the index.

    Args:
        engine: the engine of Yarus's own database.
        configuration: the language as PostgreSQL names it, for example `russian`.
        texts: n texts; results refer to them by position.
    """
    corpus = corpus_name(configuration, texts)
    with engine.begin() as connection:
        if is_indexed(connection, fulltext, corpus):
            return corpus
        connection.execute(text("CREATE TEMP TABLE passage (position integer, body text) ON COMMIT DROP"))
        with driver_connection(connection).cursor() as cursor, cursor.copy("COPY passage FROM STDIN") as copy:
            for position, passage in enumerate(texts):
                copy.write_row((position, passage))
        vector = func.to_tsvector(text("CAST(:configuration AS regconfig)"), text("body"))
        passages = select(text(":corpus"), text("position"), vector).select_from(text("passage"))
        statement = fulltext.insert().from_select(["corpus", "position", "vector"], passages)
        connection.execute(statement, {"corpus": corpus, "configuration": configuration})
    return corpus


def search_fulltext(engine: Engine, corpus: str, configuration: str, question: str, k: int) -> list[tuple[int, float]]:
    """Return the positions of the k best texts and their rank (`ts_rank`, larger is better), best first.

    The question's words are joined by OR. PostgreSQL's default is AND, with which long questions match nothing.
    """
    values = {"corpus": corpus, "configuration": configuration, "question": question, "k": k}
    with engine.connect() as connection:
        return [(row.position, row.rank) for row in connection.execute(SEARCH_QUERY, values)]

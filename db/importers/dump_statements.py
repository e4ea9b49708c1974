"""The statements of a dump that tell of tables and their rows, in the forms in which pg_dump writes them."""

from collections.abc import Iterator
from itertools import chain, islice

from yarus.db.errors import InputError
from yarus.db.importers.dump_text import Text, copied, literal, named
from yarus.db.words import Words

Name = tuple[str, str]
"""Schema and table."""
Rows = tuple[Name, tuple[str, ...], bytes]
"""The table, the columns that are given, and rows or a part of one, as COPY takes them."""

ENCODINGS = {
    "UTF8": "utf-8", "SQL_ASCII": "utf-8", "WIN1251": "cp1251", "KOI8R": "koi8-r", "WIN866": "cp866",
    "ISO_8859_5": "iso8859-5", "LATIN1": "latin-1", "WIN1252": "cp1252",
}  # fmt: skip
KINDS = {b"OR", b"REPLACE", b"UNLOGGED", b"FOREIGN", b"MATERIALIZED", b"RECURSIVE", b"TABLE", b"VIEW"}
NO_COLUMN = {b"CONSTRAINT", b"CHECK", b"PRIMARY", b"UNIQUE", b"FOREIGN", b"EXCLUDE", b"LIKE"}
AFTER_TYPE = {
    b"COLLATE", b"NOT", b"NULL", b"DEFAULT", b"GENERATED", b"CONSTRAINT", b"CHECK", b"STORAGE", b"COMPRESSION",
    b"OPTIONS", b"PRIMARY", b"UNIQUE", b"REFERENCES",
}  # fmt: skip
LONGEST_PART = 1_000  # tokens of its definition; what stands behind is passed over


class Dump:
    """What a dump says of its tables, while its rows are read."""

    def __init__(self, text: Text, wanted: set[Name]) -> None:
        """Takes the text, and the tables whose rows are asked for."""
        self._text, self._wanted = text, wanted
        self._encoding, self._schema = "utf-8", "public"
        self.tables: dict[Name, dict[str, str]] = {}
        """Of every table its columns, each with its type without length and schema."""
        self.computed: dict[Name, set[str]] = {}
        """The columns that the database computes."""
        self.others: dict[Name, str] = {}
        """What is no table with rows of its own: a view, for example."""
        self._parents: dict[Name, Name] = {}

    def rows(self) -> Iterator[Rows]:
        """Reads the dump to its end; rows of partitions are those of their table.

        Raises:
            InputError: the dump ends within something, or rows of a wanted table stand there in another form.
        """
        while token := self._text.token():
            if token == b"\\":
                self._text.skip_line()  # a command of psql
                continue
            begins_line = self._text.begins_line  # the body of a function in SQL is indented
            words = self._text.statement() if token != b";" else iter(())
            if begins_line:
                yield from self._statement(token.upper(), words)
            for _ in words:
                pass

    def _statement(self, verb: bytes, words: Iterator[bytes]) -> Iterator[Rows]:
        if verb == b"SET":
            self._set(words)
        elif verb == b"CREATE":
            self._create(words)
        elif verb == b"ALTER":
            self._alter(words)
        elif verb == b"COPY":
            yield from self._copy(words)
        elif verb == b"INSERT" and next(words, b"").upper() == b"INTO":
            yield from self._insert(words)

    def _set(self, words: Iterator[bytes]) -> None:
        setting, _, value = (*islice(words, 3), b"", b"", b"")[:3]
        if setting.lower() == b"search_path":  # pg_dump before version 11
            self._schema = self._named(value)
        elif setting.lower() == b"client_encoding":
            name = value.strip(b"'").decode("ascii", "replace").upper()
            if name not in ENCODINGS:
                raise self._text.unreadable(
                    Words("the encoding {name!r}, which is not read here (pg_dump --encoding=UTF8)", name=name)
                )
            self._encoding = ENCODINGS[name]

    def _create(self, words: Iterator[bytes]) -> None:
        kinds = []
        for word in words:
            kinds.append(word.upper())
            if kinds[-1] not in KINDS:
                return
            if kinds[-1] in (b"TABLE", b"VIEW"):
                break
        name, token = self._name(words)
        if kinds in ([b"TABLE"], [b"UNLOGGED", b"TABLE"]) and token == b"(":
            self._table(name, words)
        elif token.upper() == b"PARTITION":  # OF …, by pg_dump 10
            next(words, b"")
            self._parents[name], _ = self._name(words)
        else:
            self.others[name] = b" ".join(kinds).decode().lower()

    def _table(self, name: Name, words: Iterator[bytes]) -> None:
        if name in self.tables and name in self._wanted:
            raise self._text.unreadable(
                Words("a second table {name} (a dump of several databases?)", name=".".join(name))
            )
        parts = [part for part in _parts(words) if part and part[0].upper() not in NO_COLUMN]
        self.tables[name] = {self._named(part[0]): _type(part[1:]) for part in parts}
        self.computed[name] = {self._named(part[0]) for part in parts if _is_computed(part)}
        if next(words, b"").upper() == b"INHERITS" and next(words, b"") == b"(":
            for part in _parts(words):
                parent, _ = self._name(iter(part))
                self.others[name] = self.others[parent] = "table that shares rows with others by INHERITS"

    def _alter(self, words: Iterator[bytes]) -> None:
        """ALTER TABLE ONLY parent ATTACH PARTITION child …"""
        if next(words, b"").upper() != b"TABLE":
            return
        first = next(words, b"")
        parent, token = self._name(words if first.upper() == b"ONLY" else chain((first,), words))
        if token.upper() == b"ATTACH" and next(words, b"").upper() == b"PARTITION":
            child, _ = self._name(words)
            self._parents[child] = parent

    def _copy(self, words: Iterator[bytes]) -> Iterator[Rows]:
        """COPY name (columns) FROM stdin; and its data."""
        name, token = self._name(words)
        columns = None
        if token == b"(":
            columns, token = self._list(words), next(words, b"")
        way = [token.upper(), *(word.upper() for word in islice(words, 2))]
        if way[0] != b"FROM":
            return
        table = self._wanted_table(name)
        if way != [b"FROM", b"STDIN"]:
            if table is not None:
                raise self._text.unreadable(
                    Words("rows of {name} by another COPY than pg_dump writes", name=".".join(name))
                )
            return
        given = () if table is None else columns or tuple(self._known(name))
        for block in self._text.data():
            if table is not None:
                yield table, given, self._utf8(block)

    def _insert(self, words: Iterator[bytes]) -> Iterator[Rows]:
        """INSERT INTO name (columns) OVERRIDING … VALUE VALUES (…), (…);"""
        name, token = self._name(words)
        table = self._wanted_table(name)
        if table is None:
            return
        columns = None
        if token == b"(":
            columns, token = self._list(words), next(words, b"")
        if token.upper() == b"OVERRIDING":
            token = (*islice(words, 3), b"")[2]
        given = columns or tuple(self._known(name))
        stored = [number for number, column in enumerate(given) if column not in self.computed.get(name, ())]
        kept = tuple(given[number] for number in stored)
        while token.upper() == b"VALUES" or token == b",":
            values = self._values(words)
            if len(values) != len(given):
                raise self._text.unreadable(
                    Words(
                        "{n_values} values for {n_given} columns of {name}",
                        n_values=len(values),
                        n_given=len(given),
                        name=".".join(name),
                    )
                )
            yield table, kept, self._utf8(copied([values[number] for number in stored]))
            token = next(words, b"")
        if token.upper() not in (b"", b"ON"):  # CONFLICT DO NOTHING
            raise self._unknown_insert()

    def _values(self, words: Iterator[bytes]) -> list[bytes | None]:
        """The literals of one row: (1, 'a', NULL)"""
        values: list[bytes | None] = []
        token = next(words, b"")
        expected = b"("
        while token == expected:
            try:
                values.append(literal(next(words, b"")))
            except ValueError:
                raise self._unknown_insert() from None
            token, expected = next(words, b""), b","
        if token != b")":
            raise self._unknown_insert()
        return values

    def _unknown_insert(self) -> InputError:
        return self._text.unreadable(Words("an INSERT of something else than the literals that pg_dump writes"))

    def _name(self, words: Iterator[bytes]) -> tuple[Name, bytes]:
        """A table's name, with its schema or without, and the token behind it."""
        first, token = next(words, b""), next(words, b"")
        if token != b".":
            return (self._schema, self._named(first)), token
        return (self._named(first), self._named(next(words, b""))), next(words, b"")

    def _named(self, token: bytes) -> str:
        return named(token, self._encoding)

    def _list(self, words: Iterator[bytes]) -> tuple[str, ...]:
        """Names of columns up to the closing parenthesis."""
        return tuple(self._named(part[0]) for part in _parts(words) if part)

    def _wanted_table(self, name: Name) -> Name | None:
        """The wanted table that a row of a table belongs to.

        Raises:
            InputError: the dump has rows of a wanted table that it has not described.
        """
        seen = set[Name]()
        while name not in self._wanted and name in self._parents and name not in seen:
            seen.add(name)
            name = self._parents[name]
        if name not in self._wanted:
            return None
        if name not in self.tables:
            raise self._text.unreadable(
                Words("rows of {name} without its CREATE TABLE (made with --data-only?)", name=".".join(name))
            )
        return name

    def _known(self, name: Name) -> list[str]:
        if name not in self.tables:
            raise self._text.unreadable(Words("rows of {name}, whose columns are not named", name=".".join(name)))
        return list(self.tables[name])

    def _utf8(self, block: bytes) -> bytes:
        if self._encoding == "utf-8":
            return block
        try:
            return block.decode(self._encoding).encode()  # of one byte a character: a block may end anywhere
        except UnicodeDecodeError as error:
            raise self._text.unreadable(
                Words("a text that is not {encoding} ({reason})", encoding=self._encoding, reason=error.reason)
            ) from None


def _parts(words: Iterator[bytes]) -> Iterator[list[bytes]]:
    """What stands between the commas up to the closing parenthesis; the opening one has been read."""
    depth, part = 0, list[bytes]()
    for token in words:
        depth += (token == b"(") - (token == b")")
        if depth < 0:
            break
        if token == b"," and depth == 0:
            yield part
            part = []
        elif len(part) < LONGEST_PART:
            part.append(token)
    yield part


def _type(tokens: list[bytes]) -> str:
    """A type as PostgreSQL names it, without schema, length and what follows: character varying, text[]."""
    kind: list[bytes] = []
    depth = 0
    for token in tokens:
        depth += (token == b"(") - (token == b")")
        if token == b"." and kind:
            kind.pop()
        elif depth == 0 and token.upper() in AFTER_TYPE:
            break
        elif depth == 0 and token != b")":
            kind.append(token)
    return b" ".join(kind).decode(errors="replace").replace(" [ ]", "[]")


def _is_computed(part: list[bytes]) -> bool:
    words = b" ".join(part).upper()
    return b" GENERATED ALWAYS AS ( " in words

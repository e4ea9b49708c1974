"""Parse the statements of a dump that define tables and their rows, in the forms that pg_dump writes."""

from collections.abc import Iterator
from itertools import chain, islice

from yarus.db.errors import InputError
from yarus.db.importers.dump_text import DumpTokenizer, format_copy_row, parse_identifier, parse_literal
from yarus.db.messages import Words

TableName = tuple[str, str]
"""Schema and table."""
TableRows = tuple[TableName, tuple[str, ...], bytes]
"""A table, its columns, and rows or a part of one in the format of COPY."""

ENCODINGS = {
    "UTF8": "utf-8", "SQL_ASCII": "utf-8", "WIN1251": "cp1251", "KOI8R": "koi8-r", "WIN866": "cp866",
    "ISO_8859_5": "iso8859-5", "LATIN1": "latin-1", "WIN1252": "cp1252",
}  # fmt: skip
OBJECT_KINDS = {b"OR", b"REPLACE", b"UNLOGGED", b"FOREIGN", b"MATERIALIZED", b"RECURSIVE", b"TABLE", b"VIEW"}
NON_COLUMN_WORDS = {b"CONSTRAINT", b"CHECK", b"PRIMARY", b"UNIQUE", b"FOREIGN", b"EXCLUDE", b"LIKE"}
TYPE_END_WORDS = {
    b"COLLATE", b"NOT", b"NULL", b"DEFAULT", b"GENERATED", b"CONSTRAINT", b"CHECK", b"STORAGE", b"COMPRESSION",
    b"OPTIONS", b"PRIMARY", b"UNIQUE", b"REFERENCES",
}  # fmt: skip
MAX_PART_TOKENS = 1_000  # tokens of a column's definition; later ones are skipped


class DumpParser:
    """The tables of a dump, and an iterator over their rows."""

    def __init__(self, text: DumpTokenizer, wanted_tables: set[TableName]) -> None:
        """Take the text, and the tables whose rows are wanted."""
        self._text, self._wanted_tables = text, wanted_tables
        self._encoding, self._schema = "utf-8", "public"
        self.tables: dict[TableName, dict[str, str]] = {}
        """Table -> column -> its type without length and schema."""
        self.computed: dict[TableName, set[str]] = {}
        """Table -> columns that the database computes."""
        self.other_objects: dict[TableName, str] = {}
        """Objects without rows of their own, such as views -> their kind."""
        self._parents: dict[TableName, TableName] = {}

    def rows(self) -> Iterator[TableRows]:
        """Read the dump to its end, and yield its rows; rows of partitions belong to their table.

        Raises:
            InputError: the dump is truncated, or rows of a wanted table have an unsupported form.
        """
        while token := self._text.next_token():
            if token == b"\\":
                self._text.skip_line()  # a command of psql
                continue
            begins_line = self._text.begins_line  # the body of a function in SQL is indented
            words = self._text.iter_statement() if token != b";" else iter(())
            if begins_line:
                yield from self._parse_statement(token.upper(), words)
            for _ in words:
                pass

    def _parse_statement(self, verb: bytes, words: Iterator[bytes]) -> Iterator[TableRows]:
        if verb == b"SET":
            self._parse_set(words)
        elif verb == b"CREATE":
            self._parse_create(words)
        elif verb == b"ALTER":
            self._parse_alter(words)
        elif verb == b"COPY":
            yield from self._parse_copy(words)
        elif verb == b"INSERT" and next(words, b"").upper() == b"INTO":
            yield from self._parse_insert(words)

    def _parse_set(self, words: Iterator[bytes]) -> None:
        setting, _, value = (*islice(words, 3), b"", b"", b"")[:3]
        if setting.lower() == b"search_path":  # pg_dump before version 11
            self._schema = self._parse_identifier(value)
        elif setting.lower() == b"client_encoding":
            name = value.strip(b"'").decode("ascii", "replace").upper()
            if name not in ENCODINGS:
                raise self._text.build_error(
                    Words("the encoding {name!r}, which is not read here (pg_dump --encoding=UTF8)", name=name)
                )
            self._encoding = ENCODINGS[name]

    def _parse_create(self, words: Iterator[bytes]) -> None:
        kinds = []
        for word in words:
            kinds.append(word.upper())
            if kinds[-1] not in OBJECT_KINDS:
                return
            if kinds[-1] in (b"TABLE", b"VIEW"):
                break
        name, token = self._parse_table_name(words)
        if kinds in ([b"TABLE"], [b"UNLOGGED", b"TABLE"]) and token == b"(":
            self._parse_table(name, words)
        elif token.upper() == b"PARTITION":  # OF …, by pg_dump 10
            next(words, b"")
            self._parents[name], _ = self._parse_table_name(words)
        else:
            self.other_objects[name] = b" ".join(kinds).decode().lower()

    def _parse_table(self, name: TableName, words: Iterator[bytes]) -> None:
        if name in self.tables and name in self._wanted_tables:
            raise self._text.build_error(
                Words("a second table {name} (a dump of several databases?)", name=".".join(name))
            )
        parts = [part for part in _split_parts(words) if part and part[0].upper() not in NON_COLUMN_WORDS]
        self.tables[name] = {self._parse_identifier(part[0]): _parse_type(part[1:]) for part in parts}
        self.computed[name] = {self._parse_identifier(part[0]) for part in parts if _is_computed(part)}
        if next(words, b"").upper() == b"INHERITS" and next(words, b"") == b"(":
            for part in _split_parts(words):
                parent, _ = self._parse_table_name(iter(part))
                self.other_objects[name] = self.other_objects[parent] = "table that shares rows with others by INHERITS"

    def _parse_alter(self, words: Iterator[bytes]) -> None:
        """Parse ALTER TABLE ONLY parent ATTACH PARTITION child …"""
        if next(words, b"").upper() != b"TABLE":
            return
        first = next(words, b"")
        parent, token = self._parse_table_name(words if first.upper() == b"ONLY" else chain((first,), words))
        if token.upper() == b"ATTACH" and next(words, b"").upper() == b"PARTITION":
            child, _ = self._parse_table_name(words)
            self._parents[child] = parent

    def _parse_copy(self, words: Iterator[bytes]) -> Iterator[TableRows]:
        """Parse COPY name (columns) FROM stdin; and its data."""
        name, token = self._parse_table_name(words)
        columns = None
        if token == b"(":
            columns, token = self._parse_column_names(words), next(words, b"")
        direction = [token.upper(), *(word.upper() for word in islice(words, 2))]
        if direction[0] != b"FROM":
            return
        table = self._wanted_table(name)
        if direction != [b"FROM", b"STDIN"]:
            if table is not None:
                raise self._text.build_error(
                    Words("rows of {name} by another COPY than pg_dump writes", name=".".join(name))
                )
            return
        copied_columns = () if table is None else columns or tuple(self._column_names(name))
        for block in self._text.iter_data():
            if table is not None:
                yield table, copied_columns, self._to_utf8(block)

    def _parse_insert(self, words: Iterator[bytes]) -> Iterator[TableRows]:
        """Parse INSERT INTO name (columns) OVERRIDING … VALUE VALUES (…), (…);"""
        name, token = self._parse_table_name(words)
        table = self._wanted_table(name)
        if table is None:
            return
        columns = None
        if token == b"(":
            columns, token = self._parse_column_names(words), next(words, b"")
        if token.upper() == b"OVERRIDING":
            token = (*islice(words, 3), b"")[2]
        inserted = columns or tuple(self._column_names(name))
        indices = [index for index, column in enumerate(inserted) if column not in self.computed.get(name, ())]
        stored_columns = tuple(inserted[index] for index in indices)
        while token.upper() == b"VALUES" or token == b",":
            values = self._parse_values(words)
            if len(values) != len(inserted):
                raise self._text.build_error(
                    Words(
                        "{n_values} values for {n_given} columns of {name}",
                        n_values=len(values),
                        n_given=len(inserted),
                        name=".".join(name),
                    )
                )
            yield table, stored_columns, self._to_utf8(format_copy_row([values[index] for index in indices]))
            token = next(words, b"")
        if token.upper() not in (b"", b"ON"):  # CONFLICT DO NOTHING
            raise self._unknown_insert()

    def _parse_values(self, words: Iterator[bytes]) -> list[bytes | None]:
        """Parse the literals of one row: (1, 'a', NULL)."""
        values: list[bytes | None] = []
        token = next(words, b"")
        expected = b"("
        while token == expected:
            try:
                values.append(parse_literal(next(words, b"")))
            except ValueError:
                raise self._unknown_insert() from None
            token, expected = next(words, b""), b","
        if token != b")":
            raise self._unknown_insert()
        return values

    def _unknown_insert(self) -> InputError:
        return self._text.build_error(Words("an INSERT of something else than the literals that pg_dump writes"))

    def _parse_table_name(self, words: Iterator[bytes]) -> tuple[TableName, bytes]:
        """Parse a table name, with or without its schema, and return it with the token after it."""
        first, token = next(words, b""), next(words, b"")
        if token != b".":
            return (self._schema, self._parse_identifier(first)), token
        return (self._parse_identifier(first), self._parse_identifier(next(words, b""))), next(words, b"")

    def _parse_identifier(self, token: bytes) -> str:
        return parse_identifier(token, self._encoding)

    def _parse_column_names(self, words: Iterator[bytes]) -> tuple[str, ...]:
        """Parse column names up to the closing parenthesis."""
        return tuple(self._parse_identifier(part[0]) for part in _split_parts(words) if part)

    def _wanted_table(self, name: TableName) -> TableName | None:
        """Return the wanted table that rows of a table belong to; None if they are not wanted.

        Raises:
            InputError: the dump has rows of a wanted table but not its definition.
        """
        seen = set[TableName]()
        while name not in self._wanted_tables and name in self._parents and name not in seen:
            seen.add(name)
            name = self._parents[name]
        if name not in self._wanted_tables:
            return None
        if name not in self.tables:
            raise self._text.build_error(
                Words("rows of {name} without its CREATE TABLE (made with --data-only?)", name=".".join(name))
            )
        return name

    def _column_names(self, name: TableName) -> list[str]:
        if name not in self.tables:
            raise self._text.build_error(Words("rows of {name}, whose columns are not named", name=".".join(name)))
        return list(self.tables[name])

    def _to_utf8(self, block: bytes) -> bytes:
        if self._encoding == "utf-8":
            return block
        try:
            return block.decode(self._encoding).encode()  # one byte per character: a block may end anywhere
        except UnicodeDecodeError as error:
            raise self._text.build_error(
                Words("a text that is not {encoding} ({reason})", encoding=self._encoding, reason=error.reason)
            ) from None


def _split_parts(words: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Yield the tokens between commas up to the closing parenthesis; the opening one is already read."""
    depth, part = 0, list[bytes]()
    for token in words:
        depth += (token == b"(") - (token == b")")
        if depth < 0:
            break
        if token == b"," and depth == 0:
            yield part
            part = []
        elif len(part) < MAX_PART_TOKENS:
            part.append(token)
    yield part


def _parse_type(tokens: list[bytes]) -> str:
    """Return a type as PostgreSQL names it, without schema, length and modifiers: character varying, text[]."""
    kind: list[bytes] = []
    depth = 0
    for token in tokens:
        depth += (token == b"(") - (token == b")")
        if token == b"." and kind:
            kind.pop()
        elif depth == 0 and token.upper() in TYPE_END_WORDS:
            break
        elif depth == 0 and token != b")":
            kind.append(token)
    return b" ".join(kind).decode(errors="replace").replace(" [ ]", "[]")


def _is_computed(part: list[bytes]) -> bool:
    words = b" ".join(part).upper()
    return b" GENERATED ALWAYS AS ( " in words

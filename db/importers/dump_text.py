"""Tokenize the text of a dump; nothing of it is ever passed to a server or to psql as a command.

The importer parses what pg_dump writes about tables and their rows, and skips everything else (views, functions,
triggers, psql commands). Memory holds one value or one block of rows at a time.
"""

import re
from collections.abc import Callable, Iterator

from yarus.db.errors import InputError
from yarus.db.messages import Words

BLOCK = 1 << 20
MAX_TOKEN_BYTES = 64 << 20  # bytes of one token: the longest literal of an INSERT
TOKEN = re.compile(
    rb"""
    (?:\s+|--[^\n]*+|/\*.*?\*/)                                       # white space and comments
  | (?P<token>
        '[^']*+(?:''[^']*+)*+'                                        # 'it''s'
      | [eE]'[^'\\]*+(?:(?:''|\\.)[^'\\]*+)*+'                        # E'a\\b'
      | [bBxX]'[^']*+'
      | "[^"]*+(?:""[^"]*+)*+"
      | (?P<dollar>\$(?:[A-Za-z_\x80-\xff][\w\x80-\xff]*+)?\$).*?(?P=dollar)  # $$the body of a function$$
      | \$\d++
      | [+-]?\.?\d[\d.]*+(?:[eE][+-]?\d++)?
      | (?![eEbBxX]')[A-Za-z_\x80-\xff][\w$\x80-\xff]*+
      | ::
      | (?!/\*)[^\s'"$]
    )""",
    re.DOTALL | re.VERBOSE,
)
DATA_END = re.compile(rb"(?<![^\n])\\\.\r?\n")  # the last line of the data after COPY
ESCAPES = {b"\\n": b"\n", b"\\t": b"\t", b"\\r": b"\r", b"\\b": b"\b", b"\\f": b"\f"}


class DumpTokenizer:
    """The text of a dump, from its beginning to its end."""

    def __init__(self, name: str, read_bytes: Callable[[int], bytes]) -> None:
        """Take the dump's name for messages, and a function that reads up to a number of bytes."""
        self._name, self._read_bytes = name, read_bytes
        self._buffer, self._position, self._n_dropped = b"\n", 1, 0
        self.begins_line = True
        """Whether the last token was the first of its line: every statement of pg_dump begins a line."""

    def next_token(self) -> bytes:
        """Return the next token; empty at the end.

        Raises:
            InputError: a literal or comment is longer than MAX_TOKEN_BYTES, or has no end.
        """
        self.begins_line = self._buffer[self._position - 1 : self._position] == b"\n"
        while True:
            match = TOKEN.match(self._buffer, self._position)
            # A token that ends with the buffer may continue.
            if match is None or match.end() == len(self._buffer):
                if self._read_more():
                    continue
                if match is None and self._position < len(self._buffer):
                    raise self.build_error(Words("a text that never ends"))
                if match is None:
                    return b""
            self._position = match.end()
            if (token := match["token"]) is not None:
                return token
            self.begins_line = self._buffer[self._position - 1 : self._position] == b"\n"

    def iter_statement(self) -> Iterator[bytes]:
        """Yield the tokens up to the semicolon that ends the statement."""
        while (token := self.next_token()) not in (b";", b""):
            yield token

    def skip_line(self) -> None:
        """Skip the rest of a line."""
        while (end := self._buffer.find(b"\n", self._position)) < 0:
            self._position = len(self._buffer)
            if not self._read_more():
                return
        self._position = end + 1

    def iter_data(self) -> Iterator[bytes]:
        r"""Yield the lines after COPY … FROM stdin up to `\.`, in pieces of any length.

        Raises:
            InputError: the dump ends before it.
        """
        self.skip_line()
        while (end := DATA_END.search(self._buffer, self._position)) is None:
            cut = max(self._position, len(self._buffer) - 4)  # the last bytes may begin the end mark
            if cut > self._position:
                yield self._buffer[self._position : cut]
            self._position = cut
            if not self._read_more():
                raise self.build_error(Words("the rows of a table without their last line, \\. (was it cut off?)"))
        if end.start() > self._position:
            yield self._buffer[self._position : end.start()]
        self._position = end.end()

    def build_error(self, problem: str) -> InputError:
        """Build the error for unreadable text at this position."""
        return InputError(
            "{name}: {what} at byte {byte:,}; nothing was loaded. Make the dump with pg_dump --format=custom, or "
            "restore it on a server of yours and load from its postgresql:// address",
            name=self._name,
            what=problem,
            byte=self._n_dropped + self._position - 1,
        )

    def _read_more(self) -> bool:
        """Read at least as many bytes as are left; the byte before them stays, to detect the beginning of a line."""
        n_left = len(self._buffer) - self._position
        if n_left > MAX_TOKEN_BYTES:
            raise self.build_error(Words("a text longer than {longest} MB", longest=MAX_TOKEN_BYTES >> 20))
        block = self._read_bytes(max(BLOCK, n_left))
        self._n_dropped += self._position - 1
        self._buffer, self._position = self._buffer[self._position - 1 :] + block, 1
        return bool(block)


def parse_identifier(token: bytes, encoding: str) -> str:
    """Return the identifier in a token; bytes that are not of the encoding are replaced."""
    if token.startswith(b'"'):
        return token[1:-1].replace(b'""', b'"').decode(encoding, "replace")
    return token.decode(encoding, "replace").lower()


def parse_literal(token: bytes) -> bytes | None:
    """Return the value of a literal in an INSERT; None for NULL and DEFAULT.

    Raises:
        ValueError: the token is not a literal.
    """
    if token.startswith(b"'"):
        return token[1:-1].replace(b"''", b"'")
    if token[:2] in (b"E'", b"e'"):
        return re.sub(rb"''|\\.", _unescape, token[2:-1], flags=re.DOTALL)
    if token[:2] in (b"B'", b"b'"):
        return token[2:-1]
    if token.upper() in (b"NULL", b"DEFAULT"):
        return None
    if token.lower() in (b"true", b"false") or re.fullmatch(rb"[+-]?[.\d].*", token):
        return token
    raise ValueError(token)


def _unescape(escape: re.Match[bytes]) -> bytes:
    sequence = escape[0]
    if re.fullmatch(rb"\\[0-7xuU]", sequence):
        raise ValueError(sequence)
    return ESCAPES.get(sequence, sequence[1:])


def format_copy_row(values: list[bytes | None]) -> bytes:
    """Return a row in the format of COPY: a line with tabs between the columns."""
    return b"\t".join(rb"\N" if value is None else _escape(value) for value in values) + b"\n"


def _escape(value: bytes) -> bytes:
    value = value.replace(b"\\", rb"\\").replace(b"\t", rb"\t")
    return value.replace(b"\n", rb"\n").replace(b"\r", rb"\r")

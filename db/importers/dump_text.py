"""The text of a dump, read token by token; nothing of it is ever given to a server or to psql as a command.

What pg_dump writes about tables and their rows is understood; everything else (views, functions, triggers, commands of
psql) is passed over. Memory holds one value or one block of rows at a time.
"""

import re
from collections.abc import Callable, Iterator

from yarus.db.errors import InputError
from yarus.db.words import Words

BLOCK = 1 << 20
LONGEST = 64 << 20  # bytes of one token: the longest literal of an INSERT
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
END = re.compile(rb"(?<![^\n])\\\.\r?\n")  # the last line of the data after COPY
ESCAPED = {b"\\n": b"\n", b"\\t": b"\t", b"\\r": b"\r", b"\\b": b"\b", b"\\f": b"\f"}


class Text:
    """The text of a dump, from its beginning to its end."""

    def __init__(self, name: str, read: Callable[[int], bytes]) -> None:
        """Takes the dump's name for messages, and a function that reads up to a number of bytes."""
        self._name, self._read = name, read
        self._buffer, self._at, self._before = b"\n", 1, 0
        self.begins_line = True
        """Whether the last token was the first of its line: pg_dump begins every statement so."""

    def token(self) -> bytes:
        """The next token; empty at the end.

        Raises:
            InputError: a literal or comment that is longer than LONGEST, or has no end.
        """
        self.begins_line = self._buffer[self._at - 1 : self._at] == b"\n"
        while True:
            found = TOKEN.match(self._buffer, self._at)
            # What ends with the buffer may go on behind it.
            if found is None or found.end() == len(self._buffer):
                if self._more():
                    continue
                if found is None and self._at < len(self._buffer):
                    raise self.unreadable(Words("a text that never ends"))
                if found is None:
                    return b""
            self._at = found.end()
            if (token := found["token"]) is not None:
                return token
            self.begins_line = self._buffer[self._at - 1 : self._at] == b"\n"

    def statement(self) -> Iterator[bytes]:
        """The tokens up to the next semicolon that parts statements."""
        while (token := self.token()) not in (b";", b""):
            yield token

    def skip_line(self) -> None:
        """Passes over what is left of a line."""
        while (end := self._buffer.find(b"\n", self._at)) < 0:
            self._at = len(self._buffer)
            if not self._more():
                return
        self._at = end + 1

    def data(self) -> Iterator[bytes]:
        r"""The lines after COPY … FROM stdin up to `\.`, in pieces of any length.

        Raises:
            InputError: the dump ends before.
        """
        self.skip_line()
        while (end := END.search(self._buffer, self._at)) is None:
            cut = max(self._at, len(self._buffer) - 4)  # the last bytes may be the beginning of the end
            if cut > self._at:
                yield self._buffer[self._at : cut]
            self._at = cut
            if not self._more():
                raise self.unreadable(Words("the rows of a table without their last line, \\. (was it cut off?)"))
        if end.start() > self._at:
            yield self._buffer[self._at : end.start()]
        self._at = end.end()

    def unreadable(self, what: str) -> InputError:
        """The error for something at this place that cannot be read."""
        return InputError(
            "{name}: {what} at byte {byte:,}; nothing was loaded. Make the dump with pg_dump --format=custom, or "
            "restore it on a server of yours and load from its postgresql:// address",
            name=self._name,
            what=what,
            byte=self._before + self._at - 1,
        )

    def _more(self) -> bool:
        """Reads on, as much again as is not used yet; the byte before that stays, for it says where a line begins."""
        left = len(self._buffer) - self._at
        if left > LONGEST:
            raise self.unreadable(Words("a text longer than {longest} MB", longest=LONGEST >> 20))
        more = self._read(max(BLOCK, left))
        self._before += self._at - 1
        self._buffer, self._at = self._buffer[self._at - 1 :] + more, 1
        return bool(more)


def named(token: bytes, encoding: str) -> str:
    """The identifier that a token is; bytes that are not of the encoding are replaced."""
    if token.startswith(b'"'):
        return token[1:-1].replace(b'""', b'"').decode(encoding, "replace")
    return token.decode(encoding, "replace").lower()


def literal(token: bytes) -> bytes | None:
    """The value of a literal in an INSERT; None for NULL and DEFAULT.

    Raises:
        ValueError: it is no literal.
    """
    if token.startswith(b"'"):
        return token[1:-1].replace(b"''", b"'")
    if token[:2] in (b"E'", b"e'"):
        return re.sub(rb"''|\\.", _unescaped, token[2:-1], flags=re.DOTALL)
    if token[:2] in (b"B'", b"b'"):
        return token[2:-1]
    if token.upper() in (b"NULL", b"DEFAULT"):
        return None
    if token.lower() in (b"true", b"false") or re.fullmatch(rb"[+-]?[.\d].*", token):
        return token
    raise ValueError(token)


def _unescaped(escape: re.Match[bytes]) -> bytes:
    found = escape[0]
    if re.fullmatch(rb"\\[0-7xuU]", found):
        raise ValueError(found)
    return ESCAPED.get(found, found[1:])


def copied(values: list[bytes | None]) -> bytes:
    """A row as COPY takes it: columns parted by tabs, a line each."""
    return b"\t".join(rb"\N" if value is None else _escaped(value) for value in values) + b"\n"


def _escaped(value: bytes) -> bytes:
    value = value.replace(b"\\", rb"\\").replace(b"\t", rb"\t")
    return value.replace(b"\n", rb"\n").replace(b"\r", rb"\r")

"""Parsing of server-sent events by the standard."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarus.tasks.systems.streams import Event, parse_events


def parse_data(body: bytes) -> list[str]:
    return [event.data for event in parse_events(body)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"data: a\n\ndata: b\n\n", ["a", "b"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]),
        (b"data: a\r\rdata: b\r\r", ["a", "b"]),
        (b"data: a\r\n\ndata: b\n\r\n", ["a", "b"]),
        (b"\xef\xbb\xbfdata: a\n\n", ["a"]),
        (b": keep-alive\n\ndata: a\n: ping\n\n:\n\n", ["a"]),
        (b"data: a\ndata: b\ndata\ndata:c\n\n", ["a\nb\n\nc"]),
        (b"id: 7\nretry: 10\nother: x\ndata: a\n\nid: 8\n\n", ["a"]),
        (b"data:  two blanks, one of them the text's\n\n", [" two blanks, one of them the text's"]),
        ("data: «ё» 🙂\u2028\x85\x0b\n\n".encode(), ["«ё» 🙂\u2028\x85\x0b"]),  # these do not end a line
        (b"\n\n\n", []),
        (b"", []),
        (b"data: a\n\ndata: not whole", ["a"]),
        (b"data: a\n\ndata: not whole\n", ["a"]),
    ],
)
def test_parse_events_splits_bodies(body: bytes, expected: list[str]) -> None:
    assert parse_data(body) == expected


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=6), st.data())
def test_parse_events_reads_any_written_texts(texts: list[str], draw: st.DataObject) -> None:
    """The texts have any lines and line ends, with comments and ids in between."""
    body, written = b"", []
    for text in texts:
        lines = re.split("\r\n|\r|\n", text)
        end = draw.draw(st.sampled_from([b"\n", b"\r\n", b"\r"]))
        separator = draw.draw(st.sampled_from([b"", b": ping" + end, b"id: 1" + end]))
        body += separator + b"".join(b"data: " + line.encode() + end for line in lines) + end
        written.append("\n".join(lines))
    assert parse_data(body) == written


def test_parse_events_returns_names_and_sizes() -> None:
    body = b": x\nevent: token\ndata: a\n\nevent: end\n\ndata: b\n\n"
    assert list(parse_events(body)) == [Event("token", "a", 26), Event("end", "", 38), Event("", "b", len(body))]


def test_parse_events_rejects_invalid_utf8() -> None:
    with pytest.raises(UnicodeDecodeError):
        parse_data(b"data: \xff\xfe\n\n")

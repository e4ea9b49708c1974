"""Facts of hostile texts: no exceptions, right positions, linear time."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarus.metrics.facts import facts, unsupported

PIECES = [
    "12", "0", "1.5", "31.02", "24:00", "января", "May", "пн", "двадцать", "пять", "тысяч", "-", "–", " ", "\n", ",",
    ".", "(", ")", "+7", "8 927 123-45-67", "@", "a.ru", "https://", "%", "$", "руб.", "№", "каб.", "и", "по", "с",
    "до", "без", "половина", "третьего", "half", "past", "to", "point", "целых", "десятых", "ё", "е\u0308", "\u00ad",
    "\ud800", "\x00", "İ", "５", "½", "⁵", "XIX", "Х", "pm", "p.m.", "дня", "2O", "-", "²", "①", "⁻", "5к2", "**",
    "<b>", "&nbsp;", "минус", "10^", "e5", "👍", "٣", "'", "/", ":", "1" * 30,
]  # fmt: skip
REPEATED = [
    "1", "1 ", "1.", "1-", "1/", "1,", "1:", "12.01-", "двадцать ", "один ", "янв ", "пн, ", "5 и ", "+7 ", "(", "a.",
    "a@", "8(", "10^", "№ ", "$ ", "тысяч ", "1 тысяч ", "X", "е\u0308", "\u00ad", "aа", "минус ", "без 5 ",
    "половина ", "january 1, ", "[1] ", "1) ", "www.", "a1 я", "каб        ", "abcdefgh-1_", "одна целая ", "*",
    "<a ", "_a", "1/", "&nbsp;", "X ", "@a",
]  # fmt: skip
SOME = ("1", "a@", "половина ", "_a")
MORE = pytest.mark.slow("breadth: half a second a piece")


@given(st.lists(st.sampled_from(PIECES)).map("".join) | st.text())
def test_facts_positions_in_hostile_text(text: str) -> None:
    extracted = facts(text)
    assert all(text[fact.start : fact.end] == fact.text and fact.text for fact in extracted)
    assert [fact.start for fact in extracted] == sorted(fact.start for fact in extracted)
    assert all(fact.end <= next_fact.start for fact, next_fact in pairwise(extracted))


@given(st.lists(st.sampled_from(PIECES)).map(" ".join))
def test_text_supports_itself(text: str) -> None:
    assert unsupported([text], [text]) in ([None], [[]])


@pytest.mark.timeout(30)  # half a second where time is linear, minutes where it is not
@pytest.mark.parametrize("piece", [pytest.param(piece, marks=() if piece in SOME else MORE) for piece in REPEATED])
def test_facts_linear_time(piece: str) -> None:
    text = piece * (150_000 // len(piece))
    assert all(text[fact.start : fact.end] == fact.text for fact in facts(text))

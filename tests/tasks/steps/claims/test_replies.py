"""Replies about claims are parsed strictly, and unjudged claims never count as false."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarus.tasks.models.verdicts import MissingVerdict, Verdict
from yarus.tasks.steps.claims.claims import Claim, name_claims, parse_claims, parse_support

CLAIMS, SOURCES = ("aaaa", "bbbb"), ("reference", "passage_1")


def get_claims(*entries: Any, sentences: int = 2) -> Any:
    return parse_claims(json.dumps({"claims": list(entries)}, ensure_ascii=False), sentences)


def get_support(*entries: Any) -> Any:
    return parse_support(json.dumps({"verdicts": list(entries)}, ensure_ascii=False), CLAIMS, SOURCES)


def make_verdict(name: Any, *source_names: Any) -> dict[str, Any]:
    return {"id": name, "supported_by": list(source_names)}


def test_parse_claims_keeps_order() -> None:
    result = get_claims({"sentence": 1, "claim": " Приём\nв мае. "}, {"sentence": 2, "claim": "Сбор 500 рублей."})
    assert result.value == [Claim("Приём в мае.", 1), Claim("Сбор 500 рублей.", 2)]
    assert get_claims().value == []


def test_parse_claims_distinguishes_single_signs() -> None:
    assert len(get_claims(*({"sentence": 1, "claim": text} for text in ("-5 °C", "5 °C", "12.01", "12:01"))).value) == 4


def test_parse_support_accepts_digit_names_as_numbers() -> None:
    entry = {"verdicts": [{"id": 21, "supported_by": []}, {"id": True, "supported_by": []}]}
    assert parse_support(json.dumps(entry), ["0021"], SOURCES).value == {"0021": frozenset()}


def test_parse_claims_removes_repetitions() -> None:
    result = get_claims({"sentence": 1, "claim": "Приём в мае."}, {"sentence": 2, "claim": "приём в мае"})
    assert result.value == [Claim("Приём в мае.", 1)]


@pytest.mark.parametrize("sentence", [0, 3, -1, "1", None, True, 1.5])
def test_parse_claims_drops_invalid_sentence_numbers(sentence: Any) -> None:
    assert get_claims({"sentence": sentence, "claim": "Да."}).value == [Claim("Да.", None)]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"sentence": 1}, "claim 0 of 1 is None, not a text"),
        ({"sentence": 1, "claim": " "}, "claim 0 of 1 is ' ', not a text"),
        ({"sentence": 1, "claim": ["Да."]}, "not a text"),
        ("Да.", "'claims' is ['Да.'], not a list of objects"),
    ],
)
def test_parse_claims_fails_when_one_entry_is_unreadable(entry: Any, why: str) -> None:
    result = get_claims({"sentence": 1, "claim": "Нет."}, entry) if isinstance(entry, dict) else get_claims(entry)
    assert isinstance(result, MissingVerdict) and result.status == "parse_error"
    assert why.replace("0 of 1", "1 of 2") in result.reason


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"claims": {}}', '{"claims": null}', "Вот утверждения: 1. Да."])
def test_parse_claims_refuses_other_json(text: str) -> None:
    assert parse_claims(text, 1).status == "parse_error"


def test_parse_support_returns_sources_by_claim() -> None:
    result = get_support(make_verdict("aaaa", "reference", "passage_1"), make_verdict("bbbb"))
    assert result.value == {"aaaa": {"reference", "passage_1"}, "bbbb": frozenset()}


def test_parse_support_accepts_copied_tags() -> None:
    assert get_support(make_verdict("<AAAA-1f2e3d4c>", "[reference]", "passage_1-1f2e3d4c")).value == {
        "aaaa": {"reference", "passage_1"}
    }


@pytest.mark.parametrize(
    "entries",
    [
        [make_verdict("1")],  # renumbered
        [make_verdict("cccc")],  # invented
        [make_verdict("aaaa", "passage_0")],  # a source that nobody gave
        [make_verdict("aaaa", "reference"), make_verdict("aaaa")],  # twice, and not the same
        [{"id": "aaaa"}],
        [{"id": "aaaa", "supported_by": "reference"}],
        [{"id": "aaaa", "supported_by": [1]}],
        [{"id": None, "supported_by": []}],
        [],
    ],
)
def test_parse_support_skips_invalid_entries(entries: list[Any]) -> None:
    assert get_support(*entries).status == "parse_error"
    result = get_support(*entries, make_verdict("bbbb", "reference"))
    assert isinstance(result, Verdict) and result.value == {"bbbb": {"reference"}}


def test_parse_support_merges_equal_entries() -> None:
    assert get_support(make_verdict("aaaa", "reference"), make_verdict("aaaa", "reference")).value == {
        "aaaa": {"reference"}
    }


@given(st.lists(st.text(), max_size=30))
def test_names_are_unique_and_independent_of_other_claims(texts: list[str]) -> None:
    result = name_claims(texts)
    assert set(result.values()) == set(texts)
    assert all(name_claims([claim]).keys() <= {name[:4] for name in result} for claim in texts)


@pytest.mark.slow("simulation: hundreds of replies")
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    )
)
def test_parsers_survive_any_reply(reply: Any) -> None:
    for text in (json.dumps(reply), json.dumps({"claims": reply, "verdicts": reply}), json.dumps({"claims": [reply]})):
        assert parse_claims(text, 3).status in ("ok", "parse_error")
        assert parse_support(text, CLAIMS, SOURCES).status == "parse_error"

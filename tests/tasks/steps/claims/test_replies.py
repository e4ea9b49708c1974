"""Replies about claims: read strictly, and nothing is taken for false that was not judged."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarus.tasks.models.verdicts import NoVerdict, Verdict
from yarus.tasks.steps.claims.claims import Claim, names, read_claims, read_support

CLAIMS, SOURCES = ("aaaa", "bbbb"), ("reference", "passage_1")


def claims(*entries: Any, sentences: int = 2) -> Any:
    return read_claims(json.dumps({"claims": list(entries)}, ensure_ascii=False), sentences)


def support(*entries: Any) -> Any:
    return read_support(json.dumps({"verdicts": list(entries)}, ensure_ascii=False), CLAIMS, SOURCES)


def one(name: Any, *by: Any) -> dict[str, Any]:
    return {"id": name, "supported_by": list(by)}


def test_claims_in_their_order() -> None:
    found = claims({"sentence": 1, "claim": " Приём\nв мае. "}, {"sentence": 2, "claim": "Сбор 500 рублей."})
    assert found.value == [Claim("Приём в мае.", 1), Claim("Сбор 500 рублей.", 2)]
    assert claims().value == []


def test_claims_that_differ_in_a_sign_are_two() -> None:
    assert len(claims(*({"sentence": 1, "claim": said} for said in ("-5 °C", "5 °C", "12.01", "12:01"))).value) == 4


def test_a_name_of_digits_may_come_as_a_number() -> None:
    entry = {"verdicts": [{"id": 21, "supported_by": []}, {"id": True, "supported_by": []}]}
    assert read_support(json.dumps(entry), ["0021"], SOURCES).value == {"0021": frozenset()}


def test_a_claim_that_comes_back_twice_counts_once() -> None:
    found = claims({"sentence": 1, "claim": "Приём в мае."}, {"sentence": 2, "claim": "приём в мае"})
    assert found.value == [Claim("Приём в мае.", 1)]


@pytest.mark.parametrize("sentence", [0, 3, -1, "1", None, True, 1.5])
def test_a_sentence_that_is_not_there_is_none(sentence: Any) -> None:
    assert claims({"sentence": sentence, "claim": "Да."}).value == [Claim("Да.", None)]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"sentence": 1}, "claim 0 of 1 is None, not a text"),
        ({"sentence": 1, "claim": " "}, "claim 0 of 1 is ' ', not a text"),
        ({"sentence": 1, "claim": ["Да."]}, "not a text"),
        ("Да.", "'claims' is ['Да.'], not a list of objects"),
    ],
)
def test_one_entry_that_cannot_be_read_makes_the_whole_unreadable(entry: Any, why: str) -> None:
    found = claims({"sentence": 1, "claim": "Нет."}, entry) if isinstance(entry, dict) else claims(entry)
    assert isinstance(found, NoVerdict) and found.status == "parse_error"
    assert why.replace("0 of 1", "1 of 2") in found.reason


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"claims": {}}', '{"claims": null}', "Вот утверждения: 1. Да."])
def test_what_is_no_list_of_claims_is_unreadable(text: str) -> None:
    assert read_claims(text, 1).status == "parse_error"


def test_what_supports_each() -> None:
    found = support(one("aaaa", "reference", "passage_1"), one("bbbb"))
    assert found.value == {"aaaa": {"reference", "passage_1"}, "bbbb": frozenset()}


def test_names_are_read_as_tags_are_copied() -> None:
    assert support(one("<AAAA-1f2e3d4c>", "[reference]", "passage_1-1f2e3d4c")).value == {
        "aaaa": {"reference", "passage_1"}
    }


@pytest.mark.parametrize(
    "entries",
    [
        [one("1")],  # renumbered
        [one("cccc")],  # invented
        [one("aaaa", "passage_0")],  # a source that nobody gave
        [one("aaaa", "reference"), one("aaaa")],  # twice, and not the same
        [{"id": "aaaa"}],
        [{"id": "aaaa", "supported_by": "reference"}],
        [{"id": "aaaa", "supported_by": [1]}],
        [{"id": None, "supported_by": []}],
        [],
    ],
)
def test_what_says_nothing_of_a_claim_leaves_it_without_a_verdict(entries: list[Any]) -> None:
    assert support(*entries).status == "parse_error"
    found = support(*entries, one("bbbb", "reference"))
    assert isinstance(found, Verdict) and found.value == {"bbbb": {"reference"}}


def test_the_same_twice_is_one_verdict() -> None:
    assert support(one("aaaa", "reference"), one("aaaa", "reference")).value == {"aaaa": {"reference"}}


@given(st.lists(st.text(), max_size=30))
def test_names_tell_claims_apart_and_stay_whatever_stands_beside(said: list[str]) -> None:
    found = names(said)
    assert set(found.values()) == set(said)
    assert all(names([claim]).keys() <= {name[:4] for name in found} for claim in said)


@pytest.mark.slow("simulation: hundreds of replies")
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_no_reply_breaks_the_reader(reply: Any) -> None:
    for text in (json.dumps(reply), json.dumps({"claims": reply, "verdicts": reply}), json.dumps({"claims": [reply]})):
        assert read_claims(text, 3).status in ("ok", "parse_error")
        assert read_support(text, CLAIMS, SOURCES).status == "parse_error"

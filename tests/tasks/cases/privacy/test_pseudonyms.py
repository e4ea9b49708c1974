"""Pseudonyms in what people are shown: which setting decides, what stays, what a cut text lets through."""

import traceback
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.cases.privacy.masking import find
from yarus.tasks.cases.privacy.pseudonyms import cut, dialog, group, masked, without_personal_data
from yarus.tasks.cases.table import table
from yarus.tasks.comparison.compare import as_shown

PHONE = "+7 927 123-45-67"
KEY = b"key"


@pytest.mark.parametrize(
    ("setting", "masked"),
    [("", ["production"]), ("true", ["production", "mylog"]), ("false", [])],
)
def test_the_setting_decides_and_without_it_the_source(
    at_home: Path, monkeypatch: pytest.MonkeyPatch, setting: str, masked: list[str]
) -> None:
    monkeypatch.setenv("YARUS_MASK_SHOWN", setting)
    assert [source for source in ("production", "mylog") if PHONE not in pseudonyms.text(PHONE, source)] == masked
    assert pseudonyms.has_pseudonyms("mylog", unset=True) == (setting != "false")


def test_cases_keep_their_types_ids_addresses_and_numbers(at_home: Path) -> None:
    page = "https://c.example/viewpage.action?pageId=12345678"
    cases = table(
        case_id=["production:1234567890", "production:2", "production:3"],
        question=[f"звоните {PHONE}", None, "?"],
        answers=[[PHONE, "да"], [], None],
        judge_raw=[[{"metric": "relevance", "repeat": 0, "reply": f'{{"a": "{PHONE}"}}', "status": "ok"}], None, []],
        context=[f"{page} {PHONE}", "a\n\nb", None],
        group=["user 47110815", page, "dialog chat 47110815"],
        history=[[{"role": "user", "content": f"я {PHONE}"}, {"role": "assistant", "content": "да"}], None, []],
        dialog=["47110815@2026-11-20T10:00:00", "chat 47110815", None],
        page=[page] * 3,
        retrieved=[[page], None, ["1234567890"]],
        mrr=[1.0, None, 0.5],
    )  # fmt: skip
    seen = pseudonyms.cases(cases, "production")
    assert seen.schema == cases.schema
    rows = seen.to_pylist()
    assert PHONE not in str(rows) and "47110815" not in str(rows)
    for name in ("case_id", "page", "retrieved", "mrr"):
        assert seen[name].equals(cases[name]), name
    assert rows[0]["context"].startswith(f"{page} [телефон ")
    assert rows[1]["group"] == page and rows[1]["context"] == "a\n\nb"
    assert [rows[1]["answers"], rows[2]["answers"], rows[2]["judge_raw"]] == [[], None, []]
    assert pseudonyms.cases(cases, "sample") is cases


def test_facts_stand_where_they_stand_in_what_is_shown(at_home: Path) -> None:
    """A mask moves what comes after it, and the number of a pass alone looks like any other number."""
    answers = [f"Звоните {PHONE} до 12.05.2025, id 1234567, а потом 30.", "До 12.05.2025.", None]
    said = [[PHONE, "12.05.2025", "1234567", "30", "927"], ["12.05.2025"], None]
    facts = [
        places and [{"kind": "number", "text": one, "start": answer.index(one)} for one in places]
        for answer, places in zip(answers, said, strict=True)
    ]
    listed = [row and [one | {"end": one["start"] + len(one["text"])} for one in row] for row in facts]
    cases = table(case_id=["production:1", "production:2", "production:3"], answer=answers, unsupported_facts=listed)
    seen = pseudonyms.cases(cases, "production")
    assert seen.schema == cases.schema
    first, second, third = seen.to_pylist()
    assert (second["unsupported_facts"], third["unsupported_facts"]) == (listed[1], None)
    for fact in first["unsupported_facts"]:
        assert first["answer"][fact["start"] : fact["end"]] == fact["text"]
    phone, date, code, number, part = (fact["text"] for fact in first["unsupported_facts"])
    assert phone.startswith("[телефон ") and part == phone
    assert (date, number) == ("12.05.2025", "30")
    assert code.startswith("[") and "1234567" not in str(first) and PHONE not in str(first)
    alone = pseudonyms.cases(cases.select(["case_id", "unsupported_facts"]), "production").to_pylist()
    assert PHONE not in str(alone) and "1234567" not in str(alone)


def test_users_and_dialogs_stay_apart_and_together() -> None:
    users = {group(f"user {number}", KEY) for number in range(20_000)}
    assert len(users) == 20_000
    user = group("user 47110815", KEY).removeprefix("user ")
    assert dialog("47110815@2026-11-20T10:00:00", KEY) == f"{user}@2026-11-20T10:00:00"
    assert dialog("47110815", KEY) == user != dialog("47110815", b"another key")


@given(st.lists(st.sampled_from([PHONE, "id 1234567", "a@b.ru", "Иванов И. И.", "\n\n", "[номер 123456]", "и"])))
def test_what_is_masked_is_not_masked_again(parts: list[str]) -> None:
    once = masked(" ".join(parts), KEY, "ru")
    assert masked(once, KEY, "ru") == once


@given(st.integers(0, 60))
def test_no_cut_lets_half_a_number_through(most: int) -> None:
    text = f"звоните на {PHONE} или пишите на kto-to@example.ru"
    short = cut(text, most)
    assert text.startswith(short) and len(short) <= most
    assert all(found.text in text and (found.text in short) != (found.start >= len(short)) for found in find(text))


def test_a_person_is_no_topic() -> None:
    assert without_personal_data("Иванов Иван Иванович просит справку") == "  просит справку"
    assert without_personal_data("без имён") == "без имён"


def test_an_error_on_its_way_to_people_has_pseudonyms(at_home: Path) -> None:
    for source, there in (("production", False), ("sample", True)):
        with pytest.raises(ValueError, match="звоните") as problem, pseudonyms.errors(source):
            try:
                raise KeyError(PHONE)
            except KeyError as cause:
                raise ValueError(f"звоните {PHONE}") from cause
        assert (PHONE in "".join(traceback.format_exception(problem.value))) is there


def test_parts_of_documents_that_are_named_like_texts_are_texts(at_home: Path) -> None:
    found = {
        "evaluation_id": "tier1-20261120-030000-4d2f",
        "error": PHONE,
        "labels": {"ground_truth_answer": {"before": PHONE, "after": None}},
        "topics": [{"topic": 1, "examples": [PHONE], "pages": [{"page": "https://c/12345678", "n": 1}]}],
    }
    seen = pseudonyms.document(found, "production")
    assert PHONE not in str(seen)
    assert seen["evaluation_id"] == found["evaluation_id"] and seen["topics"][0]["pages"] == found["topics"][0]["pages"]
    assert pseudonyms.document(found, "sample") is found


def test_slices_of_a_comparison_are_named_by_no_user(at_home: Path) -> None:
    page = "https://c.example/viewpage.action?pageId=12345678"
    slices = {
        "group": {"user 47110815": {"n": 5}},
        "page": {page: {"n": 5}},
        "topic": {f"Иван Петров {PHONE}": {"n": 5}},
    }
    found = {"cases": {"broke": [{"case_id": "production:1", "question": PHONE}]}, "slices": slices}
    seen = as_shown(found, "production")
    assert "47110815" not in str(seen) and PHONE not in str(seen) and "Петров" not in str(seen)
    assert seen["slices"]["page"] == slices["page"] and list(map(len, seen["slices"].values())) == [1, 1, 1]
    assert seen["cases"]["broke"][0]["case_id"] == "production:1"
    assert as_shown(found, "sample") == found

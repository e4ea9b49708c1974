"""Pseudonyms in shown texts: the deciding setting, unchanged values, and cut texts."""

import traceback
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarus.tasks.cases.privacy import pseudonyms
from yarus.tasks.cases.privacy.masking import detect_pii
from yarus.tasks.cases.privacy.pseudonyms import (
    mask_dialog,
    mask_group,
    mask_paragraphs,
    remove_personal_data,
    truncate_text,
)
from yarus.tasks.cases.table import make_cases
from yarus.tasks.comparison.compare import pseudonymise_changes

PHONE = "+7 927 123-45-67"
KEY = b"key"


@pytest.mark.parametrize(
    ("setting", "masked"),
    [("", ["production"]), ("true", ["production", "mylog"]), ("false", [])],
)
def test_setting_or_source_decides_about_pseudonyms(
    at_home: Path, monkeypatch: pytest.MonkeyPatch, setting: str, masked: list[str]
) -> None:
    monkeypatch.setenv("YARUS_MASK_OUTPUT", setting)
    assert [name for name in ("production", "mylog") if PHONE not in pseudonyms.mask_message(PHONE, name)] == masked
    assert pseudonyms.should_mask("mylog", unset=True) == (setting != "false")


def test_cases_keep_types_ids_addresses_and_numbers(at_home: Path) -> None:
    page = "https://c.example/viewpage.action?pageId=12345678"
    cases = make_cases(
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
    masked = pseudonyms.mask_cases(cases, "production")
    assert masked.schema == cases.schema
    rows = masked.to_pylist()
    assert PHONE not in str(rows) and "47110815" not in str(rows)
    for name in ("case_id", "page", "retrieved", "mrr"):
        assert masked[name].equals(cases[name]), name
    assert rows[0]["context"].startswith(f"{page} [телефон ")
    assert rows[1]["group"] == page and rows[1]["context"] == "a\n\nb"
    assert [rows[1]["answers"], rows[2]["answers"], rows[2]["judge_raw"]] == [[], None, []]
    assert pseudonyms.mask_cases(cases, "sample") is cases


def test_cases_move_facts_to_their_masked_positions(at_home: Path) -> None:
    """A pseudonym shifts later text, and a pass number alone looks like any number."""
    answers = [f"Звоните {PHONE} до 12.05.2025, id 1234567, а потом 30.", "До 12.05.2025.", None]
    fact_texts = [[PHONE, "12.05.2025", "1234567", "30", "927"], ["12.05.2025"], None]
    facts = [
        texts and [{"kind": "number", "text": fact, "start": answer.index(fact)} for fact in texts]
        for answer, texts in zip(answers, fact_texts, strict=True)
    ]
    located = [items and [fact | {"end": fact["start"] + len(fact["text"])} for fact in items] for items in facts]
    cases = make_cases(
        case_id=["production:1", "production:2", "production:3"], answer=answers, unsupported_facts=located
    )
    masked = pseudonyms.mask_cases(cases, "production")
    assert masked.schema == cases.schema
    first, second, third = masked.to_pylist()
    assert (second["unsupported_facts"], third["unsupported_facts"]) == (located[1], None)
    for fact in first["unsupported_facts"]:
        assert first["answer"][fact["start"] : fact["end"]] == fact["text"]
    phone, date, code, number, part = (fact["text"] for fact in first["unsupported_facts"])
    assert phone.startswith("[телефон ") and part == phone
    assert (date, number) == ("12.05.2025", "30")
    assert code.startswith("[") and "1234567" not in str(first) and PHONE not in str(first)
    without_answers = pseudonyms.mask_cases(cases.select(["case_id", "unsupported_facts"]), "production").to_pylist()
    assert PHONE not in str(without_answers) and "1234567" not in str(without_answers)


def test_group_and_dialog_have_consistent_pseudonyms() -> None:
    users = {mask_group(f"user {number}", KEY) for number in range(20_000)}
    assert len(users) == 20_000
    user = mask_group("user 47110815", KEY).removeprefix("user ")
    assert mask_dialog("47110815@2026-11-20T10:00:00", KEY) == f"{user}@2026-11-20T10:00:00"
    assert mask_dialog("47110815", KEY) == user != mask_dialog("47110815", b"another key")


@given(st.lists(st.sampled_from([PHONE, "id 1234567", "a@b.ru", "Иванов И. И.", "\n\n", "[номер 123456]", "и"])))
def test_masked_twice_equals_masked_once(parts: list[str]) -> None:
    masked = mask_paragraphs(" ".join(parts), KEY, "ru")
    assert mask_paragraphs(masked, KEY, "ru") == masked


@given(st.integers(0, 60))
def test_truncate_text_never_splits_personal_data(limit: int) -> None:
    text = f"звоните на {PHONE} или пишите на kto-to@example.ru"
    short = truncate_text(text, limit)
    assert text.startswith(short) and len(short) <= limit
    assert all(item.text in text and (item.text in short) != (item.start >= len(short)) for item in detect_pii(text))


def test_remove_personal_data_removes_names() -> None:
    assert remove_personal_data("Иванов Иван Иванович просит справку") == "  просит справку"
    assert remove_personal_data("без имён") == "без имён"


def test_mask_errors_masks_raised_messages(at_home: Path) -> None:
    for source, is_shown in (("production", False), ("sample", True)):
        with pytest.raises(ValueError, match="звоните") as problem, pseudonyms.mask_errors(source):
            try:
                raise KeyError(PHONE)
            except KeyError as cause:
                raise ValueError(f"звоните {PHONE}") from cause
        assert (PHONE in "".join(traceback.format_exception(problem.value))) is is_shown


def test_mask_document_masks_keys_of_texts(at_home: Path) -> None:
    document = {
        "evaluation_id": "tier1-20261120-030000-4d2f",
        "error": PHONE,
        "labels": {"ground_truth_answer": {"before": PHONE, "after": None}},
        "topics": [{"topic": 1, "examples": [PHONE], "pages": [{"page": "https://c/12345678", "n": 1}]}],
    }
    masked = pseudonyms.mask_document(document, "production")
    assert PHONE not in str(masked)
    assert (
        masked["evaluation_id"] == document["evaluation_id"]
        and masked["topics"][0]["pages"] == document["topics"][0]["pages"]
    )
    assert pseudonyms.mask_document(document, "sample") is document


def test_comparison_slices_name_no_user(at_home: Path) -> None:
    page = "https://c.example/viewpage.action?pageId=12345678"
    slices = {
        "group": {"user 47110815": {"n": 5}},
        "page": {page: {"n": 5}},
        "topic": {f"Иван Петров {PHONE}": {"n": 5}},
    }
    comparison = {"cases": {"regressed_cases": [{"case_id": "production:1", "question": PHONE}]}, "slices": slices}
    masked = pseudonymise_changes(comparison, "production")
    assert "47110815" not in str(masked) and PHONE not in str(masked) and "Петров" not in str(masked)
    assert masked["slices"]["page"] == slices["page"] and list(map(len, masked["slices"].values())) == [1, 1, 1]
    assert masked["cases"]["regressed_cases"][0]["case_id"] == "production:1"
    assert pseudonymise_changes(comparison, "sample") == comparison

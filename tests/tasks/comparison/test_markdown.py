"""A comparison as Markdown: small enough for a comment, and nothing of the data is more than text in it."""

import copy
import re
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.tasks.comparison.conftest import N, Plant
from yarus.flows.terminal.differences.markdown import MOST, code, comparison_markdown, text
from yarus.tasks.comparison.compare import compare

NASTY = "@org/team | </td><img src=x onerror=alert(1)> ``` [l](javascript:x) #1 !2 \\| https://evil.example"
NASTY += "\n/close \x1b[2J\u202e"


@pytest.fixture
def found(engine: Engine, plant: Plant) -> Any:
    a, b = (
        plant(mrr=np.full(N, value), question=[NASTY] * N, sut_label=label)
        for value, label in ((1.0, NASTY), (0.0, "v2"))
    )
    return compare(engine, a, b)


@pytest.mark.parametrize("language", ["ru", "en"])
def test_the_verdict_comes_first_and_every_row_has_its_cells(found: Any, language: str) -> None:
    page = comparison_markdown(found, language)
    parts = page.split("\n\n")
    assert parts[0].startswith("## ")
    assert parts[1].startswith(
        {"ru": "- **Стало хуже: mrr 1.000 → 0.000", "en": "- **Worse: mrr 1.000 → 0.000"}[language]
    )
    assert parts[2].startswith({"ru": "- Изменили: версия системы", "en": "- Changed: the system"}[language])
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in rows} == {7, 3}
    assert any("`mrr` | 1.000 | 0.000 | −1.000 | −1.000 … " in line for line in rows)


def test_texts_of_the_data_are_only_text(found: Any) -> None:
    page = comparison_markdown(found, "ru")
    assert "\x1b" not in page and "\u202e" not in page
    bare = re.sub(r"`[^`\n]*`", "", page)  # what is code is neither markup nor a link, nor a mention
    ours = re.sub(r"</?(details|summary|br)( open)?>", "", bare)
    assert "<" not in ours
    assert not re.search(r"(?<!\w)@\w|(?<!\\)#\d|(?<!\\)\]\(|://\w", ours.replace("## ", "")), ours
    assert not any(line.startswith("/") for line in page.splitlines())


def test_it_fits_into_a_comment_whatever_is_compared(found: Any) -> None:
    many = copy.deepcopy(found)
    one = many["metrics"]["mrr"] | {"p_holm": None}
    many["metrics"] |= {f"rubric_{'x' * 150}_{i}": one for i in range(2_000)}
    entry = many["cases"]["broke"][0] | {"question": "я|" * 50_000}
    many["cases"]["broke"] = many["cases"]["fixed"] = [entry] * 5_000
    many["statements"] = [said | {"text": dict.fromkeys(("ru", "en"), "ы" * 90_000)} for said in many["statements"]]
    page = comparison_markdown(many, "ru")
    assert len(page) < MOST
    assert "`mrr`" in page


@pytest.mark.parametrize(
    ("given", "said"),
    [("a|b", "`a¦b`"), ("``x``", "`''x''`"), ("", "—"), ("a\nb", "`a b`"), ("\\", "`\\`"), ("1", "`1`")],
)
def test_code_ends_where_it_should(given: str, said: str) -> None:
    assert code(given) == said


def test_a_sentence_keeps_names_of_metrics_and_loses_mentions() -> None:
    assert text("hit_rate@1 up") == "hit\\_rate@1 up"
    assert text("by @me") == "by @\u200bme"
    assert text("<b>") == "&lt;b&gt;"

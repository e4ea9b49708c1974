"""Comparisons as Markdown: short enough for a comment, with all data escaped."""

import copy
import re
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.tasks.comparison.conftest import N, Plant
from yarus.flows.terminal.comparisons.markdown import (
    MAX_COMMENT,
    escape_sentence,
    format_code,
    format_comparison_markdown,
)
from yarus.tasks.comparison.compare import compare

NASTY = "@org/team | </td><img src=x onerror=alert(1)> ``` [l](javascript:x) #1 !2 \\| https://evil.example"
NASTY += "\n/close \x1b[2J\u202e"


@pytest.fixture
def comparison(engine: Engine, plant: Plant) -> Any:
    a, b = (
        plant(mrr=np.full(N, value), question=[NASTY] * N, sut_label=label)
        for value, label in ((1.0, NASTY), (0.0, "v2"))
    )
    return compare(engine, a, b)


@pytest.mark.parametrize("language", ["ru", "en"])
def test_markdown_starts_with_verdict_and_fills_rows(comparison: Any, language: str) -> None:
    page = format_comparison_markdown(comparison, language)
    parts = page.split("\n\n")
    assert parts[0].startswith("## ")
    assert parts[1].startswith(
        {"ru": "- **Стало хуже: mrr 1.000 → 0.000", "en": "- **Worse: mrr 1.000 → 0.000"}[language]
    )
    assert parts[2].startswith({"ru": "- Изменили: версия системы", "en": "- Changed: the system"}[language])
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in rows} == {7, 3}
    assert any("`mrr` | 1.000 | 0.000 | −1.000 | −1.000 … " in line for line in rows)


def test_markdown_escapes_texts_of_the_data(comparison: Any) -> None:
    page = format_comparison_markdown(comparison, "ru")
    assert "\x1b" not in page and "\u202e" not in page
    without_code = re.sub(r"`[^`\n]*`", "", page)  # code contains no markup, links or mentions
    without_tags = re.sub(r"</?(details|summary|br)( open)?>", "", without_code)
    assert "<" not in without_tags
    assert not re.search(r"(?<!\w)@\w|(?<!\\)#\d|(?<!\\)\]\(|://\w", without_tags.replace("## ", "")), without_tags
    assert not any(line.startswith("/") for line in page.splitlines())


def test_markdown_fits_into_a_comment(comparison: Any) -> None:
    large = copy.deepcopy(comparison)
    metric = large["metrics"]["mrr"] | {"p_holm": None}
    large["metrics"] |= {f"rubric_{'x' * 150}_{i}": metric for i in range(2_000)}
    entry = large["cases"]["regressed_cases"][0] | {"question": "я|" * 50_000}
    large["cases"]["regressed_cases"] = large["cases"]["improved_cases"] = [entry] * 5_000
    large["statements"] = [line | {"text": dict.fromkeys(("ru", "en"), "ы" * 90_000)} for line in large["statements"]]
    page = format_comparison_markdown(large, "ru")
    assert len(page) < MAX_COMMENT
    assert "`mrr`" in page


@pytest.mark.parametrize(
    ("value", "escaped"),
    [("a|b", "`a¦b`"), ("``x``", "`''x''`"), ("", "—"), ("a\nb", "`a b`"), ("\\", "`\\`"), ("1", "`1`")],
)
def test_code_escapes_backticks_and_line_breaks(value: str, escaped: str) -> None:
    assert format_code(value) == escaped


def test_text_escapes_mentions_but_keeps_metric_names() -> None:
    assert escape_sentence("hit_rate@1 up") == "hit\\_rate@1 up"
    assert escape_sentence("by @me") == "by @\u200bme"
    assert escape_sentence("<b>") == "&lt;b&gt;"

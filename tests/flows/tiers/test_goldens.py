"""Check what refactoring must not change: comparability keys, the keys of `--json` per tier, the report's outline.

A difference is either a bug or belongs in the changelog; then goldens.json gets the value that the failure shows.
"""

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import CommandLine, Document
from tests.support.evaluations import evaluate

GOLDENS: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("goldens.json").read_text(encoding="utf-8"))
VARIANTS: dict[str, dict[str, Any]] = {
    "tier0": {"texts": "questions", "distance": "euclidean"},
    "tier1": {"retriever": "fulltext", "unit": "page", "k": 20, "perturbation": "typos", "merge_duplicates": False},
    "tier2": {"claims": True, "repeats": 2, "context_perturbation": "distractors"},
    "tier3": {"retriever": "hybrid", "k": 5, "claims": True, "citations": True, "perturbation": "lower"},
    "real_users": {"retriever": "fulltext", "k": 20},
    "judge": {"repeats": 3, "bias_probes": False, "exam": 10},
    "judge_pipeline": {"repeats": 2},
    "ux": {"limit": 50},
}


def list_key_paths(value: object, path: str = "") -> Iterator[str]:
    """Yield the paths of all keys in a JSON document: `metrics.*.value`, `failures[].case_id`.

    `*` replaces keys that name data: those of an object whose values are objects of one form.
    """
    if isinstance(value, dict):
        parts = list(value.values())
        names_data = len(parts) > 1 and all(isinstance(part, dict) and part.keys() == parts[0].keys() for part in parts)
        for key, part in value.items():
            key_path = f"{path}.{'*' if names_data else key}".removeprefix(".")
            yield key_path
            yield from list_key_paths(part, key_path)
    elif isinstance(value, list):
        for part in value:
            yield from list_key_paths(part, f"{path}[]")


class Outline(HTMLParser):
    """Collect the sections and headings of a page, in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        name = dict(attrs).get("id")
        if tag == "section" or re.fullmatch("h[1-4]", tag):
            self.parts.append(f"{tag}#{name}" if name else tag)


@pytest.mark.parametrize("tier", VARIANTS)
def test_night_keeps_keys(night: dict[str, Document], tier: str) -> None:
    assert night[tier]["comparability_key"] == GOLDENS["comparability_keys"][tier]
    assert sorted({*list_key_paths(night[tier])}) == GOLDENS["json_keys"][tier]


@pytest.mark.parametrize("tier", VARIANTS)
def test_evaluation_with_options_keeps_its_comparability_key(at_home: Path, tier: str) -> None:
    summary = evaluate(tier, **({"source": "sample", "limit": 20} | VARIANTS[tier]))
    assert summary["comparability_key"] == GOLDENS["comparability_keys_with_options"][tier]


def test_report_keeps_its_outline(own_home: Path, tmp_path: Path) -> None:
    """Use a separate home: other tests' evaluations would be compared, and be part of the trends."""
    yarus = CommandLine(own_home)
    yarus("run", "nightly")
    yarus("report", "--out", str(tmp_path / "page.html"), "--language", "en")
    outline = Outline()
    outline.feed((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert outline.parts == GOLDENS["report_outline"]

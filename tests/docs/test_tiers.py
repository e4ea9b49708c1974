"""docs/tiers.md and docs/systems.md name settings, parameters, metrics, statuses and failures that there are."""

import re
from pathlib import Path
from typing import get_args

import pytest

from yarus.metrics.table import METRICS
from yarus.tasks.cases.table import COLUMNS
from yarus.tasks.cases.vocabulary import SEVERITY, TURNS, Outcome
from yarus.tasks.config.factors import ContextPerturbation, Perturbation
from yarus.tasks.config.flow_parameters import FLOWS
from yarus.tasks.config.parameters import Tier2, Tier3
from yarus.tasks.config.settings import Role, Settings, SystemService
from yarus.tasks.evaluation.findings.failures import FAILURES

DOCS = Path(__file__).parents[2] / "docs"
PAGE, SYSTEMS = ((DOCS / name).read_text(encoding="utf-8") for name in ("tiers.md", "systems.md"))
NESTED = {"SUT_SERVICE": SystemService, "JUDGE": Role, "GATE": Role, "GENERATOR": Role}
OTHERS = {"answer", "urls", "contexts", "hidden", "local", "chunk", "page", "auto", "invalid", "failures", "system"}
OTHERS |= {"usage", "token", "end", "error", "finish_reason", "message", "recorded"}
OTHERS |= {"citations", "annotations", "search_results", "sources", "content", "text", "url"}
OTHERS |= {"ground_truth_show", "probes", "resume", "seed", "limit", "source"}
OTHERS |= {"dialog_id", "last", "strata", *TURNS}
OTHERS |= {"ainvoke", "invoke", "page_content", "history", "yarus"}


def test_settings_are_there() -> None:
    named = {name.partition("__") for name in re.findall(r"YARUS_([A-Z_]+)", PAGE + SYSTEMS)}
    assert len(named) > 8
    for name, _, part in named:
        assert name.lower() in Settings.model_fields
        if part:
            assert part.lower() in NESTED[name].model_fields


@pytest.mark.parametrize(("heading", "model"), [("Tier 2", Tier2), ("Tier 3", Tier3)])
def test_parameters_are_all_there(heading: str, model: type) -> None:
    section = PAGE.split(f"## {heading}")[1].split("\n## ")[0].split("\n### ")[0]
    cells = re.findall(r"^\| (`[^|]*`) \|", section, flags=re.MULTILINE)
    named = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    fields = model.model_fields.keys()  # type: ignore[attr-defined]
    assert named == fields - {"source", "limit", "seed", "resume", "cases", "runner"}


def test_every_tier_and_failure_has_its_row() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE.split("\n## ")[0], flags=re.MULTILINE)) == set(FLOWS)
    first = PAGE.split("### Where answers fail first")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", first, flags=re.MULTILINE)) == set(FAILURES)


def test_single_words_in_code_mean_something() -> None:
    known = {*METRICS, *COLUMNS, *SEVERITY, *FLOWS, *FAILURES, *OTHERS}
    known |= set(get_args(Perturbation)) | set(get_args(ContextPerturbation)) | set(get_args(Outcome))
    known |= {name for model in FLOWS.values() for name in model.model_fields}
    words = set(re.findall(r"`([a-z][a-z0-9_]*(?:@[0-9.]+)?)`", PAGE + SYSTEMS))
    assert words - known == set()

"""Check that docs/tiers.md and docs/systems.md name existing settings, parameters, metrics, statuses and failures."""

import re
from pathlib import Path
from typing import get_args

import pytest

from yarus.metrics.table import METRICS
from yarus.tasks.cases.table import CASE_COLUMNS
from yarus.tasks.cases.vocabulary import STATUSES_BY_SEVERITY, TURN_STRATA, Outcome
from yarus.tasks.config.factors import ContextPerturbation, Perturbation
from yarus.tasks.config.flow_parameters import FLOWS
from yarus.tasks.config.parameters import Tier2, Tier3
from yarus.tasks.config.settings import ModelRole, Settings, SystemService
from yarus.tasks.evaluation.findings.failures import FAILURE_STAGES

DOCS = Path(__file__).parents[2] / "docs"
PAGE, SYSTEMS = ((DOCS / name).read_text(encoding="utf-8") for name in ("tiers.md", "systems.md"))
NESTED = {"SUT_SERVICE": SystemService, "JUDGE": ModelRole, "PRODUCTION_JUDGE": ModelRole, "GENERATOR": ModelRole}
MORE_WORDS = {"answer", "urls", "contexts", "hidden", "local", "chunk", "page", "auto", "invalid", "failures", "system"}
MORE_WORDS |= {"usage", "token", "end", "error", "finish_reason", "message", "recorded"}
MORE_WORDS |= {"citations", "annotations", "search_results", "sources", "content", "text", "url"}
MORE_WORDS |= {"ground_truth_show", "probes", "resume", "seed", "limit", "source"}
MORE_WORDS |= {"dialog_id", "last", "strata", *TURN_STRATA}
MORE_WORDS |= {"ainvoke", "invoke", "page_content", "history", "yarus"}


def test_page_settings_exist() -> None:
    settings = {name.partition("__") for name in re.findall(r"YARUS_([A-Z_]+)", PAGE + SYSTEMS)}
    assert len(settings) > 8
    for name, _, nested_field in settings:
        assert name.lower() in Settings.model_fields
        if nested_field:
            assert nested_field.lower() in NESTED[name].model_fields


@pytest.mark.parametrize(("heading", "model"), [("Tier 2", Tier2), ("Tier 3", Tier3)])
def test_page_lists_all_parameters(heading: str, model: type) -> None:
    section = PAGE.split(f"## {heading}")[1].split("\n## ")[0].split("\n### ")[0]
    cells = re.findall(r"^\| (`[^|]*`) \|", section, flags=re.MULTILINE)
    parameter_names = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    fields = model.model_fields.keys()  # type: ignore[attr-defined]
    assert parameter_names == fields - {"source", "limit", "seed", "resume", "cases", "runner"}


def test_tiers_and_failures_have_rows() -> None:
    tiers = PAGE.partition("\n## The tiers\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", tiers, flags=re.MULTILINE)) == set(FLOWS)
    first = PAGE.split("### Where answers fail first")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", first, flags=re.MULTILINE)) == set(FAILURE_STAGES)


def test_code_words_are_known() -> None:
    known_words = {*METRICS, *CASE_COLUMNS, *STATUSES_BY_SEVERITY, *FLOWS, *FAILURE_STAGES, *MORE_WORDS}
    known_words |= set(get_args(Perturbation)) | set(get_args(ContextPerturbation)) | set(get_args(Outcome))
    known_words |= {name for model in FLOWS.values() for name in model.model_fields}
    words = set(re.findall(r"`([a-z][a-z0-9_]*(?:@[0-9.]+)?)`", PAGE + SYSTEMS))
    assert words - known_words == set()

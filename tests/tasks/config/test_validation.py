"""What pydantic refuses reaches people in our words: place, value, and what is allowed."""

from typing import Any

import pytest
from pydantic import ValidationError

from yarus.tasks.config.flow_parameters import FLOWS
from yarus.tasks.config.validation import bad_value
from yarus.tasks.dataset.synthesis.generator import Synthesis

REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("tier1", {"k": "5"}, "tier1: k = '5': expected 10 or more"),
    ("tier3", {"k": 101}, "tier3: k = 101: expected 100 or less"),
    ("tier1", {"limit": "0"}, "tier1: limit = '0': expected 1 or more"),
    ("tier1", {"k": "1.5"}, "tier1: k = '1.5': expected a whole number"),
    ("tier1", {"k": ""}, "tier1: k = '': expected a whole number"),
    ("tier1", {"k": "9" * 5000}, f"tier1: k = '{'9' * 59}…: expected a whole number"),
    (
        "tier1",
        {"unit": "chunks"},
        "tier1: unit = 'chunks': expected 'auto', 'chunk' or 'page'; did you mean 'chunk'?",
    ),
    ("tier1", {"runner": "spark"}, "tier1: runner = 'spark': expected 'local' or 'dask'"),
    ("tier2", {"logprobs": "maybe"}, "tier2: logprobs = 'maybe': expected true or false"),
    ("nightly", {"resume": "x"}, "nightly: resume = 'x': it cannot be given here; leave it out"),
    ("robustness", {"kinds": ""}, "robustness: kinds = []: expected at least 1; leave it out for the default"),
    ("robustness", {"tiers": ""}, "robustness: tiers = []: expected at least 1; leave it out for the default"),
    ("robustness", {"tiers": "tier4"}, "robustness: tiers = 'tier4': expected 'tier1', 'tier2' or 'tier3'"),
    (
        "robustness",
        {"kinds": "injektion"},
        "robustness: kinds = 'injektion': expected 'typos', 'yo', 'lower', 'layout', 'paraphrase', 'distractors', "
        "'gold_first', 'gold_middle', 'gold_last', 'gold_removed', 'counterfactual' or 'injection'; "
        "did you mean 'injection'?",
    ),
    (
        "robustness",
        {"kinds": "typos,injection", "tiers": "tier1"},
        "robustness: tiers = 'tier1': none of them knows the kind 'injection', which is of tier2",
    ),
    (
        "robustness",
        {"kinds": "injection", "tiers": "tier1,tier2"},
        "robustness: tiers = 'tier1,tier2': tier1 knows none of the kinds; it has typos, yo, lower, layout, paraphrase",
    ),
    (
        "tier2",
        {"context_perturbation": "injections"},
        "tier2: context_perturbation = 'injections': expected 'distractors', 'gold_first', 'gold_middle', 'gold_last', "
        "'gold_removed', 'counterfactual' or 'injection'; did you mean 'injection'?",
    ),
    ("sweep", {"k": "1,a"}, "sweep: k = 'a': expected a whole number"),
]


@pytest.mark.parametrize(("flow", "given", "said"), REFUSED)
def test_a_value_is_refused_with_its_place_and_what_is_allowed(flow: str, given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        FLOWS[flow].model_validate(given)
    assert str(bad_value(refused.value, flow)).partition("; did you mean 'tier")[0] == said


def test_a_synthesis_too() -> None:
    with pytest.raises(ValidationError) as refused:
        Synthesis.model_validate({"into": "x", "n": 200_000})
    assert str(bad_value(refused.value, "synthesize")) == "synthesize: n = 200000: expected 100000 or less"


@pytest.mark.parametrize("flow", FLOWS)
def test_no_parameter_of_a_flow_is_refused_in_pydantics_words(flow: str) -> None:
    """Whatever is given to whatever field: every kind of error that our models can raise has words of ours."""
    for name in FLOWS[flow].model_fields:
        for given in ("", "x", "-1", "1e999", [], ["x"], {"a": 1}, 10**9, None):
            try:
                FLOWS[flow].model_validate({name: given})
            except ValidationError as error:
                said = str(bad_value(error, flow))
                assert "nput" not in said and "valid" not in said, (name, given, said)

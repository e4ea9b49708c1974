"""Errors for values that pydantic rejects: place, value and allowed values, in Yarus's words."""

from typing import Any

import pytest
from pydantic import ValidationError

from yarus.tasks.config.flow_parameters import FLOWS
from yarus.tasks.config.validation import invalid_value_error
from yarus.tasks.dataset.synthesis.generator import SynthesisParameters

REJECTED: list[tuple[str, dict[str, Any], str]] = [
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
    (
        "robustness",
        {"perturbations": ""},
        "robustness: perturbations = []: expected at least 1; leave it out for the default",
    ),
    ("robustness", {"tiers": ""}, "robustness: tiers = []: expected at least 1; leave it out for the default"),
    ("robustness", {"tiers": "tier4"}, "robustness: tiers = 'tier4': expected 'tier1', 'tier2' or 'tier3'"),
    (
        "robustness",
        {"perturbations": "injektion"},
        "robustness: perturbations = 'injektion': expected 'typos', 'yo', 'lower', 'layout', 'paraphrase', "
        "'distractors', 'gold_first', 'gold_middle', 'gold_last', 'gold_removed', 'counterfactual' or 'injection'; "
        "did you mean 'injection'?",
    ),
    (
        "robustness",
        {"perturbations": "typos,injection", "tiers": "tier1"},
        "robustness: tiers = 'tier1': none of them knows the kind 'injection', which is of tier2",
    ),
    (
        "robustness",
        {"perturbations": "injection", "tiers": "tier1,tier2"},
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


@pytest.mark.parametrize(("flow", "given", "message"), REJECTED)
def test_bad_value_names_place_and_allowed_values(flow: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as rejected:
        FLOWS[flow].model_validate(given)
    assert str(invalid_value_error(rejected.value, flow)).partition("; did you mean 'tier")[0] == message


def test_bad_value_of_a_synthesis() -> None:
    with pytest.raises(ValidationError) as rejected:
        SynthesisParameters.model_validate({"into": "x", "n": 200_000})
    assert str(invalid_value_error(rejected.value, "synthesize")) == "synthesize: n = 200000: expected 100000 or less"


@pytest.mark.parametrize("flow", FLOWS)
def test_bad_value_never_uses_pydantics_words(flow: str) -> None:
    """Every error that any value of any field can raise has a message of Yarus."""
    for name in FLOWS[flow].model_fields:
        for value in ("", "x", "-1", "1e999", [], ["x"], {"a": 1}, 10**9, None):
            try:
                FLOWS[flow].model_validate({name: value})
            except ValidationError as error:
                message = str(invalid_value_error(error, flow))
                assert "nput" not in message and "valid" not in message, (name, value, message)

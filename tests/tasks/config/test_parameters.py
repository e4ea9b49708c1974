"""Parameters, which are also the form in the Prefect UI: every field is described, and invalid values are rejected."""

from typing import Any

import pytest
from pydantic import ValidationError

from yarus.tasks.config.flow_parameters import FLOWS
from yarus.tasks.config.former_names import FORMER_PARAMETERS

FIELDS = [(flow, name) for flow, model in FLOWS.items() for name in model.model_fields]


def field_schema(flow: str, name: str) -> dict[str, Any]:
    return FLOWS[flow].model_json_schema()["properties"][name]


def schema_alternatives(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the schema and its alternatives, including the items of lists."""
    alternatives = [schema, *schema.get("anyOf", ())]
    return [*alternatives, *(part["items"] for part in alternatives if "items" in part)]


@pytest.mark.parametrize(("flow", "name"), FIELDS)
def test_field_has_title_and_description(flow: str, name: str) -> None:
    field = FLOWS[flow].model_fields[name]
    assert field.title
    assert field.title[0].isupper()
    assert field.description
    assert not field.description.endswith(".")


@pytest.mark.parametrize(("flow", "name"), FIELDS)
def test_field_lists_values_or_has_valid_examples(flow: str, name: str) -> None:
    schema = field_schema(flow, name)
    has_values = any(
        "enum" in kind or "const" in kind or kind.get("type") in ("boolean", "null")
        for kind in schema_alternatives(schema)
    )
    examples = FLOWS[flow].model_fields[name].examples or []
    is_free = any(
        kind.get("type") in ("string", "integer", "number") and "enum" not in kind
        for kind in schema_alternatives(schema)
    )
    assert examples or (has_values and not is_free)
    for example in examples:
        assert getattr(FLOWS[flow].model_validate({name: example}), name) == example


@pytest.mark.parametrize(("flow", "name"), FIELDS)
def test_numeric_field_has_a_range(flow: str, name: str) -> None:
    schema = field_schema(flow, name)
    for kind in (schema, *schema.get("anyOf", ())):
        if kind.get("type") in ("integer", "number"):
            assert {"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"} & kind.keys()


@pytest.mark.parametrize(
    ("flow", "stored"),
    [
        ("tier1", {"twins": False, "labels": "filled", "confirms": "a", "failed": "b"}),
        ("tier3", {"twins": False, "again": "a"}),
        ("judge", {"probes": False, "parallel": "xquad_en"}),
        ("robustness", {"kinds": ["typos"]}),
    ],
)
def test_stored_parameters_keep_former_names(flow: str, stored: dict[str, Any]) -> None:
    parameters = FLOWS[flow].model_validate(stored)
    assert parameters.stored() | stored == parameters.stored()
    assert FLOWS[flow].model_validate(parameters.stored()) == parameters
    assert not parameters.stored().keys() & FORMER_PARAMETERS.values()


@pytest.mark.parametrize("flow", FLOWS)
def test_unknown_parameter_is_rejected(flow: str) -> None:
    assert FLOWS[flow].model_json_schema()["additionalProperties"] is False
    with pytest.raises(ValidationError, match="limitt"):
        FLOWS[flow].model_validate({"limitt": 5})

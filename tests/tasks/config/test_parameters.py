"""The parameters are the form in the Prefect UI: every field explains itself, and nonsense is refused."""

from typing import Any

import pytest
from pydantic import ValidationError

from yarus.tasks.config.flow_parameters import FLOWS

FIELDS = [(flow, name) for flow, model in FLOWS.items() for name in model.model_fields]


def schema_of(flow: str, name: str) -> dict[str, Any]:
    return FLOWS[flow].model_json_schema()["properties"][name]


def kinds(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The schema and its alternatives, of a list also those of its items."""
    found = [schema, *schema.get("anyOf", ())]
    return [*found, *(part["items"] for part in found if "items" in part)]


@pytest.mark.parametrize(("flow", "name"), FIELDS)
def test_a_field_has_a_title_and_says_what_it_does(flow: str, name: str) -> None:
    field = FLOWS[flow].model_fields[name]
    assert field.title
    assert field.title[0].isupper()
    assert field.description
    assert not field.description.endswith(".")


@pytest.mark.parametrize(("flow", "name"), FIELDS)
def test_a_field_lists_its_values_or_shows_an_example_that_it_takes(flow: str, name: str) -> None:
    schema = schema_of(flow, name)
    listed = any("enum" in kind or "const" in kind or kind.get("type") in ("boolean", "null") for kind in kinds(schema))
    examples = FLOWS[flow].model_fields[name].examples or []
    free = any(kind.get("type") in ("string", "integer", "number") and "enum" not in kind for kind in kinds(schema))
    assert examples or (listed and not free)
    for example in examples:
        assert getattr(FLOWS[flow].model_validate({name: example}), name) == example


@pytest.mark.parametrize(("flow", "name"), FIELDS)
def test_a_number_has_a_range(flow: str, name: str) -> None:
    schema = schema_of(flow, name)
    for kind in (schema, *schema.get("anyOf", ())):
        if kind.get("type") in ("integer", "number"):
            assert {"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"} & kind.keys()


@pytest.mark.parametrize("flow", FLOWS)
def test_an_unknown_parameter_is_refused(flow: str) -> None:
    assert FLOWS[flow].model_json_schema()["additionalProperties"] is False
    with pytest.raises(ValidationError, match="limitt"):
        FLOWS[flow].model_validate({"limitt": 5})

"""Former names of settings and parameters. Imports nothing heavy: the help uses it."""

from collections.abc import Iterator, Mapping
from typing import Any

FORMER_SETTINGS = {
    "cost_right_hidden": "cost_false_negative",
    "cost_wrong_shown": "cost_false_positive",
    "false_alarms_a_year": "max_false_alarms_per_year",
    "gate": "production_judge",
    "least_change": "min_change",
    "mask_calls": "mask_model_input",
    "mask_shown": "mask_output",
    "refusals": "refusal_phrases",
    "serve_names": "serve_allowed_hosts",
    "server_idle_s": "server_idle_timeout_s",
    "work": "work_dir",
}
"""Former name -> present name. Evaluations store the former one, so that those of earlier releases stay comparable."""
FORMER_TIER_PARAMETERS = {
    "again": "repeat_of",
    "confirms": "recheck",
    "failed": "retry_failed",
    "parallel": "parallel_source",
    "probes": "bias_probes",
    "twins": "merge_duplicates",
}
FORMER_PARAMETERS = {**FORMER_TIER_PARAMETERS, "kinds": "perturbations"}
"""Former name of a parameter -> present name. Evaluations store the former one, too."""
FORMER_VALUES = {("labels", "filled"): "llm"}
"""Parameter and former value -> present value; likewise."""
STORED_PARAMETERS = {present: former for former, present in FORMER_PARAMETERS.items()}
STORED_VALUES = {(name, present): former for (name, former), present in FORMER_VALUES.items()}
STORED_SETTINGS = {present: former for former, present in FORMER_SETTINGS.items()}


def present_name(variable: str) -> str:
    """Return the present name of a variable: YARUS_PRODUCTION_JUDGE__MODEL for YARUS_GATE__MODEL."""
    setting, separator, part = variable.partition("__")
    prefix, _, name = setting.partition("_")
    present = FORMER_SETTINGS.get(name.lower())
    return f"{prefix}_{present.upper()}{separator}{part}" if prefix == "YARUS" and present else variable


def find_former_names(variables: Mapping[str, str | None]) -> Iterator[tuple[str, str]]:
    """Yield the former names among variables that are not empty, each with the present name."""
    for name, value in variables.items():
        if value and (present := present_name(name)) != name:
            yield name, present


def rename_variables(variables: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the variables by their present names, which are in upper case like all given names."""
    values = {name: value for name, value in variables.items() if present_name(name) == name}
    former_values = {present: variables[name] for name, present in find_former_names(variables)}
    return values | {name: value for name, value in former_values.items() if not values.get(name)}


def present_parameters(values: Any) -> Any:
    """Return stored parameters by their present names, whose values count; what is not a dictionary passes."""
    if not isinstance(values, dict):
        return values
    renamed = {present: values[former] for former, present in FORMER_PARAMETERS.items() if former in values}
    kept = {name: value for name, value in values.items() if name not in FORMER_PARAMETERS}
    return {name: _replace(FORMER_VALUES, name, value) for name, value in (renamed | kept).items()}


def stored_parameters(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters by the names that evaluations store."""
    return {STORED_PARAMETERS.get(name, name): _replace(STORED_VALUES, name, value) for name, value in values.items()}


def present_setting(name: str) -> str:
    """Return the present name of a stored setting or parameter: judge.mask_model_input for judge.mask_calls."""
    present_names = FORMER_SETTINGS | FORMER_PARAMETERS
    return ".".join(present_names.get(part, part) for part in name.split("."))


def present_value(name: str, value: Any) -> Any:
    """Return a stored value of a setting or parameter as it is given today: llm for filled labels."""
    return _replace(FORMER_VALUES, name, value)


def _replace(replacements: Mapping[tuple[str, str], str], name: str, value: Any) -> Any:
    return replacements.get((name, value), value) if isinstance(value, str) else value

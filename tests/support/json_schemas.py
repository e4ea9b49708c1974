"""Check what commands print with `--json` against the schemas in docs/schemas. Imported by full name."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

from jsonschema import Draft202012Validator, validators

DOCS = Path(__file__).parents[2] / "docs"
STRICT = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
Validator = validators.extend(Draft202012Validator, type_checker=STRICT)
"""It rejects 1.0 where an integer is declared."""


def load_generator() -> ModuleType:
    """Import docs/generate_json.py."""
    spec = importlib.util.spec_from_file_location("docs_generate_json", DOCS / "generate_json.py")
    assert spec and spec.loader
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    return generator


GENERATOR = load_generator()


def check_json(command: str, printed: str) -> Any:
    """Validate a printed document against the schema of its command, and return it."""
    schema = (DOCS / "schemas" / GENERATOR.SCHEMA_FILES[command]).read_text(encoding="utf-8")
    document = json.loads(printed)
    Validator(json.loads(schema)).validate(document)
    return document

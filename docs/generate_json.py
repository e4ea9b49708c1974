"""Make docs/schemas and the table of docs/json.md from the types that commands print with `--json`.

`python docs/generate.py` writes them.
"""

import ast
import inspect
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints, is_typeddict

import pyarrow as pa
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import WithDefaultSchema
from typing_extensions import TypedDict

from yarus.db.former_keys import FORMER_KEYS
from yarus.flows.cli.framework.command_schema import DOCUMENTS, Case
from yarus.metrics.metric import RUBRIC_PREFIX
from yarus.tasks.cases.table import CASE_COLUMNS, Column, column_spec
from yarus.tasks.evaluation.config import DumpedAs, EvaluationConfig

FOLDER = Path(__file__).with_name("schemas")
PAGE = Path(__file__).with_name("json.md")
DIALECT = "https://json-schema.org/draft/2020-12/schema"
SCHEMA_FILES = {
    command: "-".join(re.findall("[a-z]+", next(other for other in DOCUMENTS if DOCUMENTS[other] == document)))
    + ".schema.json"
    for command, document in DOCUMENTS.items()
}
"""Command -> file of its schema; commands that print the same type share the file of the first one."""


class DocumentSchema(GenerateJsonSchema):
    """JSON Schema without titles of fields; unset fields of a model are left out of the document, not null."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Set no title, which would only repeat the key."""
        return False

    def default_schema(self, schema: WithDefaultSchema) -> JsonSchemaValue:
        """Return the schema of a set field."""
        value = schema["schema"]
        return self.generate_inner(value["schema"] if value["type"] == "nullable" else value)


def render_schemas() -> dict[str, str]:
    """Return the text of every schema, by file name."""
    schemas = {SCHEMA_FILES[command]: make_schema(document) for command, document in DOCUMENTS.items()}
    return {name: json.dumps(schema, indent=1, ensure_ascii=False) + "\n" for name, schema in schemas.items()}


def render_page() -> str:
    """Return docs/json.md with the table of commands between its marks."""
    rows = [
        f"| `yarus {command}` | [{SCHEMA_FILES[command].split('.')[0]}](schemas/{SCHEMA_FILES[command]}) | "
        f"{make_schema(document)['description']} |"
        for command, document in DOCUMENTS.items()
    ]
    table = "\n".join(["| Command | Schema | What it prints |", "| --- | --- | --- |", *rows])
    page = PAGE.read_text(encoding="utf-8")
    return re.sub("(<!-- commands -->).*?(?=<!-- end -->)", rf"\1\n\n{table}\n\n", page, flags=re.DOTALL)


def make_schema(document: Any) -> JsonSchemaValue:
    """Return the JSON Schema of a type, with the lines below its keys as descriptions."""
    if document == list[Case]:
        item = make_case_schema()
        return {"$schema": DIALECT, "description": describe_list(item), "type": "array", "items": item}
    schema = TypeAdapter(document).json_schema(schema_generator=DocumentSchema)
    definitions = schema.pop("$defs", {})
    objects = {schema.get("title"): schema, **definitions}
    types = list(dict.fromkeys(declared(document)))
    for kind in types:
        describe(kind, objects[kind.__name__])
    if schema["type"] == "array":
        schema["description"] = describe_list(objects[types[0].__name__])
    return {"$schema": DIALECT, **schema} | ({"$defs": definitions} if definitions else {})


def describe_list(item: JsonSchemaValue) -> str:
    """Return the description of a list of such items."""
    description = str(item["description"])
    return f"A list; each item: {description[0].lower()}{description[1:]}"


def describe(kind: type, schema: JsonSchemaValue) -> None:
    """Add the texts of a type to its schema, and forbid other keys."""
    if issubclass(kind, tuple):  # a named tuple is printed as an object with all of its keys
        fields = TypedDict(kind.__name__, get_type_hints(kind))
        del schema["prefixItems"], schema["minItems"], schema["maxItems"]
        schema |= TypeAdapter(fields).json_schema(schema_generator=DocumentSchema)
    if kind is EvaluationConfig:  # the notes are printed beside it
        del schema["properties"]["notes"]
    schema["description"] = " ".join((inspect.getdoc(kind) or "").split())
    if "properties" in schema:
        schema["additionalProperties"] = False
    for name, description in key_descriptions(kind).items():
        if name in schema.get("properties", {}):
            schema["properties"][name]["description"] = " ".join(description.split())
    for name, former in FORMER_KEYS.items():
        if name in schema.get("properties", {}):
            note = {"description": f"Former name of {name}.", "deprecated": True}
            schema["properties"][former] = schema["properties"][name] | note


def declared(kind: Any) -> Iterator[type]:
    """Yield the types with keys that a type consists of, itself first."""
    if has_keys(kind):
        yield kind
        for hint in get_type_hints(kind, include_extras=True).values():
            yield from declared(hint)
    elif kind != Literal:
        for part in get_args(kind):
            yield from declared(part.model if isinstance(part, DumpedAs) else part)


def has_keys(kind: Any) -> bool:
    """Return whether a type is a class with declared keys."""
    return isinstance(kind, type) and bool(is_typeddict(kind) or getattr(kind, "__annotations__", None))


def key_descriptions(kind: type) -> dict[str, str]:
    """Return the text below each key of a class and its bases, by key."""
    descriptions: dict[str, str] = {}
    for base in getattr(kind, "__orig_bases__", kind.__bases__):
        if has_keys(base):
            descriptions |= key_descriptions(base)
    try:
        source = inspect.getsource(kind)
    except OSError:  # made by a call: it has no texts
        return descriptions
    for field, text in pairwise(ast.parse(source).body[0].body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            descriptions[field.target.id] = str(ast.literal_eval(text.value))
    return descriptions


def make_case_schema() -> JsonSchemaValue:
    """Return the schema of a case: columns of the evaluation's file, some of which each tier has."""

    def describe_column(column: Column) -> JsonSchemaValue:
        return arrow_schema(column.type) | {"description": column.meaning}

    return {
        "title": "Case",
        "description": "The columns of the evaluation's file by name, without those that its tier does not have.",
        "type": "object",
        "properties": {name: describe_column(column) for name, column in CASE_COLUMNS.items()},
        "patternProperties": {RUBRIC_PREFIX: describe_column(column_spec(RUBRIC_PREFIX))},
        "additionalProperties": False,
    }


def arrow_schema(kind: pa.DataType) -> JsonSchemaValue:
    """Return the schema of a value of a column, which may be null."""
    if pa.types.is_list(kind):
        return {"type": ["array", "null"], "items": arrow_schema(kind.value_type)}
    if pa.types.is_struct(kind):
        fields = {field.name: arrow_schema(field.type) for field in kind}
        return {"type": ["object", "null"], "properties": fields, "additionalProperties": False}
    if pa.types.is_timestamp(kind):
        return {"type": ["string", "null"], "format": "date-time"}
    names = {pa.string(): "string", pa.bool_(): "boolean", pa.int64(): "integer", pa.float64(): "number"}
    return {"type": [names[kind], "null"]}

"""Titles, descriptions and examples of parameters, for help and the forms of the Prefect UI."""

from typing import TYPE_CHECKING, Any

from yarus.tasks.config.texts.messages import translate_text

if TYPE_CHECKING:
    from yarus.db.tables import JsonObject

EXAMPLES_PREFIX = ". For example: "


def append_examples(schema: "JsonObject") -> None:
    """Append the examples to the descriptions, because Prefect's form shows only descriptions."""
    for field in schema["properties"].values():
        if "examples" in field:
            field["description"] += EXAMPLES_PREFIX + ", ".join(map(str, field["examples"]))


def translate_description(description: str, language: str) -> str:
    """Translate a description that `append_examples` has extended."""
    text, separator, examples = description.partition(EXAMPLES_PREFIX)
    translation = translate_text(text, language)
    if not separator:
        return translation
    end = "" if translation.endswith((".", "?")) else "."
    return f"{translation}{end} {translate_text('For example', language)}: {examples}"


def translate_schema(schema: Any, language: str) -> Any:
    """Translate all titles and descriptions of a schema."""
    if isinstance(schema, list):
        return [translate_schema(part, language) for part in schema]
    if not isinstance(schema, dict):
        return schema
    translated_schema = {name: translate_schema(part, language) for name, part in schema.items()}
    if isinstance(translated_schema.get("title"), str):
        translated_schema["title"] = translate_text(translated_schema["title"], language)
    if isinstance(translated_schema.get("description"), str):
        translated_schema["description"] = translate_description(translated_schema["description"], language)
    return translated_schema

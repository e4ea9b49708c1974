"""What people read of a parameter, in help and in the forms of the Prefect UI: its title, meaning and examples."""

from typing import TYPE_CHECKING, Any

from yarus.tasks.config.texts.messages import translated

if TYPE_CHECKING:
    from yarus.db.tables import Json

EXAMPLES = ". For example: "


def show_examples(schema: "Json") -> None:
    """Puts the examples into the descriptions, for Prefect's form shows only those."""
    for field in schema["properties"].values():
        if "examples" in field:
            field["description"] += EXAMPLES + ", ".join(map(str, field["examples"]))


def described(description: str, language: str) -> str:
    """A description as `show_examples` leaves it, in a language."""
    text, sign, examples = description.partition(EXAMPLES)
    said = translated(text, language)
    if not sign:
        return said
    end = "" if said.endswith((".", "?")) else "."
    return f"{said}{end} {translated('For example', language)}: {examples}"


def in_language(schema: Any, language: str) -> Any:
    """A schema with all titles and descriptions in it in a language."""
    if isinstance(schema, list):
        return [in_language(part, language) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: in_language(part, language) for name, part in schema.items()}
    if isinstance(made.get("title"), str):
        made["title"] = translated(made["title"], language)
    if isinstance(made.get("description"), str):
        made["description"] = described(made["description"], language)
    return made

"""List the choices that forms of Prefect's UI offer: sources, case sets, retrievers and so on.

They are suggestions: anything else may be entered and is checked by the flow.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import select

from yarus.db import tables
from yarus.db.engine import reporting_unreachable
from yarus.db.sources import PRODUCTION, SAMPLE
from yarus.db.tables import JsonObject
from yarus.tasks.cases.frozen_sets import list_frozen_sets
from yarus.tasks.config.connections import database
from yarus.tasks.config.settings import ModelRole, Settings, get_settings
from yarus.tasks.config.texts import texts
from yarus.tasks.systems.retrievers.registry import RETRIEVERS

FormChoices = Mapping[str, Sequence[str]]
"""Name of a parameter -> existing values."""


def read_form_choices() -> FormChoices:
    """Return the values that exist now, from the database and the settings.

    Raises:
        DatabaseUnavailable: Yarus's database cannot be reached.
    """
    settings, engine = get_settings(), database()
    with reporting_unreachable(engine), engine.connect() as connection:
        names = connection.scalars(select(tables.source.c.name).order_by(tables.source.c.loaded_at.desc()))
        sources = list(dict.fromkeys([*names, SAMPLE]))
    choices = {
        "source": [*sources, *([PRODUCTION] if settings.source_url else [])],
        "parallel_source": sources,
        "cases": [case_set["name"] for case_set in list_frozen_sets()],
        "retriever": [*(name for name in RETRIEVERS if name.isalpha()), settings.retriever],
        "embedder": ["lexical", settings.embedder],
        "reranker": [settings.reranker] if settings.reranker else [],
        "sut": ["local", "recorded", settings.sut],
        "generator_model": _list_models(settings, settings.generator),
        "judge_model": _list_models(settings, settings.judge),
    }
    return {name: list(dict.fromkeys(values)) for name, values in choices.items() if values}


def _list_models(settings: Settings, role: ModelRole) -> list[str]:
    """Return the names of models: the role's own, and those with a price."""
    return [*([role.model] if role.model else []), *settings.prices]


def add_form_choices(schema: JsonObject, choices: FormChoices) -> JsonObject:
    """Return the schema of a flow's parameters with lists of choices in its form."""
    words = texts("forms", get_settings().language)
    for definition in schema.get("definitions", {}).values():
        for name, field in definition.get("properties", {}).items():
            free_text = next((kind for kind in field.get("anyOf", [field]) if kind.get("type") == "string"), None)
            if name not in choices or free_text is None or "enum" in free_text:
                continue
            choice_list = {"type": "string", "title": words["listed"], "enum": list(choices[name])}
            other_kinds = [kind for kind in field.get("anyOf", []) if kind is not free_text]
            field["anyOf"] = [choice_list, {"type": "string", "title": words["other"]}, *other_kinds]
            field.pop("type", None)
    return schema

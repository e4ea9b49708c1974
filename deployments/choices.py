"""What the forms of Prefect's UI offer for parameters that name something: sources, case sets, retrievers and so on.

It is offered, not required: anything else may be written beside it, and is judged by the flow itself.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import select

from yarus.db import tables
from yarus.db.engine import reaching
from yarus.db.sources import PRODUCTION, SAMPLE
from yarus.db.tables import Json
from yarus.tasks.cases.frozen_sets import listing
from yarus.tasks.config.connections import database
from yarus.tasks.config.settings import Role, Settings, settings
from yarus.tasks.config.texts import texts
from yarus.tasks.systems.retrievers.registry import RETRIEVERS

Offered = Mapping[str, Sequence[str]]
"""Name of a parameter -> what exists."""


def offered() -> Offered:
    """What exists now, by the database and the settings.

    Raises:
        DatabaseUnavailable: our database cannot be reached.
    """
    chosen, engine = settings(), database()
    with reaching(engine), engine.connect() as connection:
        names = connection.scalars(select(tables.source.c.name).order_by(tables.source.c.loaded_at.desc()))
        sources = list(dict.fromkeys([*names, SAMPLE]))
    found = {
        "source": [*sources, *([PRODUCTION] if chosen.source_url else [])],
        "parallel": sources,
        "cases": [one["name"] for one in listing()],
        "retriever": [*(name for name in RETRIEVERS if name.isalpha()), chosen.retriever],
        "embedder": ["lexical", chosen.embedder],
        "reranker": [chosen.reranker] if chosen.reranker else [],
        "sut": ["local", "recorded", chosen.sut],
        "generator_model": _models(chosen, chosen.generator),
        "judge_model": _models(chosen, chosen.judge),
    }
    return {name: list(dict.fromkeys(values)) for name, values in found.items() if values}


def _models(chosen: Settings, role: Role) -> list[str]:
    """The models that are known by name: the role's own, and those that have a price."""
    return [*([role.model] if role.model else []), *chosen.prices]


def with_choices(schema: Json, found: Offered) -> Json:
    """The schema of a flow's parameters, whose form has lists of what is offered."""
    words = texts("forms", settings().language)
    for definition in schema.get("definitions", {}).values():
        for name, field in definition.get("properties", {}).items():
            anything = next((kind for kind in field.get("anyOf", [field]) if kind.get("type") == "string"), None)
            if name not in found or anything is None or "enum" in anything:
                continue
            listed = {"type": "string", "title": words["listed"], "enum": list(found[name])}
            others = [kind for kind in field.get("anyOf", []) if kind is not anything]
            field["anyOf"] = [listed, {"type": "string", "title": words["other"]}, *others]
            field.pop("type", None)
    return schema

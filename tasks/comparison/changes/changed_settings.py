"""In what two systems differ that were evaluated, by the records of both: settings, models, prompts, corpus, versions.

What measures them (case set, judge, k, unit) is part of the comparability key and stands there.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy.engine import RowMapping

from yarus.tasks.comparison.documents import SettingDifference
from yarus.tasks.results.summary import BESIDE, system_of

NO_SETTING = (*BESIDE, "batch_size", "n_batches", "source_loaded_at", "index_recall", "exam_of", "exam_period")
NO_SETTING += ("examined", "cases", "again", "anchor", "part_of")
"""What an evaluation has resolved and nobody has set."""
SET: tuple[str, ...] = ("embedder_backend", "embedder_model", "query_prefix", "passage_prefix", "refusals", "rubrics")
SET += ("mask_calls", "sut_python", "sut_service", "retriever_service", "reranker_model", "reranker_service")
"""Settings that change the system and are not resolved."""
ROLES = ("generator", "judge", "gate")
OF_ROLE = ("base_url", "temperature", "max_tokens", "prompt")
HARMLESS = ("concurrency",)
FOLLOWS = {
    "embedder": ("retriever",),
    "embedder_identity": ("embedder", "retriever"),
    "vectors": ("retriever", "embedder"),
    "reranker_identity": ("reranker",),
    "rerank_depth": ("reranker",),
    "embedder_model": ("embedder", "retriever"),
}
"""What changes by itself where one of these was changed."""
FIRST = ("sut_label", "sut", "retriever", "embedder", "reranker", "generator", "generator_prompt", "corpus")
LONGEST = 100


def changed_settings(before: RowMapping, after: RowMapping) -> list[SettingDifference]:
    """The settings that differ, with both values, what was set by hand first.

    Args:
        before, after: rows of the journal.
    """
    one, other = _of(before), _of(after)
    measuring = {name for row in (before, after) for name, _ in flat(row["comparability"] or {})}
    ordered = sorted({**one, **other}, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    names = [name for name in ordered if one.get(name) != other.get(name) and name not in measuring]
    names = [name for name in names if not (set(FOLLOWS.get(name, ())) & set(names))]
    return [{"name": name, "a": one.get(name), "b": other.get(name)} for name in names]


def setting(value: Any) -> str:
    """A value as people read it: a dash for none, of digests and long texts the beginning."""
    if value is None or value == "":
        return "—"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = " ".join(text.split())
    if len(text) == 64 and set(text) <= set("0123456789abcdef"):
        return text[:8]
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """What a nested document says, by dotted names."""
    if not isinstance(value, dict):
        yield name, value
        return
    for key in value:
        yield from flat(value[key], f"{name}.{key}" if name else key)


def _of(row: RowMapping) -> dict[str, Any]:
    """Everything that may have been changed, by dotted names."""
    system: Mapping[str, Any] = system_of(row, without=NO_SETTING)
    given: Mapping[str, Any] = row["settings"] or {}
    found = {"sut_label": row["sut_label"], **dict(flat(dict(system)))}
    found |= dict(flat({name: given[name] for name in SET if name in given}))
    for role in (name for name in ROLES if name in system):
        found |= {f"{role}.{name}": given.get(role, {}).get(name) for name in OF_ROLE}
    found |= dict(flat({"versions": row["versions"] or {}}))
    return {name: value for name, value in found.items() if name.rpartition(".")[2] not in HARMLESS}

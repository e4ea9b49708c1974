"""What comparisons say, in words, and in what the compared systems, settings and labels differ."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from sqlalchemy.engine import RowMapping

from yarus.metrics.statistics.power import fewest_pairs
from yarus.tasks.cases.table import COLUMNS, Case, values_of
from yarus.tasks.comparison.comparison_schema import (
    Changes,
    Compared,
    EvaluationComparison,
    KeyDifference,
    LabelsChanged,
    SettingDifference,
    Sides,
    Statement,
    StatementKind,
)
from yarus.tasks.config.texts import LANGUAGES, Text, texts, translations
from yarus.tasks.config.texts.messages import told
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation import result_files
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.numbers import shown

READ: tuple[str, ...] = ("case_id", "question", "text", "cluster", "stratum", "relevant", "grades", "reference")
READ += ("answerable", "shown", "human_score")
"""What a case is asked, and what its values rest on."""


def only_cases_differ(differs: Sequence[KeyDifference]) -> bool:
    """Whether nothing but the content of the case set parts two evaluations: not how it is measured, nor its name."""
    return bool(differs) and all(part["part"] == "cases.sha256" for part in differs)


def labelled_alike(a: RowMapping, b: RowMapping) -> tuple[LabelsChanged, set[str]]:
    """What changed, and the ids of the cases that are labelled alike on both sides.

    Raises:
        ResultsUnavailable: the file of one is gone, damaged or another one's.
    """
    before, after = (_content(row) for row in (a, b))
    common = before.keys() & after.keys()
    alike = {name for name in common if before[name] == after[name]}
    changed: LabelsChanged = {
        "n": len(common) - len(alike),
        "n_common": len(common),
        "only_a": len(before) - len(common),
        "only_b": len(after) - len(common),
    }
    return changed, alike


def kept(cases: pa.Table, ids: set[str]) -> pa.Table:
    """The cases of these ids."""
    return cases.filter(pa.array([name in ids for name in values_of(cases, "case_id")], pa.bool_()))


def _content(row: RowMapping) -> dict[str, Case]:
    """Case id -> what is asked and labelled; the order of labels means nothing."""
    cases = result_files.read(row["parquet"], without=COLUMNS.keys() - READ)
    return {case.pop("case_id"): _alike(case) for case in cases.to_pylist()}


def _alike(case: Case) -> Case:
    relevant = case.pop("relevant", None) or ()
    grades = case.pop("grades", None) or [1.0] * len(relevant)
    labels = dict(zip(relevant, grades, strict=True))
    return {name: value for name, value in case.items() if value is not None} | {"labels": labels}


NO_SETTING: tuple[str, ...] = ("batch_size", "n_batches", "source_loaded_at", "index_recall", "exam_of", "exam_period")
NO_SETTING += ("examined", "cases", "again", "anchor", "part_of")
"""What of the configuration nobody has set."""
SET: tuple[str, ...] = ("embedder_backend", "embedder_model", "query_prefix", "passage_prefix", "refusals", "rubrics")
SET += ("mask_calls", "sut_python", "sut_service", "retriever_service", "reranker_model", "reranker_service")
"""Settings that change the system and are not in the configuration."""
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
    system = EvaluationConfig.of(row).document(without=NO_SETTING)
    given: Mapping[str, Any] = row["settings"] or {}
    found = {"sut_label": row["sut_label"], **dict(flat(dict(system)))}
    found |= dict(flat({name: given[name] for name in SET if name in given}))
    for role in (name for name in ROLES if name in system):
        found |= {f"{role}.{name}": given.get(role, {}).get(name) for name in OF_ROLE}
    found |= dict(flat({"versions": row["versions"] or {}}))
    return {name: value for name, value in found.items() if name.rpartition(".")[2] not in HARMLESS}


CHANCE = 0.05
"""Share of the metrics that a p of their own calls changed where nothing is."""


def statements(found: Sequence[Compared], *, named: bool = False) -> list[Statement]:
    """What is proven to be worse or better, what was changed, what only a p of its own says, and what did not compare.

    Of an invalid evaluation nothing is said but why it is.

    Args:
        found: comparisons, as `yarus.tasks.comparison.compare.compare` gives them, and what could not be compared, as
            `yarus.tasks.comparison.since.since_accepted` does.
        named: say of which tier each is.
    """
    valid = [one for one in found if not is_invalid(one)]
    compared = [one for one in valid if "metrics" in one]
    not_compared = [one for one in valid if "metrics" not in one]
    regressed, improved = (
        _joined(compared, partial(_proven, verdict=verdict), named=named) for verdict in ("regressed", "improved")
    )
    said: list[tuple[StatementKind, Text | None]] = [
        ("invalid", _joined([one for one in found if is_invalid(one)], _invalid, named=named)),
        ("regressed", regressed),
        ("improved", improved),
        ("nothing", None if regressed or improved else _joined(compared, _nothing, named=named)),
        ("failures", _joined(compared, _failures, named=named)),
        ("settings", settings_text(*valid)),
        ("measured otherwise", _joined(compared, _key, named=named)),
        ("labels changed", _joined(compared, _labels_changed, named=named)),
        ("alone", _alone(compared, named=named)),
        ("not compared", _joined(not_compared, _not_compared, named=named)),
    ]
    return [{"kind": kind, "label": translations("statements", kind), "text": text} for kind, text in said if text]


def with_statements(sides: Sides, changes: Changes) -> EvaluationComparison:
    """A whole comparison, with what it says."""
    found: EvaluationComparison = {**sides, **changes, "statements": []}
    last: Statement = {"kind": "reach", "label": translations("statements", "reach"), "text": reach(found)}
    return {**found, "statements": [*statements([found]), *(() if is_invalid(found) else (last,))]}


def is_invalid(document: Mapping[str, Any]) -> bool:
    """Whether one of the evaluations is invalid, so that nothing can be said of a change."""
    return "invalid" in (document["a"]["state"], document["b"]["state"])


def line(said: Statement, language: str) -> str:
    """A statement as one line."""
    return f"{said['label'][language]}: {said['text'][language]}."


def reach(document: Mapping[str, Any]) -> Text:
    """What this many cases could have shown, by the tier's first metric that was compared."""
    found = measured(document)
    if not found:
        return translations("statements", "unmeasured")
    name = next((name for name in TIERS[document["b"]["tier"]].headlines if name in found), next(iter(found)))
    one = found[name]
    in_groups = one["groups"] is not None
    if one["smallest_detectable"] is None:
        key = "nothing moved" if one["ci_low"] == 0 == one["ci_high"] else "too few groups" if in_groups else "too few"
    else:
        key = {"no difference shown": "excluded", "inconclusive": "not excluded"}.get(one["verdict"], "found")
    said = {
        "metric": name,
        "n": one["n"],
        "groups": one["groups"],
        "margin": "" if one["margin"] is None else shown(name, one["margin"]),
        "detectable": "" if one["smallest_detectable"] is None else shown(name, one["smallest_detectable"]),
        "far": shown(name, max(abs(one["ci_low"]), abs(one["ci_high"]))),
    }
    pairs = translations("statements", "pairs in groups" if in_groups else "pairs", **said)
    return {of: texts("statements", of)[key].format(**said, pairs=pairs[of]) for of in LANGUAGES}


def measured(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The metrics that were compared, whose figures are all there."""
    return {name: one for name, one in document.get("metrics", {}).items() if one["reason"] is None}


def setting_name(name: str, language: str) -> str:
    """What a setting is called, and by what name it is set."""
    called = texts("setting_names", language).get(name)
    return f"{called} ({name})" if called else name


def settings_text(*found: Mapping[str, Any]) -> Text | None:
    """What was changed in the system, what several tiers are measured with once; None where nothing was."""
    changed = [(one["name"], one["a"], one["b"]) for document in found for one in document["changed_settings"]]
    return _listed(_named_change(*one) for number, one in enumerate(changed) if one not in changed[:number])


def _named_change(name: str, a: Any, b: Any) -> Text:
    return {of: f"{setting_name(name, of)}: {setting(a)} → {setting(b)}" for of in LANGUAGES}


def _key(document: Mapping[str, Any]) -> Text | None:
    return _listed(_named_change(one["part"], one["a"], one["b"]) for one in document["differs"])


def _invalid(document: Mapping[str, Any]) -> Text | None:
    """Which of the evaluations are invalid, and why."""
    said = []
    for side in (document["a"], document["b"]):
        name, why = side["evaluation_id"], side["error"]
        if side["state"] == "invalid":
            said.append({of: f"{name} ({told(why, of)})" if why else name for of in LANGUAGES})
    return _listed(said, "; ")


def _failures(document: Mapping[str, Any]) -> Text | None:
    """At how many common questions the system failed, and the headline metrics without these."""
    failures = document["failed_cases"]
    if failures is None:
        return None
    answered = ", ".join(
        f"{name} {shown(name, one['a'])} → {shown(name, one['b'])}" for name, one in failures["answered"].items()
    )
    said = {"a": failures["a"], "b": failures["b"], "n": document["n_common"], "answered": answered}
    if not failures["are_losses"]:
        return translations("statements", "failed alike", **said)
    return translations("statements", "failed" if answered else "failed only", **said)


def _labels_changed(document: Mapping[str, Any]) -> Text | None:
    """How many of the common questions are left out, and what only one side has."""
    changed = document.get("labels_changed")
    return changed and translations("statements", "left out", **changed)


def _not_compared(document: Mapping[str, Any]) -> Text | None:
    """Why, where that is not merely that nothing was measured on both sides."""
    return _key(document) or (
        {of: told(document["reason"], of) for of in LANGUAGES} if document.get("reason") else None
    )


def _proven(document: Mapping[str, Any], *, verdict: str) -> Text | None:
    """The headline metrics whose change is more than chance, adjusted for how many they are."""
    return _listed(
        f"{name} {shown(name, one['a'])} → {shown(name, one['b'])} ({shown(name, one['difference'], sign=True)})"
        for name, one in measured(document).items()
        if one["p_holm"] is not None and one["verdict"] == verdict
    )


def _alone(compared: Sequence[Mapping[str, Any]], *, named: bool) -> Text | None:
    """The other metrics whose change is more than chance by a p of their own, and how many of them are by chance."""
    text = _joined(compared, _others, named=named)
    if text is None:
        return None
    n = sum(one["p_holm"] is None for document in compared for one in measured(document).values())
    chance = translations("statements", "by chance", n=n, chance=f"{CHANCE * n:.0f}" if CHANCE * n >= 1 else "<1")
    return {of: f"{text[of]} ({chance[of]})" for of in LANGUAGES}


def _others(document: Mapping[str, Any]) -> Text | None:
    parts = []
    for verdict in ("regressed", "improved", "changed"):
        moved = {
            name: shown(name, one["difference"], sign=True)
            for name, one in measured(document).items()
            if one["p_holm"] is None and one["verdict"] == verdict
        }
        # Sure and invisible, as 0.02 ms: no reader can do anything with `+0.0`.
        names = _listed(f"{name} {text}" for name, text in moved.items() if re.search("[1-9]", text))
        if names:
            word = translations("statements", f"alone {verdict}")
            parts.append({of: f"{word[of]} {names[of]}" for of in LANGUAGES})
    return _listed(parts, "; ")


def _nothing(document: Mapping[str, Any]) -> Text | None:
    """How large a change of the headline metrics is excluded, or which is not because too few cases were asked."""
    main = {name: one for name, one in measured(document).items() if one["p_holm"] is not None}
    if not main:
        return None
    open_ones = {name: one for name, one in main.items() if one["verdict"] != "no difference shown"}
    bounds = _listed(
        translations(
            "statements",
            "margin" if _agrees_with_nothing(one) else "margin alone",
            metric=name,
            margin=shown(name, one["margin"]),
            low=shown(name, one["ci_low"], sign=True),
            high=shown(name, one["ci_high"], sign=True),
        )
        for name, one in (open_ones or main).items()
    )
    return bounds and {
        of: texts("statements", of)["unsure" if open_ones else "no change"].format(margins=bounds[of])
        for of in LANGUAGES
    }


def _agrees_with_nothing(one: Mapping[str, Any]) -> bool:
    """Whether an interval may be printed beside "no change": it is not adjusted for the number of metrics."""
    return bool(one["ci_low"] <= 0 <= one["ci_high"] and one["n"] >= fewest_pairs(CHANCE))


def _joined(found: Iterable[Mapping[str, Any]], said: Any, *, named: bool) -> Text | None:
    """What is said of each, one after the other, with the name of the tier where that is asked for."""
    parts = []
    for document in found:
        text: Text | None = said(document)
        if text and named:
            tier = translations(f"tiers.{document['b']['tier']}", "sentence")
            text = {of: f"{tier[of]} — {text[of]}" for of in LANGUAGES}
        parts += [text] if text and text not in parts else []
    return _listed(parts, "; ")


def _listed(parts: Iterable[Text | str], between: str = ", ") -> Text | None:
    """Texts one after the other; None where there are none."""
    found = [part if isinstance(part, dict) else dict.fromkeys(LANGUAGES, part) for part in parts]
    return {of: between.join(part[of] for part in found) for of in LANGUAGES} if found else None

"""Build the statements of comparisons, and find changed settings and labels of the compared systems."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from sqlalchemy.engine import RowMapping

from yarus.metrics.statistics.power import min_pairs
from yarus.tasks.cases.table import CASE_COLUMNS, Case, column_values
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
from yarus.tasks.comparison.metric_values import ERROR_RATE
from yarus.tasks.config.former_names import present_setting, present_value
from yarus.tasks.config.texts import LANGUAGES, TranslatedText, texts, translations
from yarus.tasks.config.texts.messages import told
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation import result_files
from yarus.tasks.evaluation.config import EvaluationConfig
from yarus.tasks.evaluation.judge_standing import find_stand_in_metrics
from yarus.tasks.evaluation.number_format import format_metric

COMPARED_COLUMNS: tuple[str, ...] = ("case_id", "question", "text", "cluster", "stratum", "relevant", "grades")
COMPARED_COLUMNS += ("reference", "answerable", "shown", "human_score")
"""Columns with what a case asks and what its values depend on."""


def differ_only_in_cases(differs: Sequence[KeyDifference]) -> bool:
    """Return whether two evaluations differ only in the content of the case set, not in measurement or name."""
    return bool(differs) and all(part["part"] == "cases.sha256" for part in differs)


def find_equally_labelled(a: RowMapping, b: RowMapping) -> tuple[LabelsChanged, set[str]]:
    """Return what changed, and the ids of the cases with equal labels on both sides.

    Raises:
        ResultsUnavailable: a file is missing, damaged or another evaluation's.
    """
    before, after = (_read_content(row) for row in (a, b))
    common = before.keys() & after.keys()
    equal_ids = {name for name in common if before[name] == after[name]}
    changed: LabelsChanged = {
        "n": len(common) - len(equal_ids),
        "n_common": len(common),
        "only_a": len(before) - len(common),
        "only_b": len(after) - len(common),
    }
    return changed, equal_ids


def select_cases(cases: pa.Table, ids: set[str]) -> pa.Table:
    """Return the cases of these ids."""
    return cases.filter(pa.array([name in ids for name in column_values(cases, "case_id")], pa.bool_()))


def _read_content(row: RowMapping) -> dict[str, Case]:
    """Return what is asked and labelled, by case id; the order of labels does not matter."""
    cases = result_files.read_results(row["parquet"], without=CASE_COLUMNS.keys() - COMPARED_COLUMNS)
    return {case.pop("case_id"): _normalise_case(case) for case in cases.to_pylist()}


def _normalise_case(case: Case) -> Case:
    relevant = case.pop("relevant", None) or ()
    grades = case.pop("grades", None) or [1.0] * len(relevant)
    labels = dict(zip(relevant, grades, strict=True))
    return {name: value for name, value in case.items() if value is not None} | {"labels": labels}


AUTOMATIC_PARTS: tuple[str, ...] = ("batch_size", "n_batches", "source_loaded_at", "index_recall", "exam_of")
AUTOMATIC_PARTS += ("exam_period", "examined", "cases", "again", "anchor", "part_of")
"""Parts of the configuration that are not set by a person."""
EXTRA_SETTINGS: tuple[str, ...] = ("embedder_backend", "embedder_model", "query_prefix", "passage_prefix")
EXTRA_SETTINGS += ("refusals", "rubrics", "mask_calls", "sut_python", "sut_service", "retriever_service")
EXTRA_SETTINGS += ("reranker_model", "reranker_service")
"""Settings that change the system but are not part of the configuration."""
ROLES = ("generator", "judge", "gate")
ROLE_SETTINGS = ("base_url", "temperature", "max_tokens", "prompt")
IGNORED_SETTINGS = ("concurrency",)
DERIVED_FROM = {
    "embedder": ("retriever",),
    "embedder_identity": ("embedder", "retriever"),
    "vectors": ("retriever", "embedder"),
    "reranker_identity": ("reranker",),
    "rerank_depth": ("reranker",),
    "embedder_model": ("embedder", "retriever"),
}
"""Parts that change automatically if one of these is changed."""
FIRST_SETTINGS = ("sut_label", "sut", "retriever", "embedder", "reranker", "generator", "generator_prompt", "corpus")
MAX_SETTING_LENGTH = 100


def changed_settings(before: RowMapping, after: RowMapping) -> list[SettingDifference]:
    """Return the settings that differ, with both values; those set by hand come first.

    Args:
        before, after: rows of the journal.
    """
    old, new = _flatten_settings(before), _flatten_settings(after)
    key_names = {name for row in (before, after) for name, _ in flatten(row["comparability"] or {})}
    ordered = sorted(
        {**old, **new}, key=lambda name: FIRST_SETTINGS.index(name) if name in FIRST_SETTINGS else len(FIRST_SETTINGS)
    )
    names = [name for name in ordered if old.get(name) != new.get(name) and name not in key_names]
    names = [name for name in names if not (set(DERIVED_FROM.get(name, ())) & set(names))]
    return [{"name": name, "a": old.get(name), "b": new.get(name)} for name in names]


def format_setting(value: Any) -> str:
    """Format a value for people: a dash for None, the beginning of digests and long texts."""
    if value is None or value == "":
        return "—"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = " ".join(text.split())
    if len(text) == 64 and set(text) <= set("0123456789abcdef"):
        return text[:8]
    return text if len(text) <= MAX_SETTING_LENGTH else f"{text[: MAX_SETTING_LENGTH - 1]}…"


def flatten(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaf values of a nested document by dotted names."""
    if not isinstance(value, dict):
        yield name, value
        return
    for key in value:
        yield from flatten(value[key], f"{name}.{key}" if name else key)


def _flatten_settings(row: RowMapping) -> dict[str, Any]:
    """Return everything that may have been changed, by dotted names."""
    configuration = EvaluationConfig.of(row).document(without=AUTOMATIC_PARTS)
    stored_settings: Mapping[str, Any] = row["settings"] or {}
    values = {"sut_label": row["sut_label"], **dict(flatten(dict(configuration)))}
    values |= dict(flatten({name: stored_settings[name] for name in EXTRA_SETTINGS if name in stored_settings}))
    for role in (name for name in ROLES if name in configuration):
        values |= {f"{role}.{name}": stored_settings.get(role, {}).get(name) for name in ROLE_SETTINGS}
    values |= dict(flatten({"versions": row["versions"] or {}}))
    return {name: value for name, value in values.items() if name.rpartition(".")[2] not in IGNORED_SETTINGS}


CHANCE = 0.05
"""Share of the metrics whose own p shows a change although there is none."""


def build_statements(documents: Sequence[Compared], *, named: bool = False) -> list[Statement]:
    """Return the statements: proven changes, changed settings, unadjusted changes and what was not compared.

    For an invalid evaluation, only the reason is stated; nothing is claimed about changes between evaluations that are
    not comparable, or of an evaluation with itself.

    Args:
        documents: comparisons, as `yarus.tasks.comparison.compare.compare` returns them, and evaluations that could not
            be compared, as `yarus.tasks.comparison.baseline_comparison.compare_with_accepted` returns them.
        named: prefix each statement with its tier.
    """
    valid = [document for document in documents if not is_invalid(document) and not is_same_evaluation(document)]
    compared = [document for document in valid if "metrics" in document]
    comparable = [document for document in compared if document["comparable"]]
    not_compared = [document for document in valid if "metrics" not in document]
    regressed, improved = (
        _collect_texts(comparable, partial(_proven_text, verdict=verdict), with_tiers=named)
        for verdict in ("regressed", "improved")
    )
    sentences: list[tuple[StatementKind, TranslatedText | None]] = [
        (
            "invalid",
            _collect_texts(
                [document for document in documents if is_invalid(document)], _invalid_text, with_tiers=named
            ),
        ),
        ("regressed", regressed),
        ("improved", improved),
        ("nothing", None if regressed or improved else _collect_texts(comparable, _unchanged_text, with_tiers=named)),
        ("failures", _collect_texts(compared, _failures_text, with_tiers=named)),
        ("settings", changed_settings_text(*valid)),
        ("measured otherwise", _collect_texts(compared, _key_text, with_tiers=named)),
        ("labels changed", _collect_texts(compared, _labels_changed_text, with_tiers=named)),
        ("not judged", _collect_texts(compared, _not_judged_text, with_tiers=named)),
        ("alone", _unadjusted_text(comparable, with_tiers=named)),
        ("not compared", _collect_texts(not_compared, _not_compared_text, with_tiers=named)),
    ]
    return [{"kind": kind, "label": translations("statements", kind), "text": text} for kind, text in sentences if text]


def add_statements(sides: Sides, changes: Changes) -> EvaluationComparison:
    """Return the whole comparison with its statements."""
    document: EvaluationComparison = {**sides, **changes, "statements": []}
    reach: Statement = {
        "kind": "reach",
        "label": translations("statements", "reach"),
        "text": detectable_effect_text(document),
    }
    has_reach = document["comparable"] and not is_invalid(document) and not is_same_evaluation(document)
    return {**document, "statements": [*build_statements([document]), *((reach,) if has_reach else ())]}


def is_invalid(document: Mapping[str, Any]) -> bool:
    """Return whether one of the evaluations is invalid, so that no change can be stated."""
    return "invalid" in (document["a"]["state"], document["b"]["state"])


def is_same_evaluation(document: Mapping[str, Any]) -> bool:
    """Return whether both sides are one evaluation, so that there is nothing to compare."""
    return bool(document["a"]["evaluation_id"] == document["b"]["evaluation_id"])


def format_statement(statement: Statement, language: str) -> str:
    """Format a statement as one line."""
    return f"{statement['label'][language]}: {statement['text'][language]}."


def detectable_effect_text(document: Mapping[str, Any]) -> TranslatedText:
    """Return the detectable difference for this many cases, for the tier's first judged metric."""
    metrics = judged_metrics(document)
    if not metrics:
        return translations("statements", "unmeasured")
    name = next((name for name in TIERS[document["b"]["tier"]].headlines if name in metrics), next(iter(metrics)))
    row = metrics[name]
    grouped = row["groups"] is not None
    if row["min_detectable_effect"] is None:
        key = "nothing moved" if row["ci_low"] == 0 == row["ci_high"] else "too few groups" if grouped else "too few"
    else:
        key = {"no difference shown": "excluded", "inconclusive": "not excluded"}.get(row["verdict"], "found")
    fields = {
        "metric": name,
        "n": row["n"],
        "groups": row["groups"],
        "margin": "" if row["margin"] is None else format_metric(name, row["margin"]),
        "detectable": "" if row["min_detectable_effect"] is None else format_metric(name, row["min_detectable_effect"]),
        "far": format_metric(name, max(abs(row["ci_low"]), abs(row["ci_high"]))),
    }
    pairs = translations("statements", "pairs in groups" if grouped else "pairs", **fields)
    return {
        language: texts("statements", language)[key].format(**fields, pairs=pairs[language]) for language in LANGUAGES
    }


def compared_metrics(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the metrics that were compared and have all figures."""
    return {name: row for name, row in document.get("metrics", {}).items() if row["reason"] is None}


def judged_metrics(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the compared metrics without those that a stand-in judged on one of the sides."""
    metrics = compared_metrics(document)
    unjudged = find_unjudged(document, metrics)
    return {name: row for name, row in metrics.items() if name not in unjudged}


def find_unjudged(document: Mapping[str, Any], names: Collection[str]) -> set[str]:
    """Return the metrics that a stand-in judged on one of the sides: they do not measure quality."""
    return set().union(*(find_stand_in_metrics(document[side].get("system", {}), names) for side in ("a", "b")))


def displayed_verdicts(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the key of the text that tables print as each metric's verdict.

    Metrics without a difference, of a stand-in judge, or of evaluations that are not comparable have no verdict.
    """
    metrics = document["metrics"]
    unjudged = find_unjudged(document, metrics)
    return {
        name: "not compared"
        if row["difference"] is None or not document["comparable"]
        else "not judged"
        if name in unjudged
        else row["verdict"]
        for name, row in metrics.items()
    }


def proven_changes(document: Mapping[str, Any], verdict: str) -> dict[str, Mapping[str, Any]]:
    """Return the metrics whose change is beyond chance, adjusted for their number; failures of the system come first.

    Args:
        document: the comparison.
        verdict: `regressed` or `improved`.
    """
    rows = judged_metrics(document).items()
    proven = [(name, row) for name, row in rows if row["p_holm"] is not None and row["verdict"] == verdict]
    return dict(sorted(proven, key=lambda entry: verdict == "improved" or entry[0] != ERROR_RATE))


def setting_name(name: str, language: str) -> str:
    """Return the display name of a stored setting with the name by which it is set."""
    display_name = texts("setting_names", language).get(name)
    return f"{display_name} ({present_setting(name)})" if display_name else present_setting(name)


def changed_settings_text(*documents: Mapping[str, Any]) -> TranslatedText | None:
    """Return the changes of the system, each once across tiers; None if nothing was changed."""
    changes = [
        (change["name"], change["a"], change["b"]) for document in documents for change in document["changed_settings"]
    ]
    return _join(_format_change(*change) for position, change in enumerate(changes) if change not in changes[:position])


def _format_change(name: str, a: Any, b: Any) -> TranslatedText:
    values = " → ".join(format_setting(present_value(name, value)) for value in (a, b))
    return {language: f"{setting_name(name, language)}: {values}" for language in LANGUAGES}


def _key_text(document: Mapping[str, Any]) -> TranslatedText | None:
    return _join(_format_change(part["part"], part["a"], part["b"]) for part in document["key_differences"])


def _invalid_text(document: Mapping[str, Any]) -> TranslatedText | None:
    """Return which evaluations are invalid, and why."""
    parts = []
    for side in (document["a"], document["b"]):
        name, error = side["evaluation_id"], side["error"]
        if side["state"] == "invalid":
            parts.append({language: f"{name} ({told(error, language)})" if error else name for language in LANGUAGES})
    return _join(parts, "; ")


def _failures_text(document: Mapping[str, Any]) -> TranslatedText | None:
    """Return at how many common questions the system failed, and the headline metrics without these."""
    failures = document["failed_cases"]
    if failures is None:
        return None
    answered = ", ".join(
        f"{name} {format_metric(name, means['a'])} → {format_metric(name, means['b'])}"
        for name, means in failures["answered"].items()
    )
    fields = {"a": failures["a"], "b": failures["b"], "n": document["n_common"], "answered": answered}
    if not failures["are_losses"]:
        return translations("statements", "failed alike", **fields)
    return translations("statements", "failed" if answered else "failed only", **fields)


def _labels_changed_text(document: Mapping[str, Any]) -> TranslatedText | None:
    """Return how many common questions are left out, and how many cases only one side has; None if none is."""
    changed = document.get("labels_changed")
    if not changed or not any(changed[name] for name in ("n", "only_a", "only_b")):
        return None
    return translations("statements", "left out" if changed["n"] else "not common", **changed)


def _not_compared_text(document: Mapping[str, Any]) -> TranslatedText | None:
    """Return the differing parts or the reason; None if nothing was measured on both sides."""
    return _key_text(document) or (
        {language: told(document["reason"], language) for language in LANGUAGES} if document.get("reason") else None
    )


def _proven_text(document: Mapping[str, Any], *, verdict: str) -> TranslatedText | None:
    return _join(
        f"{name} {format_metric(name, row['a'])} → {format_metric(name, row['b'])} "
        f"({format_metric(name, row['difference'], sign=True)})"
        for name, row in proven_changes(document, verdict).items()
    )


def _not_judged_text(document: Mapping[str, Any]) -> TranslatedText | None:
    """Return the headline metrics that a stand-in judged, with both values."""
    metrics, judged = compared_metrics(document), judged_metrics(document)
    return _join(
        f"{name} {format_metric(name, metrics[name]['a'])} → {format_metric(name, metrics[name]['b'])}"
        for name in TIERS[document["b"]["tier"]].headlines
        if name in metrics and name not in judged
    )


def _unadjusted_text(compared: Sequence[Mapping[str, Any]], *, with_tiers: bool) -> TranslatedText | None:
    """Return the other metrics whose own p shows a change, and how many of these to expect by chance."""
    text = _collect_texts(compared, _other_changes_text, with_tiers=with_tiers)
    if text is None:
        return None
    n = sum(row["p_holm"] is None for document in compared for row in judged_metrics(document).values())
    chance = translations("statements", "by chance", n=n, chance=f"{CHANCE * n:.0f}" if CHANCE * n >= 1 else "<1")
    return {language: f"{text[language]} ({chance[language]})" for language in LANGUAGES}


def _other_changes_text(document: Mapping[str, Any]) -> TranslatedText | None:
    parts = []
    for verdict in ("regressed", "improved", "changed"):
        changes = {
            name: format_metric(name, row["difference"], sign=True)
            for name, row in judged_metrics(document).items()
            if row["p_holm"] is None and row["verdict"] == verdict
        }
        # Significant but rounded to zero, such as 0.02 ms: `+0.0` would not help a reader.
        names = _join(f"{name} {text}" for name, text in changes.items() if re.search("[1-9]", text))
        if names:
            word = translations("statements", f"alone {verdict}")
            parts.append({language: f"{word[language]} {names[language]}" for language in LANGUAGES})
    return _join(parts, "; ")


def _unchanged_text(document: Mapping[str, Any]) -> TranslatedText | None:
    """Return how large a change of the headline metrics is excluded, or which is not for lack of cases."""
    headlines = {name: row for name, row in judged_metrics(document).items() if row["p_holm"] is not None}
    if not headlines:
        return None
    undecided = {name: row for name, row in headlines.items() if row["verdict"] != "no difference shown"}
    bounds = _join(
        translations(
            "statements",
            "margin" if _is_consistent_with_no_change(row) else "margin alone",
            metric=name,
            margin=format_metric(name, row["margin"]),
            low=format_metric(name, row["ci_low"], sign=True),
            high=format_metric(name, row["ci_high"], sign=True),
        )
        for name, row in (undecided or headlines).items()
    )
    return bounds and {
        language: texts("statements", language)["unsure" if undecided else "no change"].format(margins=bounds[language])
        for language in LANGUAGES
    }


def _is_consistent_with_no_change(row: Mapping[str, Any]) -> bool:
    """Return whether an interval may be printed next to "no change": it is not adjusted for the number of metrics."""
    return bool(row["ci_low"] <= 0 <= row["ci_high"] and row["n"] >= min_pairs(CHANCE))


def _collect_texts(documents: Iterable[Mapping[str, Any]], describe: Any, *, with_tiers: bool) -> TranslatedText | None:
    """Return the texts of the documents in one list, with the name of the tier if `with_tiers`."""
    parts = []
    for document in documents:
        text: TranslatedText | None = describe(document)
        if text and with_tiers:
            tier = translations(f"tiers.{document['b']['tier']}", "sentence")
            text = {language: f"{tier[language]} — {text[language]}" for language in LANGUAGES}
        parts += [text] if text and text not in parts else []
    return _join(parts, "; ")


def _join(parts: Iterable[TranslatedText | str], separator: str = ", ") -> TranslatedText | None:
    """Join texts with a separator; None if there are no texts."""
    dicts = [part if isinstance(part, dict) else dict.fromkeys(LANGUAGES, part) for part in parts]
    return {language: separator.join(part[language] for part in dicts) for language in LANGUAGES} if dicts else None

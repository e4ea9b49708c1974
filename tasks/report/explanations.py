"""Explanations of a change: sentences, and the contributions of parts, pages and questions."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Engine

from yarus.db.errors import InputError, ResultsUnavailable
from yarus.tasks.comparison.explanation.explain import explain
from yarus.tasks.comparison.explanation.explanation_schema import ExplainedMetric, ExplainedPart, Explanation
from yarus.tasks.comparison.explanation.largest_changes import STAGES, explanation_sentences
from yarus.tasks.config.texts import LANGUAGES, TranslatedText, translations
from yarus.tasks.evaluation.corpus_versions import PAGE_CHANGES
from yarus.tasks.evaluation.number_format import format_difference_interval, format_metric
from yarus.tasks.report.bars import difference_bar
from yarus.tasks.report.embedded_data import Document


def explanation_view(engine: Engine, before: str, after: str) -> Document | None:
    """Return the explanation of a change for the templates; None if the two differ in more than their questions."""
    try:
        explanation = explain(engine, before, after)
    except (InputError, ResultsUnavailable):  # the comparison on the same page states the reason
        return None
    sentences = {language: list(explanation_sentences(explanation, language)) for language in LANGUAGES}
    if not sentences[LANGUAGES[0]]:
        return None
    by_sentence = [dict(zip(sentences, texts, strict=True)) for texts in zip(*sentences.values(), strict=True)]
    name, explained = next(iter(explanation["metrics"].items()), (None, None))
    largest = {"metric": name, **_largest_contributions(name, explained)} if name and explained else None
    parts = [row for metric, explained in explanation["metrics"].items() for row in _part_views(metric, explained)]
    return {
        "sentences": by_sentence,
        "parts": parts,
        "largest": largest,
        "by": translations("explanation", f"topics by {explanation['topic_source']}"),
        "corpus": _corpus_text(explanation),
    }


def _part_views(name: str, explained: ExplainedMetric) -> list[Document]:
    """Return each part of a difference with its bar; all bars have one scale."""
    labelled = [(translations("explanation", "by questions"), explained["questions"])]
    if explained["answers"]:
        labelled.append((translations("explanation", "by answers"), explained["answers"]))
    groups: list[tuple[str, Mapping[Any, ExplainedPart] | None, Sequence[str]]] = [
        ("fates", explained["page_changes"], [fate for fate in PAGE_CHANGES if fate != "untouched"]),
        ("explained_stages", explained["stages"], STAGES),
    ]
    grouped = [(section, key, group[key]) for section, group, keys in groups for key in keys if group and key in group]
    labelled += [(_label(section, key), part) for section, key, part in grouped if part["value"] or part["ci_high"]]
    reach = max(max(abs(part["ci_low"]), abs(part["ci_high"])) for _, part in labelled)
    return [
        {
            "metric": name if index == 0 else None,
            "part": label,
            "text": format_metric(name, part["value"], sign=True),
            "bar": difference_bar({"difference": part["value"], "min_detectable_effect": reach, **part}),
            "between": format_difference_interval(name, part),
        }
        for index, (label, part) in enumerate(labelled)
    ]


def _label(section: str, key: str) -> TranslatedText:
    prefix = "pages" if section == "fates" else None
    return {
        language: f"\N{EN DASH} {translations('explanation', prefix, fate=text)[language] if prefix else text}"
        for language, text in translations(section, key).items()
    }


def _largest_contributions(name: str, explained: ExplainedMetric) -> Document:
    return {
        "topics": [
            {
                **row,
                "questions": format_metric(name, row["questions"], sign=True),
                "answers": format_metric(name, row["answers"], sign=True),
            }
            for row in explained["topics"]
        ],
        "pages": [
            {
                **row,
                "answers": format_metric(name, row["answers"], sign=True),
                "fate": translations("fates", row["page_change"])
                if row["page_change"] not in (None, "untouched")
                else None,
                "link": row["page"] if row["page"].startswith(("http://", "https://")) else None,
            }
            for row in explained["pages"]
        ],
        "cases": [
            {**row, "before": format_metric(name, row["before"]), "after": format_metric(name, row["after"])}
            for row in explained["cases"]
        ],
    }


def _corpus_text(explanation: Explanation) -> TranslatedText | None:
    if explanation["corpus"] is None or not any(n for fate, n in explanation["corpus"].items() if fate != "untouched"):
        return None
    fate_texts = {fate: translations("fates", fate) for fate in explanation["corpus"]}
    return {
        language: translations("explanation", "corpus")[language]
        + ", ".join(f"{fate_texts[fate][language]} {n}" for fate, n in explanation["corpus"].items())
        for language in LANGUAGES
    }

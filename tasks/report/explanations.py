"""What moved since the evaluation before: the sentences, and the parts, pages and questions that they are made of."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Engine

from yarus.db.errors import InputError, ResultsUnavailable
from yarus.tasks.comparison.explanation.explain import explain
from yarus.tasks.comparison.explanation.explanation_schema import ExplainedMetric, ExplainedPart, Explanation
from yarus.tasks.comparison.explanation.largest import STAGES, sentences
from yarus.tasks.config.texts import LANGUAGES, Text, translations
from yarus.tasks.evaluation.corpus_versions import FATES
from yarus.tasks.evaluation.numbers import between, shown
from yarus.tasks.report.bars import difference_bar
from yarus.tasks.report.embedded_data import Document


def explained(engine: Engine, before: str, after: str, *, force: bool) -> Document | None:
    """What moved as the templates read it; None where that cannot be told."""
    try:
        found = explain(engine, before, after, force=force)
    except (InputError, ResultsUnavailable):  # the comparison beside it says why
        return None
    said = {language: list(sentences(found, language)) for language in LANGUAGES}
    if not said[LANGUAGES[0]]:
        return None
    by_sentence = [dict(zip(said, of, strict=True)) for of in zip(*said.values(), strict=True)]
    name, one = next(iter(found["metrics"].items()), (None, None))
    largest = {"metric": name, **_largest(name, one)} if name and one else None
    parts = [row for metric, of in found["metrics"].items() for row in _parts(metric, of)]
    return {
        "sentences": by_sentence,
        "parts": parts,
        "largest": largest,
        "by": translations("explanation", f"topics by {found['topics_by']}"),
        "corpus": _corpus(found),
    }


def _parts(name: str, found: ExplainedMetric) -> list[Document]:
    """Every part of a difference with its bar, all of one metric on one scale."""
    named = [(translations("explanation", "by questions"), found["questions"])]
    if found["answers"]:
        named.append((translations("explanation", "by answers"), found["answers"]))
    below: list[tuple[str, Mapping[Any, ExplainedPart] | None, Sequence[str]]] = [
        ("fates", found["fates"], [fate for fate in FATES if fate != "untouched"]),
        ("explained_stages", found["stages"], STAGES),
    ]
    more = [(section, key, of[key]) for section, of, keys in below for key in keys if of and key in of]
    named += [(_below(section, key), part) for section, key, part in more if part["value"] or part["ci_high"]]
    reach = max(max(abs(part["ci_low"]), abs(part["ci_high"])) for _, part in named)
    return [
        {
            "metric": name if place == 0 else None,
            "part": label,
            "text": shown(name, part["value"], sign=True),
            "bar": difference_bar({"difference": part["value"], "smallest_detectable": reach, **part}),
            "between": between(name, part),
        }
        for place, (label, part) in enumerate(named)
    ]


def _below(section: str, key: str) -> Text:
    prefix = "pages" if section == "fates" else None
    return {
        language: f"\N{EN DASH} {translations('explanation', prefix, fate=text)[language] if prefix else text}"
        for language, text in translations(section, key).items()
    }


def _largest(name: str, found: ExplainedMetric) -> Document:
    return {
        "topics": [
            {
                **one,
                "questions": shown(name, one["questions"], sign=True),
                "answers": shown(name, one["answers"], sign=True),
            }
            for one in found["topics"]
        ],
        "pages": [
            {
                **one,
                "answers": shown(name, one["answers"], sign=True),
                "fate": translations("fates", one["fate"]) if one["fate"] not in (None, "untouched") else None,
                "link": one["page"] if one["page"].startswith(("http://", "https://")) else None,
            }
            for one in found["pages"]
        ],
        "cases": [
            {**one, "before": shown(name, one["before"]), "after": shown(name, one["after"])} for one in found["cases"]
        ],
    }


def _corpus(found: Explanation) -> Text | None:
    if found["corpus"] is None or not any(n for fate, n in found["corpus"].items() if fate != "untouched"):
        return None
    named = {fate: translations("fates", fate) for fate in found["corpus"]}
    return {
        language: translations("explanation", "corpus")[language]
        + ", ".join(f"{named[fate][language]} {n}" for fate, n in found["corpus"].items())
        for language in LANGUAGES
    }

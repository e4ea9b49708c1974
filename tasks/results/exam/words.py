"""What an exam says of a judge, in words: the same in terminal, report and artifacts."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from yarus.metrics.exam_kinds import KINDS, PROMPTS
from yarus.tasks.models.stand_ins import JUDGE
from yarus.tasks.results.exam.documents import CONCLUSIVE, Exam, PromptExam
from yarus.tasks.results.numbers import interval, shown
from yarus.tasks.texts import LANGUAGES, Text, texts, translations


class PromptRow(NamedTuple):
    """A prompt in the table of an exam; the figures with their intervals."""

    prompt: str
    auc: str
    caught: str
    passed: str
    verdict: Text
    sound: bool


class KindRow(NamedTuple):
    """A kind of answer in the second table."""

    name: Text
    hits: list[str]
    """By prompt: how many answers were scored as they deserve, of all that got a score; empty where none was asked."""


class ExamTables(NamedTuple):
    """An exam as terminal and report show it."""

    prompts: list[PromptRow]
    kinds: list[KindRow]


def exam_tables(summary: Mapping[str, Any]) -> ExamTables:
    """The tables of an evaluation, as `yarus.tasks.results.summary.summary` gives it.

    By prompt: its area under the curve, what it caught and passed, the verdict; by kind: what was scored rightly.
    """
    exam = _in_order(summary.get("exam", {}))
    by_kind = [KindRow(translations("exam_kinds", kind), [_hits(of, kind) for of in exam.values()]) for kind in KINDS]
    return ExamTables(
        [
            PromptRow(
                prompt,
                _figure(summary, f"exam_auc_{prompt}"),
                _figure(summary, f"exam_sensitivity_{prompt}"),
                _figure(summary, f"exam_specificity_{prompt}"),
                outcome_text(found),
                found["outcome"] == "sound",
            )
            for prompt, found in exam.items()
        ],
        [row for row in by_kind if any(row.hits)],
    )


def outcome_text(found: PromptExam) -> Text:
    """What the exam says of one prompt: "always gives 1.00"."""
    figures = {name: found[name] or 0 for name in ("score", "scored", "asked", "cases")}
    return {
        language: texts("exam", language)[found["outcome"]].format(
            **figures,
            blind_to="; ".join(_slice_name(name, language) for name in found.get("blind_to", ())),
        )
        for language in LANGUAGES
    }


def _slice_name(name: str, language: str) -> str:
    return texts("exam_kinds" if name in KINDS else "exam_slices", language)[name]


def exam_text(summary: Mapping[str, Any]) -> Text:
    """What the exam says of a judge: the prompts that it passed in, and what is wrong with the others."""
    exam = _in_order(summary.get("exam", {}))
    if summary["system"].get("exam_of", {}).get("gate", {}).get("model") == JUDGE:  # a stand-in, no language model
        exam.pop("gate", None)
    if summary["system"].get("judge", {}).get("model") == JUDGE:
        return {language: texts("exam", language)["stand-in"] for language in LANGUAGES}
    return {language: _sentences(exam, language) for language in LANGUAGES}


def _in_order(exam: Exam) -> Exam:
    """The prompts as they are listed elsewhere, rubrics last; the database keeps no order."""
    return {name: exam[name] for name in (*PROMPTS, *sorted(exam.keys() - {*PROMPTS})) if name in exam}


def _figure(summary: Mapping[str, Any], name: str) -> str:
    metric = summary["metrics"][name]
    text = shown(name, metric["value"])
    return text if metric["value"] is None else f"{text} ({interval(name, metric)})"


def _hits(found: PromptExam, kind: str) -> str:
    return next((f"{of['right']} / {of['n']}" for of in found["kinds"] if of["kind"] == kind and of["n"]), "")


def _sentences(exam: Exam, language: str) -> str:
    words = texts("exam", language)
    if not exam:
        return words["none"]
    named = {name: f"{name} ({outcome_text(found)[language]})" for name, found in exam.items()}
    sound = [name for name, found in exam.items() if found["outcome"] == "sound"]
    failed = [named[n] for n, found in exam.items() if found["outcome"] in CONCLUSIVE and n not in sound]
    unsure = [named[name] for name, found in exam.items() if found["outcome"] not in CONCLUSIVE]
    said = [words["sat"].format(names=", ".join(sound))] if sound else []
    said += [words["failed" if sound else "all failed"].format(names=", ".join(failed))] if failed else []
    said += [words["unsure"].format(names=", ".join(unsure))] if unsure else []
    return " ".join(said)

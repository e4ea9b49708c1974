"""How the judges of an evaluation stand: which exam each of its prompts has sat, and whether it passed."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Literal, get_args

from sqlalchemy import Engine

from yarus.db.stores.exams import Sat, newest_exams
from yarus.metrics.table import metric
from yarus.tasks.evaluation.config import EvaluationConfig, JudgeIdentity
from yarus.tasks.evaluation.findings_schema import Exam, Outcome
from yarus.tasks.models.stand_ins import JUDGE

CONCLUSIVE = (*(outcome for outcome in get_args(Outcome) if outcome not in ("incomplete", "few")), "coarse")
"""The outcomes that say something of a judge; an older exam goes before one of the others. `coarse` is what earlier
versions called a judge that misses changed numbers, names and negations."""


EXAM_NIGHTS = 30
"""Nights for which an exam holds; what it asks is bought anew once in so many."""
FILLING = "relevance"
"""The prompt whose word is not a score but the labels themselves."""
Standing = Literal["passed", "failed", "missing", "old", "stand-in", "filled"]
"""Of the judge whose opinion a number is: it passed the newest exam of its key; it failed it; it sat none; the exam is
older than 30 nights; no language model judged; or the judge has filled labels up, which only people's labels make
good, and no exam."""


def exams_of(engine: Engine, configs: Iterable[EvaluationConfig]) -> dict[str, Sat]:
    """The newest exams of the judges of evaluations, by `judge_key`.

    Args:
        engine: of our own database.
        configs: of the evaluations, with their judges and whom they examined.
    """
    keys = {key for config in configs for key in _keys(config).values() if key}
    return newest_exams(engine, keys, CONCLUSIVE) if keys else {}


def standings(sat: Mapping[str, Sat], config: EvaluationConfig, at: datetime) -> dict[str, Standing]:
    """How every prompt stands that judged an evaluation.

    Args:
        sat: the newest exams, as `exams_of` finds them.
        config: of the evaluation: its judge, and what it examined itself.
        at: when it began: an exam of the nights before holds, and any after.

    Returns:
        Prompt -> standing; empty where nothing was judged.
    """
    own = {key: Sat(outcome, at) for key, outcome in (config.examined or {}).items() if outcome in CONCLUSIVE}
    known = own | dict(sat)
    return {
        prompt: "stand-in" if key is None else "filled" if prompt == FILLING else _standing(known.get(key), at)
        for prompt, key in _keys(config).items()
    }


def standing_of(name: str, by_prompt: Mapping[str, Standing]) -> Standing | None:
    """How the judge stands whose opinion a metric is; None where it is nobody's, or no metric that is known.

    What was held against known answers needs no exam, but of a stand-in it is worth nothing either.
    """
    try:
        declared = metric(name)
    except ValueError:  # stored by another version
        return None
    found = by_prompt.get(declared.opinion or (FILLING if declared.of_relevance else ""))
    return found if not declared.checked or found == "stand-in" else None


def _keys(config: EvaluationConfig) -> dict[str, str | None]:
    """The key of every judged prompt; None of a stand-in."""
    return {
        prompt: None if identity.get("model") == JUDGE else judge_key(identity, prompt)
        for identity in judges_of(config)
        for prompt in identity.get("prompts", {})
    }


def judges_of(config: EvaluationConfig) -> list[JudgeIdentity]:
    """The judges of an evaluation: whom it asked, and whom it examined."""
    examined = config.exam_of or {}
    asked = [config.judge, config.claims, config.nuggets, config.citations, config.dialogs]
    return [identity for identity in (*asked, examined.get("judge"), examined.get("gate")) if identity]


def _standing(sat: Sat | None, at: datetime) -> Standing:
    if sat is None:
        return "missing"
    if sat.at < at - timedelta(days=EXAM_NIGHTS):
        return "old"
    return "passed" if sat.outcome == "sound" else "failed"


def examined(config: EvaluationConfig, exam: Exam) -> dict[str, str]:
    """Key of judge and prompt -> outcome, by which the exam is found again; no language model sits none."""
    return {key: exam[prompt]["outcome"] for prompt, key in _keys(config).items() if key and prompt in exam}


def judge_key(identity: JudgeIdentity, prompt: str) -> str:
    """What a judge's numbers of one prompt stand or fall with: model, its parameters, and that prompt's wording."""
    whole = {**identity, "prompts": {prompt: identity.get("prompts", {}).get(prompt)}}
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:16]

"""Standing of an evaluation's judges: the newest exam of each judged prompt, and its outcome."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from sqlalchemy import Engine

from yarus.db.stores.exams import ExamRecord, find_newest_exams
from yarus.metrics.table import get_metric
from yarus.tasks.evaluation.config import EvaluationConfig, JudgeIdentity
from yarus.tasks.evaluation.findings_schema import Exam, Outcome
from yarus.tasks.models.stand_ins import JUDGE_NAME

CONCLUSIVE_OUTCOMES = (*(outcome for outcome in get_args(Outcome) if outcome not in ("incomplete", "few")), "coarse")
"""Outcomes that decide about a judge; an older exam with one of them counts more than a newer one without. Earlier
versions used `coarse` for a judge that misses changed numbers, names and negations."""


EXAM_VALID_NIGHTS = 30
"""Nights for which an exam is valid; its calls are paid for again once in that period."""
LABELLING_PROMPT = "relevance"
"""The prompt that gives labels, not scores."""
JudgeStanding = Literal["passed", "failed", "missing", "old", "stand-in", "filled"]
"""`passed` or `failed`: outcome of the newest exam of the judge; `missing`: it took none; `old`: it took its newest
exam more than 30 nights before the evaluation; `stand-in`: no language model judged; `filled`: it filled labels, which
are checked by people's labels, not by exams."""


def read_newest_exams(engine: Engine, configs: Iterable[EvaluationConfig]) -> dict[str, ExamRecord]:
    """Return the newest exams of the judges of some evaluations, by `judge_key`.

    Args:
        engine: of our own database.
        configs: of the evaluations, with their judges and the judges they examined.
    """
    keys = {key for config in configs for key in _exam_keys(config).values() if key}
    return find_newest_exams(engine, keys, CONCLUSIVE_OUTCOMES) if keys else {}


def judge_standings(
    newest: Mapping[str, ExamRecord], config: EvaluationConfig, at: datetime
) -> dict[str, JudgeStanding]:
    """Return the standing of every prompt that judged an evaluation.

    Args:
        newest: the newest exams, as `read_newest_exams` returns them.
        config: of the evaluation: its judge, and what it examined itself.
        at: when it began; exams of the 30 nights before count, and all later ones.

    Returns:
        Prompt -> standing; empty if nothing was judged.
    """
    own_exams = {
        key: ExamRecord(outcome, at)
        for key, outcome in (config.examined or {}).items()
        if outcome in CONCLUSIVE_OUTCOMES
    }
    exams = own_exams | dict(newest)
    return {
        prompt: "stand-in"
        if key is None
        else "filled"
        if prompt == LABELLING_PROMPT
        else _decide_standing(exams.get(key), at)
        for prompt, key in _exam_keys(config).items()
    }


def metric_standing(name: str, by_prompt: Mapping[str, JudgeStanding]) -> JudgeStanding | None:
    """Return the standing of the judge that a metric depends on, or None if it depends on none or is unknown.

    Metrics that are checked against known answers need no exam, but have no value if they come from a stand-in.
    """
    try:
        declared = get_metric(name)
    except ValueError:  # stored by another version
        return None
    standing = by_prompt.get(declared.opinion or (LABELLING_PROMPT if declared.of_relevance else ""))
    return standing if not declared.checked or standing == "stand-in" else None


def _exam_keys(config: EvaluationConfig) -> dict[str, str | None]:
    """Return the key of every judged prompt; None for a stand-in."""
    return {
        prompt: None if identity.get("model") == JUDGE_NAME else judge_key(identity, prompt)
        for identity in list_judges(config)
        for prompt in identity.get("prompts", {})
    }


def find_stand_in_metrics(system: Mapping[str, Any], names: Iterable[str]) -> set[str]:
    """Return the metrics that a stand-in judged, not a language model.

    Args:
        system: configuration of the evaluation, as documents have it.
        names: names of metrics.
    """
    keys = _exam_keys(EvaluationConfig.model_construct(**system))
    by_prompt: dict[str, JudgeStanding] = {prompt: "stand-in" for prompt, key in keys.items() if key is None}
    return {name for name in names if by_prompt and metric_standing(name, by_prompt) == "stand-in"}


def list_judges(config: EvaluationConfig) -> list[JudgeIdentity]:
    """Return the judges of an evaluation: those it asked, and those it examined."""
    examined = config.exam_of or {}
    judges = [config.judge, config.claims, config.nuggets, config.citations, config.dialogs]
    return [identity for identity in (*judges, examined.get("judge"), examined.get("gate")) if identity]


def _decide_standing(exam: ExamRecord | None, at: datetime) -> JudgeStanding:
    if exam is None:
        return "missing"
    if exam.at < at - timedelta(days=EXAM_VALID_NIGHTS):
        return "old"
    return "passed" if exam.outcome == "sound" else "failed"


def exam_outcomes(config: EvaluationConfig, exam: Exam) -> dict[str, str]:
    """Return outcomes by key of judge and prompt, for later look-up; stand-ins take no exam."""
    return {key: exam[prompt]["outcome"] for prompt, key in _exam_keys(config).items() if key and prompt in exam}


def judge_key(identity: JudgeIdentity, prompt: str) -> str:
    """Return the key of a judge for one prompt: a hash of model, parameters and the prompt's wording."""
    prompt_identity = {**identity, "prompts": {prompt: identity.get("prompts", {}).get(prompt)}}
    return hashlib.sha256(json.dumps(prompt_identity, sort_keys=True).encode()).hexdigest()[:16]

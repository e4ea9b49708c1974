"""Evaluate the judge itself: scores of the same answer again, and of the answer with irrelevant changes."""

import asyncio
import re
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from yarus.metrics import agreement
from yarus.metrics.statistics.intervals import NO_INTERVAL
from yarus.tasks.cases.privacy.masking import load_own_key, mask
from yarus.tasks.cases.table import Case, column_values, float_column, set_columns
from yarus.tasks.config.parameters import JudgeQuality
from yarus.tasks.config.settings import Settings
from yarus.tasks.config.texts import texts
from yarus.tasks.evaluation.identity import effective_settings
from yarus.tasks.evaluation.repeats import new_repeat_number
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.evaluation.set_metrics import SetValue, measure_agreement
from yarus.tasks.models.calls import Call, Model, Reply
from yarus.tasks.models.progress import gather_cases
from yarus.tasks.models.prompts import Prompt, read_prompts
from yarus.tasks.models.verdicts import Score, ask_for_score, get_value
from yarus.tasks.steps.generation import sum_usage
from yarus.tasks.steps.judging.judge import add_verdicts
from yarus.tasks.steps.open_models import open_model

METRIC = "faithfulness"
SENTENCE = re.compile(r"(?<=[.!?…])\s+")


async def judge_again(run: EvaluationRun[JudgeQuality], cases: pa.Table) -> pa.Table:
    """Add the judge's repeated scores of every answer, without stored calls, and the effects of harmless changes."""
    configuration = effective_settings(run)
    parameters = run.parameters
    by_name = read_prompts(configuration)
    async with open_model(run, "judge", configuration) as model:
        results = await gather_cases(
            "judge_again", (_judge_variants(model, by_name, case, run, configuration) for case in cases.to_pylist())
        )
    by_case = [verdicts for verdicts, _ in results]
    usage = {
        name: [sum_usage(other_replies, None, name) for _, other_replies in results]
        for name in ("tokens_in", "tokens_out", "cost_usd")
    }
    scores = [_score_column(by_case, f"{METRIC}#{number}") for number in range(parameters.repeats)]
    first, second = scores[:2]
    differences = np.column_stack(
        [agreement.score_differences(score, other_score) for score, other_score in combinations(scores, 2)]
    )
    latencies_by_case = [
        [reply.latency_ms for verdict in verdicts.values() for reply in verdict.replies if not reply.from_store]
        for verdicts in by_case
    ]
    # The stand-in's 0 is not measured.
    measured_latencies = [[latency for latency in latencies if latency] for latencies in latencies_by_case]
    consistency = {
        f"consistency_score{name}": _share_within(differences, delta) for name, delta in (("", 0.5), ("@0.125", 0.125))
    }
    biases = {f"bias_{name}": _score_column(by_case, f"bias_{name}") - first for name in (*ANSWER_CHANGES, "own_model")}
    return set_columns(
        add_verdicts(set_columns(cases, **usage), by_case, counting=METRIC),
        faithfulness=first,
        faithfulness_again=second,
        mean_abs_difference=_mean_over_pairs(differences),
        latency_ms=[sum(latencies) / len(latencies) if latencies else None for latencies in measured_latencies],
        **consistency,
        **biases,
    )


def measure_judge(cases: pa.Table, seed: int) -> dict[str, SetValue]:
    """Compute metrics over all answers that do not follow from totals: consistency by chance, and rank agreement."""
    first, second, users = (float_column(cases, name) for name in ("faithfulness", "faithfulness_again", "human_score"))
    complete = len(agreement.complete_pairs(first, second)[0])
    expected = agreement.chance_consistency(first, second)
    return {
        "consistency_score_expected": SetValue(expected, NO_INTERVAL, complete),
        "user_votes_spearman": measure_agreement(agreement.spearman, first, users, column_values(cases, "group"), seed),
    }


def reverse_sentences(answer: str) -> str | None:
    """Return the answer with its sentences in reverse order; None if there is only one."""
    sentences = SENTENCE.split(answer.strip())
    return " ".join(reversed(sentences)) if len(sentences) > 1 else None


ANSWER_CHANGES: dict[str, Callable[[str, str], str | None]] = {
    "padded": lambda answer, language: answer + texts("judge_probes", language)["padding"],
    "reordered": lambda answer, language: reverse_sentences(answer),
    "plea": lambda answer, language: answer + texts("judge_probes", language)["plea"],
}
"""Changes of an answer that should not move its faithfulness: (answer, language) -> changed, or None."""


async def _judge_variants(
    model: Model, prompts: dict[str, Prompt], case: Case, run: EvaluationRun[JudgeQuality], configuration: Settings
) -> tuple[dict[str, Score], list[Reply]]:
    """Return the verdicts on one answer and its changed versions, and the reply with an answer of the judge's own."""
    if case["status"] != "ok" or not case["answer"] or not case["context"]:  # only examined
        return {}, []
    prompt, first, other_replies, parameters = prompts[METRIC], new_repeat_number(run.id), [], run.parameters
    calls = {f"{METRIC}#{number}": Call(prompt, case, repeat=first + number) for number in range(parameters.repeats)}
    if parameters.bias_probes:
        language, answer = run.config.language, case["answer"]
        # Masking comes before the change: after it, names and phone numbers may not be recognised.
        answer = mask(answer, load_own_key(), language) if configuration.mask_model_input else answer
        answers_by_change = {name: change(answer, language) for name, change in ANSWER_CHANGES.items()}
        other_replies.append(await model.ask(Call(prompts["generation"], case)))
        answers_by_change["own_model"] = other_replies[0].text.strip() or None
        for name, text in answers_by_change.items():
            if text is not None:
                calls[f"bias_{name}"] = Call(prompt, {**case, "answer": text}, repeat=first)
    verdicts = await asyncio.gather(*(ask_for_score(model, call) for call in calls.values()))
    return dict(zip(calls, verdicts, strict=True)), other_replies


def _score_column(by_case: list[dict[str, Score]], name: str) -> NDArray[np.float64]:
    # None becomes NaN.
    return np.array([get_value(verdicts.get(name)) for verdicts in by_case], dtype=np.float64)


def _share_within(differences: NDArray[np.float64], delta: float) -> NDArray[np.float64]:
    """Return the share of an answer's complete pairs of scores within this distance; NaN if there is none."""
    return _mean_over_pairs(agreement.is_within_delta(differences, delta=delta))


def _mean_over_pairs(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of each row (answer) over the columns (pairs of repeats) with a value; NaN if there is none."""
    n_values = (~np.isnan(values)).sum(axis=1)
    return np.where(n_values > 0, np.nansum(values, axis=1) / np.maximum(n_values, 1), np.nan)

"""The judge itself judged: the same answer again, and the same answer changed in ways that should not matter."""

import asyncio
import re
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from yarus.metrics import agreement
from yarus.metrics.statistics.intervals import NO_INTERVAL
from yarus.tasks.cases.privacy.masking import mask, own_key
from yarus.tasks.cases.table import Case, floats, values_of, with_columns
from yarus.tasks.config.parameters import JudgeQuality
from yarus.tasks.config.settings import Settings
from yarus.tasks.config.texts import texts
from yarus.tasks.evaluation.identity import configured
from yarus.tasks.evaluation.repeats import fresh_repeat
from yarus.tasks.evaluation.run import Run
from yarus.tasks.evaluation.set_metrics import Whole, over_pairs
from yarus.tasks.models.calls import Call, Model, Reply
from yarus.tasks.models.progress import gathered
from yarus.tasks.models.prompts import Prompt, prompts
from yarus.tasks.models.verdicts import Score, ask_for_score, value_of
from yarus.tasks.steps.generation import totals
from yarus.tasks.steps.judging.judge import with_verdicts
from yarus.tasks.steps.opened import open_model

METRIC = "faithfulness"
SENTENCE = re.compile(r"(?<=[.!?…])\s+")


async def judge_again(run: Run[JudgeQuality], cases: pa.Table) -> pa.Table:
    """Adds the judge's scores of every answer, past the call store, and how far harmless changes move them."""
    configuration = configured(run)
    parameters = run.parameters
    known = prompts(configuration)
    async with open_model(run, "judge", configuration) as model:
        both = await gathered(
            "judge_again", (_case(model, known, case, run, configuration) for case in cases.to_pylist())
        )
    given = [verdicts for verdicts, _ in both]
    wrote = {name: [totals(more, None, name) for _, more in both] for name in ("tokens_in", "tokens_out", "cost_usd")}
    scores = [_scores(given, f"{METRIC}#{number}") for number in range(parameters.repeats)]
    first, second = scores[:2]
    apart = np.column_stack([agreement.differences(one, other) for one, other in combinations(scores, 2)])
    own = [[r.latency_ms for v in verdicts.values() for r in v.replies if not r.from_store] for verdicts in given]
    timed = [[latency for latency in latencies if latency] for latencies in own]  # the stand-in's 0 is not measured
    within = {f"consistency_score{name}": _within(apart, delta) for name, delta in (("", 0.5), ("@0.125", 0.125))}
    moved = {f"bias_{name}": _scores(given, f"bias_{name}") - first for name in (*CHANGES, "own_model")}
    return with_columns(
        with_verdicts(with_columns(cases, **wrote), given, counting=METRIC),
        faithfulness=first,
        faithfulness_again=second,
        mean_abs_difference=_over_pairs(apart),
        latency_ms=[sum(latencies) / len(latencies) if latencies else None for latencies in timed],
        **within,
        **moved,
    )


def measure_judge(cases: pa.Table, seed: int) -> dict[str, Whole]:
    """Of what is measured over all answers, what does not follow from totals: chance, and agreement in ranks."""
    first, second, people = (floats(cases, name) for name in ("faithfulness", "faithfulness_again", "human_score"))
    complete = len(agreement.complete_pairs(first, second)[0])
    expected = agreement.chance_consistency(first, second)
    return {
        "consistency_score_expected": Whole(expected, NO_INTERVAL, complete),
        "user_votes_spearman": over_pairs(agreement.spearman, first, people, values_of(cases, "group"), seed),
    }


def reordered(answer: str) -> str | None:
    """The answer with its sentences in reverse; None where there is one."""
    sentences = SENTENCE.split(answer.strip())
    return " ".join(reversed(sentences)) if len(sentences) > 1 else None


CHANGES: dict[str, Callable[[str, str], str | None]] = {
    "padded": lambda answer, language: answer + texts("judge_probes", language)["padding"],
    "reordered": lambda answer, language: reordered(answer),
    "plea": lambda answer, language: answer + texts("judge_probes", language)["plea"],
}
"""Changes of an answer that should not move its faithfulness: (answer, language) -> changed, or None."""


async def _case(
    model: Model, known: dict[str, Prompt], case: Case, run: Run[JudgeQuality], configuration: Settings
) -> tuple[dict[str, Score], list[Reply]]:
    """The verdicts on one answer and its changed versions, and what else was asked for: an answer of its own."""
    if case["status"] != "ok" or not case["answer"] or not case["context"]:  # it is there for the exam
        return {}, []
    prompt, past, more, parameters = known[METRIC], fresh_repeat(run.id), [], run.parameters
    asked = {f"{METRIC}#{n}": Call(prompt, case, repeat=past + n) for n in range(parameters.repeats)}
    if parameters.probes:
        language, answer = run.config.language, case["answer"]
        # Pseudonyms come before the change: what stands in another place may no longer be told for a name or a phone.
        answer = mask(answer, own_key(), language) if configuration.mask_calls else answer
        changed = {name: change(answer, language) for name, change in CHANGES.items()}
        more.append(await model.ask(Call(known["generation"], case)))
        changed["own_model"] = more[0].text.strip() or None
        for name, text in changed.items():
            if text is not None:
                asked[f"bias_{name}"] = Call(prompt, {**case, "answer": text}, repeat=past)
    verdicts = await asyncio.gather(*(ask_for_score(model, call) for call in asked.values()))
    return dict(zip(asked, verdicts, strict=True)), more


def _scores(given: list[dict[str, Score]], name: str) -> NDArray[np.float64]:
    return np.array([value_of(verdicts.get(name)) for verdicts in given], dtype=np.float64)  # None becomes NaN


def _within(apart: NDArray[np.float64], delta: float) -> NDArray[np.float64]:
    """Share of an answer's complete pairs of scores that are no farther apart; NaN where there is none."""
    return _over_pairs(agreement.within(apart, delta=delta))


def _over_pairs(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean of each row (answer) over the columns (pairs of repeats) that have a value; NaN where none has."""
    there = (~np.isnan(values)).sum(axis=1)
    return np.where(there > 0, np.nansum(values, axis=1) / np.maximum(there, 1), np.nan)

"""Compare a judge with people: whether its scores prefer the same answers of pairs that people have compared.

The file has the form of RAGChecker's `human_labeled_data.json`: a list with one row per pair and person, with
`instance_id`, `query`, `gt_answer`, `model1` and `model2` (each with its `response`), and `correctness_label`,
`completeness_label` and `overall_label`, -2..2: how much better the second response is.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from yarus.db.errors import InputError
from yarus.db.tables import JsonObject
from yarus.metrics.preferences import accuracy, pearson
from yarus.metrics.statistics import Interval, bootstrap_statistic
from yarus.metrics.statistics.groups import Floats
from yarus.tasks.comparison.experiments.experiments_schema import JudgeAndPeople, Preference
from yarus.tasks.config.connections import database
from yarus.tasks.config.settings import Language, get_settings
from yarus.tasks.evaluation.number_format import replace_non_finite
from yarus.tasks.models.calls import Call
from yarus.tasks.models.chat import open_chat
from yarus.tasks.models.prompts import read_prompts
from yarus.tasks.models.stand_ins import JUDGE_NAME
from yarus.tasks.models.verdicts import ask_for_score, get_value

ASPECTS = ("correctness", "completeness", "overall")
JUDGED_PROMPTS = ("answer_correctness", "e2e_score")
"""The prompts that need a reference, which the people had too."""
MAX_LABEL = 2
"""The largest label."""


class AnswerPair(NamedTuple):
    """Two answers to a question, with the labels of every person."""

    question: str
    reference: str
    answers: tuple[str, str]
    labels: dict[str, list[float]]
    """Aspect -> one label per person."""


async def compare_judge_with_people(
    path: Path, language: Language, *, scored: Path | None = None, seed: int = 0
) -> JudgeAndPeople:
    """Score both answers of every pair with the configured judge, and compare the differences with people's labels.

    Replies are kept in the call store: nothing is paid for twice.

    Args:
        path: the pairs.
        language: the language of the prompts.
        scored: a file of the same pairs with scores of another judge under its name in `model1` and `model2`.
        seed: the seed of the intervals' bootstrap.

    Raises:
        InputError: the file cannot be read or holds something else.
    """
    pairs = read_pairs(path)
    other_differences = _other_scores(scored, pairs) if scored else {}
    configuration = get_settings().model_copy(update={"language": language})
    texts = read_prompts(configuration)
    async with open_chat("judge", configuration, database()) as judge:
        requests = [
            ask_for_score(
                judge, Call(texts[name], {"question": pair.question, "reference": pair.reference, "answer": text})
            )
            for name in JUDGED_PROMPTS
            for pair in pairs
            for text in pair.answers
        ]
        scores = np.array([get_value(verdict) for verdict in await asyncio.gather(*requests)], dtype=np.float64)
        model = judge.describe()
    differences = scores.reshape(len(JUDGED_PROMPTS), len(pairs), 2)
    by_prompt = {name: values[:, 1] - values[:, 0] for name, values in zip(JUDGED_PROMPTS, differences, strict=True)}
    labels = {aspect: np.array([pair.labels[aspect] for pair in pairs], dtype=np.float64) for aspect in ASPECTS}
    groups = [pair.question for pair in pairs]
    return {
        "file": str(path),
        "judge": model,
        "is_stand_in": model == JUDGE_NAME,
        "pairs": len(pairs),
        "agreement_among_people": {
            aspect: _measure_preference(values[:, 0], values[:, 1:], groups, seed) if values.shape[1] > 1 else None
            for aspect, values in labels.items()
        },
        "prompts": {
            name: {aspect: _measure_preference(gaps, values, groups, seed) for aspect, values in labels.items()}
            for name, gaps in by_prompt.items()
        },
        "other_scores": {
            name: {aspect: _measure_preference(gaps[aspect], values, groups, seed) for aspect, values in labels.items()}
            for name, gaps in other_differences.items()
        },
    }


def read_pairs(path: Path) -> list[AnswerPair]:
    """Read the pairs of a file, each with the labels of equally many people.

    Raises:
        InputError: the file cannot be read or has other content; the message names the row.
    """
    try:
        rows = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise InputError("{path}: not a JSON file that can be read: {error}", path=path, error=error) from None
    pairs_by_id: dict[Any, AnswerPair] = {}
    if not isinstance(rows, list) or not rows:
        raise InputError("{path}: expected a list of pairs of answers, one row a pair and person", path=path)
    for position, row in enumerate(rows):
        try:
            answers = row["model1"]["response"], row["model2"]["response"]
            pair = AnswerPair(row["query"], row["gt_answer"], answers, {aspect: [] for aspect in ASPECTS})
            labels = {aspect: float(row[f"{aspect}_label"]) for aspect in ASPECTS}
            stored = pairs_by_id.setdefault(row["instance_id"], pair)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                "{path}: row {number} is not a labelled pair: {kind} {error}",
                path=path,
                number=position,
                kind=type(error).__name__,
                error=error,
            ) from None
        if stored[:3] != pair[:3] or not all(isinstance(text, str) for text in (*pair[:2], *answers)):
            raise InputError(
                "{path}: row {number}: pair {pair!r} has other texts than before, or none",
                path=path,
                number=position,
                pair=row["instance_id"],
            )
        for aspect, label in labels.items():
            if not abs(label) <= MAX_LABEL:
                raise InputError(
                    "{path}: row {number}: {aspect}_label {label:g} is outside -{most}..{most}",
                    path=path,
                    number=position,
                    aspect=aspect,
                    label=label,
                    most=MAX_LABEL,
                )
            stored.labels[aspect].append(label)
    if len({len(pair.labels["overall"]) for pair in pairs_by_id.values()}) > 1:
        raise InputError("{path}: not every pair was labelled by as many people", path=path)
    return list(pairs_by_id.values())


def _other_scores(path: Path, pairs: Sequence[AnswerPair]) -> dict[str, dict[str, Floats]]:
    """Return by name and aspect how much higher the second answer of each pair scores; NaN if the file has no score."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8-sig"))
        by_texts = {(row["query"], row["model1"]["response"], row["model2"]["response"]): row for row in rows}
        names = [name for name, scores in rows[0]["model1"].items() if isinstance(scores, dict)]
        differences = {
            name: {
                aspect: np.array(
                    [_score_difference(by_texts.get((pair.question, *pair.answers)), name, aspect) for pair in pairs]
                )
                for aspect in ASPECTS
            }
            for name in names
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(
            "{path}: no scores of pairs of answers: {kind} {error}", path=path, kind=type(error).__name__, error=error
        ) from None
    return differences


def _score_difference(row: JsonObject | None, name: str, aspect: str) -> float:
    if row is None:
        return np.nan
    first_score, second_score = (float(row[model][name][f"{aspect}_label"]) for model in ("model1", "model2"))
    return second_score - first_score


def _measure_preference(differences: Floats, labels: Floats, groups: Sequence[str], seed: int) -> Preference:
    def bootstrap(statistic: Callable[[Floats, Floats], float]) -> Interval:
        return bootstrap_statistic(
            lambda rows: statistic(differences[rows], labels[rows]), len(differences), seed=seed, groups=groups
        )

    pearson_interval, accuracy_interval = bootstrap(pearson), bootstrap(accuracy)
    preference: Preference = {
        "pearson": pearson(differences, labels),
        "pearson_low": pearson_interval.low,
        "pearson_high": pearson_interval.high,
        "accuracy": accuracy(differences, labels),
        "accuracy_low": accuracy_interval.low,
        "accuracy_high": accuracy_interval.high,
        "pairs": int(np.count_nonzero(~np.isnan(differences))),
    }
    return replace_non_finite(preference)

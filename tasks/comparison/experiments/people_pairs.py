"""The judge beside people: pairs of answers that people have compared, and whether its scores prefer the same ones.

The file is of the form of RAGChecker's `human_labeled_data.json`: a list with a row for each pair and person, with
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
from yarus.db.tables import Json
from yarus.metrics.preferences import accuracy, pearson
from yarus.metrics.statistics import Interval, bootstrap_statistic
from yarus.metrics.statistics.groups import Floats
from yarus.tasks.comparison.experiments.experiments_schema import JudgeAndPeople, Preference
from yarus.tasks.config.connections import database
from yarus.tasks.config.settings import Language, settings
from yarus.tasks.evaluation.numbers import finite
from yarus.tasks.models.calls import Call
from yarus.tasks.models.chat import chat
from yarus.tasks.models.prompts import prompts
from yarus.tasks.models.stand_ins import JUDGE
from yarus.tasks.models.verdicts import ask_for_score, value_of

ASPECTS = ("correctness", "completeness", "overall")
JUDGED = ("answer_correctness", "e2e_score")
"""The prompts that need a reference, which is what the people had."""
MOST = 2
"""The largest label."""


class Pair(NamedTuple):
    """Two answers to a question, and what every person said of them."""

    question: str
    reference: str
    answers: tuple[str, str]
    labels: dict[str, list[float]]
    """Aspect -> a label a person."""


async def judge_beside_people(
    path: Path, language: Language, *, scored: Path | None = None, seed: int = 0
) -> JudgeAndPeople:
    """Has the configured judge score both answers of every pair, and compares the differences with people's labels.

    Replies are kept in the call store: nothing is bought twice.

    Args:
        path: the pairs.
        language: of the prompts.
        scored: a file of the same pairs with scores of another judge under its name in `model1` and `model2`.
        seed: of the intervals' bootstrap.

    Raises:
        InputError: the file cannot be read or holds something else.
    """
    pairs = read_pairs(path)
    others = _other_scores(scored, pairs) if scored else {}
    configuration = settings().model_copy(update={"language": language})
    known = prompts(configuration)
    async with chat("judge", configuration, database()) as judge:
        asked = [
            ask_for_score(judge, Call(known[name], {"question": p.question, "reference": p.reference, "answer": text}))
            for name in JUDGED
            for p in pairs
            for text in p.answers
        ]
        scores = np.array([value_of(verdict) for verdict in await asyncio.gather(*asked)], dtype=np.float64)
        model = judge.describe()
    differences = scores.reshape(len(JUDGED), len(pairs), 2)
    by_prompt = {name: of[:, 1] - of[:, 0] for name, of in zip(JUDGED, differences, strict=True)}
    labels = {aspect: np.array([pair.labels[aspect] for pair in pairs], dtype=np.float64) for aspect in ASPECTS}
    groups = [pair.question for pair in pairs]
    return {
        "file": str(path),
        "judge": model,
        "stand_in": model == JUDGE,
        "pairs": len(pairs),
        "people": {
            aspect: _preference(of[:, 0], of[:, 1:], groups, seed) if of.shape[1] > 1 else None
            for aspect, of in labels.items()
        },
        "prompts": {
            name: {aspect: _preference(apart, of, groups, seed) for aspect, of in labels.items()}
            for name, apart in by_prompt.items()
        },
        "others": {
            name: {aspect: _preference(apart[aspect], of, groups, seed) for aspect, of in labels.items()}
            for name, apart in others.items()
        },
    }


def read_pairs(path: Path) -> list[Pair]:
    """The pairs of a file, each with the labels of as many people.

    Raises:
        InputError: the file cannot be read or holds something else; the row is named.
    """
    try:
        rows = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise InputError("{path}: not a JSON file that can be read: {error}", path=path, error=error) from None
    found: dict[Any, Pair] = {}
    if not isinstance(rows, list) or not rows:
        raise InputError("{path}: expected a list of pairs of answers, one row a pair and person", path=path)
    for number, row in enumerate(rows):
        try:
            answers = row["model1"]["response"], row["model2"]["response"]
            pair = Pair(row["query"], row["gt_answer"], answers, {aspect: [] for aspect in ASPECTS})
            labels = {aspect: float(row[f"{aspect}_label"]) for aspect in ASPECTS}
            known = found.setdefault(row["instance_id"], pair)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                "{path}: row {number} is no labelled pair: {kind} {error}",
                path=path,
                number=number,
                kind=type(error).__name__,
                error=error,
            ) from None
        if known[:3] != pair[:3] or not all(isinstance(text, str) for text in (*pair[:2], *answers)):
            raise InputError(
                "{path}: row {number}: pair {pair!r} has other texts than before, or none",
                path=path,
                number=number,
                pair=row["instance_id"],
            )
        for aspect, label in labels.items():
            if not abs(label) <= MOST:
                raise InputError(
                    "{path}: row {number}: {aspect}_label {label:g} is outside -{most}..{most}",
                    path=path,
                    number=number,
                    aspect=aspect,
                    label=label,
                    most=MOST,
                )
            known.labels[aspect].append(label)
    if len({len(pair.labels["overall"]) for pair in found.values()}) > 1:
        raise InputError("{path}: not every pair was labelled by as many people", path=path)
    return list(found.values())


def _other_scores(path: Path, pairs: Sequence[Pair]) -> dict[str, dict[str, Floats]]:
    """Name -> aspect -> how much higher the second answer of each pair scores; NaN where the file has none."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8-sig"))
        given = {(row["query"], row["model1"]["response"], row["model2"]["response"]): row for row in rows}
        names = [name for name, of in rows[0]["model1"].items() if isinstance(of, dict)]
        differences = {
            name: {
                aspect: np.array([_difference(given.get((p.question, *p.answers)), name, aspect) for p in pairs])
                for aspect in ASPECTS
            }
            for name in names
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(
            "{path}: no scores of pairs of answers: {kind} {error}", path=path, kind=type(error).__name__, error=error
        ) from None
    return differences


def _difference(row: Json | None, name: str, aspect: str) -> float:
    if row is None:
        return np.nan
    one, two = (float(row[model][name][f"{aspect}_label"]) for model in ("model1", "model2"))
    return two - one


def _preference(apart: Floats, labels: Floats, groups: Sequence[str], seed: int) -> Preference:
    def interval_of(of: Callable[[Floats, Floats], float]) -> Interval:
        return bootstrap_statistic(lambda rows: of(apart[rows], labels[rows]), len(apart), seed=seed, groups=groups)

    of_pearson, of_accuracy = interval_of(pearson), interval_of(accuracy)
    found: Preference = {
        "pearson": pearson(apart, labels),
        "pearson_low": of_pearson.low,
        "pearson_high": of_pearson.high,
        "accuracy": accuracy(apart, labels),
        "accuracy_low": of_accuracy.low,
        "accuracy_high": of_accuracy.high,
        "pairs": int(np.count_nonzero(~np.isnan(apart))),
    }
    return finite(found)

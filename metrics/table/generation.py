"""The metrics of generated answers, tiers 2 and 3: judged, overlap with a reference, meaning, repeats and refusals."""

from metrics.metric import INFINITE, Direction, Metric, Tier

_BOTH: tuple[Tier, ...] = ("tier2", "tier3")
_REFERENCE = "no reference, or an empty one"
_JUDGED = (
    "Medium to high: it agrees with people about as well as they agree with each other, but carries the judge's own "
    "leanings (long answers, its own style). Believe it as far as the tier `judge` shows the judge to be steady and "
    "unbiased."
)
_SURFACE = "It sees letters, not meaning: a right answer in other words scores low, a wrong one in the same words high."


def _judged(name: str, tiers: tuple[Tier, ...], measures: str, compares: str, reading: str, **more: object) -> Metric:
    return Metric(
        name=name,
        tiers=tiers,
        column=name.removeprefix("avg_"),
        measures=measures,
        formula=f"the judge's score for {compares}: 0, 1 or between; mean over the cases that were judged",
        kind="judged",
        signature=f"{name}|scale:0-1|v:1",
        trust=_JUDGED,
        reading=reading,
        **{"undefined": "the system failed or refused, or the judge's reply could not be read"} | more,  # type: ignore[arg-type]
    )


def rubric_metric(name: str) -> Metric:
    """The row of a judged metric of the user's own, whose question and anchors stand in the user's file."""
    return _judged(
        name,
        _BOTH,
        "What the user's own rubric asks of the answer.",
        "the answer by the rubric's anchors",
        "1 is the rubric's best anchor, 0 its worst.",
        undefined="no language model judges, the system failed or refused, a text that the rubric needs is missing, or "
        "the judge's reply could not be read",
    )


def _rouge(name: str, function: str, unit: str, formula: str, undefined: str, reading: str) -> Metric:
    return Metric(
        name=name,
        tiers=_BOTH,
        function=f"text.{function}",
        column=name.removeprefix("avg_"),
        measures=f"How many {unit} the answer shares with the reference.",
        formula=formula + "; F = 2 P R / (P + R); mean over cases",
        signature=f"{name}|mode:fmeasure|tok:words|norm:NFC|v:1",
        equals="rouge-score with the same tokenizer",
        source="Lin 2004, ROUGE: a package for automatic evaluation of summaries",
        undefined=f"{_REFERENCE}; {undefined}",
        trust=f"Medium. {_SURFACE}",
        reading="0.9 and more nearly the same text, 0.7 high, 0.5 moderate, 0.3 some, below that hardly any "
        f"overlap. {reading}",
    )


def _count(asked: str, done: str, better: Direction, reading: str) -> Metric:
    return Metric(
        name=f"{asked}_{done}",
        tiers=("tier3",),
        measures=f"How many {asked} questions were {done}.",
        formula="count",
        high=INFINITE,
        better=better,
        unit="count",
        aggregate="whole",
        interval="none",
        signature=f"{asked}_{done}|v:1",
        undefined="no question is labelled answerable or not",
        trust="High where the labels are reviewed.",
        reading=reading,
    )


GENERATION = (
    _judged(
        "avg_faithfulness",
        ("tier2", "tier3", "judge"),
        "Whether everything in the answer is backed by the context.",
        "the answer against the context",
        "Over 0.9 excellent, 0.7 to 0.9 good, below 0.7 the model invents. It says nothing about usefulness.",
        thresholds=(0.7, 0.9),
    ),
    _judged(
        "avg_answer_relevance",
        ("tier2",),
        "Whether the answer addresses the question that was asked.",
        "the answer against the question",
        "Over 0.8 the questions are understood. A relevant answer may still be false: read it beside faithfulness.",
    ),
    _judged(
        "avg_answer_correctness",
        ("tier2",),
        "Whether the answer says what the reference says.",
        "the answer against the reference answer",
        "Low with high faithfulness: the context itself does not hold the reference's answer.",
    ),
    _judged(
        "avg_e2e_score",
        ("tier3",),
        "Whether the answer is as useful as the reference, with real retrieval. A refusal of an answerable question "
        "is 0.",
        "the answer's usefulness against the reference answer's",
        "Over 0.8 excellent, 0.6 to 0.8 good, below 0.6 needs attention. Far below tier 2's scores: retrieval loses "
        "it.",
        thresholds=(0.6, 0.8),
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
        trust="Medium to high: it forgives other words, but also a wrong number, date or 'not'. It depends on the "
        "embedder.",
        reading="1 the same meaning, 0 unrelated. Unrelated sentences of one field often reach 0.3 to 0.6: compare "
        "systems, do not read the figure by itself.",
    ),
    _rouge(
        "avg_rouge1_f",
        "rouge1",
        "words",
        "P = shared words / words of the answer, R = shared words / words of the reference, a repeated word counted "
        "as often as both have it",
        "no word in the reference",
        "Over 0.4 is acceptable for short texts. It ignores word order.",
    ),
    _rouge(
        "avg_rouge2_f",
        "rouge2",
        "pairs of neighbouring words",
        "as ROUGE-1, over pairs of neighbouring words",
        "a reference of one word, which has no pair",
        "Stricter than ROUGE-1. Where references are short it covers few cases: look at n_scored.",
    ),
    _rouge(
        "avg_rougeL_f",
        "rougeL",
        "words in the same order",
        "P = L / words of the answer, R = L / words of the reference, L the longest common subsequence of words",
        "no word in the reference",
        "Over 0.5 is good. Far below ROUGE-1: the right words in another order.",
    ),
    Metric(
        name="avg_bleu",
        tiers=_BOTH,
        function="text.bleu",
        column="bleu",
        measures="How many of the answer's runs of 1 to 4 words stand in the reference, with a penalty for brevity.",
        formula="100 BP exp(mean of log p_n over n = 1..4), p_n the share of the answer's n-grams found in the "
        "reference (clipped; 1 added above and below for n > 1), BP = min(1, exp(1 - |reference| / |answer|)); mean "
        "over cases",
        high=100.0,
        unit="percent",
        signature="avg_bleu|max_ngram:4|smoothing:add-1|tok:words|norm:NFC|v:1",
        equals="sacreBLEU sentence_bleu (effective_order, add-k with k = 1) on the same tokens",
        source="Papineni et al. 2002, BLEU: a method for automatic evaluation of machine translation",
        undefined=_REFERENCE,
        trust=f"Medium to low for answers: made for translation and for whole corpora. {_SURFACE}",
        reading="Over 60 very close, 40 to 60 the main content, 20 to 40 partial, below 20 little. Translation "
        "speaks of very good from 50. A mean of sentence scores is not a corpus BLEU and must not be compared with "
        "one.",
    ),
    Metric(
        name="corpus_bleu",
        tiers=_BOTH,
        function="text.corpus_bleu",
        measures="BLEU of all answers taken as one text.",
        formula="as avg_bleu, but with the n-gram counts and lengths of all cases summed first",
        high=100.0,
        unit="percent",
        aggregate="whole",
        interval="percentile",
        signature="corpus_bleu|max_ngram:4|smoothing:add-1|tok:words|norm:NFC|v:1",
        equals="sacreBLEU corpus_bleu on the same tokens with add-k smoothing (k = 1) and effective order",
        source="Post 2018, A call for clarity in reporting BLEU scores",
        undefined="no case with a reference",
        trust=f"Medium. Steadier than the mean of sentence scores. {_SURFACE}",
        reading="Comparable only under the same signature, which stands beside it; papers mostly report it unsmoothed. "
        "Long answers weigh more than "
        "short ones.",
    ),
    Metric(
        name="avg_chrf",
        tiers=_BOTH,
        function="text.chrf",
        column="chrf",
        measures="How many of the runs of 1 to 6 characters answer and reference share, recall counting double.",
        formula="100 * 5 P R / (4 P + R), P and R the means over orders 1..6 of the shared character n-grams' share "
        "in the answer and in the reference, spaces left out; mean over cases",
        high=100.0,
        unit="percent",
        signature="avg_chrf|char_order:6|word_order:0|beta:2|whitespace:no|norm:NFC|v:1",
        equals="sacreBLEU sentence_chrf",
        source="Popović 2015, chrF: character n-gram F-score for automatic MT evaluation",
        undefined=_REFERENCE,
        trust="Medium to high among the surface metrics: word endings and typos cost little, which suits Russian. "
        "It still does not see meaning.",
        reading="90 and more nearly identical, 70 high, 50 moderate, 30 some, below that little. Related Russian texts "
        "rarely fall below 20.",
    ),
    Metric(
        name="avg_wer",
        tiers=_BOTH,
        function="text.wer",
        column="wer",
        measures="How many word edits turn the answer into the reference, per word of the reference.",
        formula="(substitutions + deletions + insertions) / words of the reference; mean over cases",
        high=INFINITE,
        better="lower",
        signature="avg_wer|tok:words|norm:NFC|v:1",
        equals="jiwer on the same tokens",
        source="Levenshtein 1966, Binary codes capable of correcting deletions, insertions and reversals",
        undefined="a reference without a word",
        trust="Low for free answers, high where the wording is fixed. An answer longer than its reference passes 1.",
        reading="0 the same words; 1 as many errors as words; a long answer to a short reference reaches 5 or 10.",
    ),
    Metric(
        name="avg_string_similarity",
        tiers=_BOTH,
        function="text.string_similarity",
        column="string_similarity",
        measures="How alike answer and reference are as strings, beginnings counting more.",
        formula="Jaro-Winkler similarity of the lower-cased texts; mean over cases",
        signature="avg_string_similarity|measure:jaro_winkler|case_sensitive:no|norm:NFC|v:1",
        equals="RapidFuzz JaroWinkler.normalized_similarity",
        source="Winkler 1990, String comparator metrics and enhanced decision rules",
        undefined=_REFERENCE,
        trust="High for names and short strings, low for sentences: unrelated ones reach 0.5.",
        reading="For names, codes and addresses. For sentences prefer chrF.",
    ),
    Metric(
        name="avg_perplexity",
        tiers=("tier2",),
        function="text.perplexity",
        column="perplexity",
        measures="Between how many equally likely tokens the generator hesitated.",
        formula="exp(-mean of the natural log-probabilities of the answer's tokens); mean over cases",
        low=1.0,
        high=INFINITE,
        better="lower",
        unit="tokens",
        signature="avg_perplexity|v:1",
        equals="exp of the mean negative log-likelihood, as language models report it",
        source="Jelinek et al. 1977, Perplexity: a measure of the difficulty of speech recognition tasks",
        undefined="the generator returns no token log-probabilities, or no token",
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
        trust="Medium to high, as the semantic similarity: a changed number hardly shows.",
        reading="Below about 0.9 the answers differ in more than wording.",
    ),
    Metric(
        name="refusal_rate",
        tiers=_BOTH,
        measures="Share of the questions that the system declined to answer.",
        formula="refusals / (answers + refusals)",
        better="neither",
        aggregate="whole",
        interval="wilson",
        signature="refusal_rate|v:1",
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

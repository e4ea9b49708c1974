"""The metrics of an answer's overlap with its reference, by characters and by words, tiers 2 and 3."""

from yarus.metrics.metric import UNBOUNDED, Metric

_BOTH: tuple[str, ...] = ("tier2", "tier3")
_REFERENCE = "no reference, or an empty one"
_SURFACE = "It sees letters, not meaning: a right answer in other words scores low, a wrong one in the same words high."


def _rouge_metric(name: str, function: str, unit: str, formula: str, undefined: str, reading: str) -> Metric:
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


OVERLAP = (
    _rouge_metric(
        "avg_rouge1_f",
        "rouge1",
        "words",
        "P = shared words / words of the answer, R = shared words / words of the reference, a repeated word counted "
        "as often as both have it",
        "no word in the reference",
        "Over 0.4 is acceptable for short texts. It ignores word order.",
    ),
    _rouge_metric(
        "avg_rouge2_f",
        "rouge2",
        "pairs of neighbouring words",
        "as ROUGE-1, over pairs of neighbouring words",
        "a reference of one word, which has no pair",
        "Stricter than ROUGE-1. Where references are short it covers few cases: look at n_scored.",
    ),
    _rouge_metric(
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
        measures="Share of the answer's runs of 1 to 4 words that the reference contains, with a penalty for brevity.",
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
        signature="corpus_bleu|max_ngram:4|smoothing:add-1|tok:words|norm:NFC|v:1",
        equals="sacreBLEU corpus_bleu on the same tokens with add-k smoothing (k = 1) and effective order",
        source="Post 2018, A call for clarity in reporting BLEU scores",
        undefined="no case with a reference",
        trust=f"Medium. Steadier than the mean of sentence scores. {_SURFACE}",
        reading="Comparable only under the same signature; papers mostly report it unsmoothed. Long answers have more "
        "weight than short ones.",
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
        trust="Medium, as ROUGE: word endings and typos cost little, which suits Russian; on English answers it has "
        "followed people no farther. It does not see meaning.",
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
        high=UNBOUNDED,
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
)

"""Candidate passages for an annotator, and questions whose labels are most informative."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from yarus.db.source_rows import Corpus, QuestionRow
from yarus.db.urls import canonical_url
from yarus.tasks.cases.labels import page_by_chunk, parse_grades
from yarus.tasks.cases.table import Case
from yarus.tasks.dataset.annotation_tables.workbook import Passage

TABLE_CHARS, PASSAGE_CHARS = 400, 1_500
"""Maximum characters of a text in the table, and in the sheet of passages."""
MAX_CANDIDATES, MAX_PASSAGES = 10, 10_000
"""Maximum passages per question, and per workbook; a larger workbook cannot be imported."""


class CorpusTexts(NamedTuple):
    """The texts of a corpus by chunk id and page."""

    by_name: Mapping[str, str]
    """Chunk id or canonical page -> text; a page has the texts of all its chunks in order."""
    urls: Mapping[str, str]
    """Chunk id or page -> URL, as stored."""

    def text_of(self, name: str) -> str | None:
        """Return the text of a chunk or page, or None if the corpus has neither."""
        return self.by_name.get(name) or self.by_name.get(canonical_url(name) or "")

    def url_of(self, name: str) -> str:
        """Return the URL of a page, or of a chunk's page; empty if there is none."""
        return self.urls.get(name) or self.urls.get(canonical_url(name) or "") or ""


def load_corpus_texts(corpus: Corpus) -> CorpusTexts:
    """Return the texts of chunks and pages; a chunk takes precedence over a page with the same name."""
    pages = page_by_chunk(corpus)
    texts_by_page: dict[str, list[str]] = defaultdict(list)
    urls: dict[str, str] = {}
    for chunk, text, url in zip(corpus.ids, corpus.texts, corpus.urls, strict=True):
        if (page := pages[chunk]) is not None:
            texts_by_page[page].append(text)
            urls.setdefault(page, url or page)
            urls[chunk] = url or page
    by_page = {page: "\n\n".join(chunk_texts) for page, chunk_texts in texts_by_page.items()}
    return CorpusTexts(by_page | dict(zip(corpus.ids, corpus.texts, strict=True)), urls)


def select_candidates(row: QuestionRow, retrieved: Iterable[str] | None) -> list[str]:
    """Return retrieved results for a question, or else its labels, or else the page that the bot named."""
    labelled = [*parse_grades(row, "relevant_chunk_ids")] or [*parse_grades(row, "relevant_urls")]
    logged_page = [row["confluence_url"]] if row.get("confluence_url") else []
    return list(dict.fromkeys([*(retrieved or labelled or logged_page)]))[:MAX_CANDIDATES]


def summarize_passages(names: Iterable[str], texts: CorpusTexts) -> str:
    """Return the name of each passage, for use in labels, and the start of its text."""
    return "\n\n".join(
        f"[{name}] {shorten_text(text, TABLE_CHARS)}" if (text := texts.text_of(name)) else f"[{name}]"
        for name in names
    )


def build_passage_rows(question_id: str, question: str, names: Iterable[str], texts: CorpusTexts) -> list[Passage]:
    """Return the passages as rows of the passage sheet."""
    return [
        Passage(question_id, question, name, texts.url_of(name), shorten_text(texts.text_of(name) or "", PASSAGE_CHARS))
        for name in names
    ]


def shorten_text(text: str, max_chars: int) -> str:
    """Return the start of a text, cut between two words.

    Example:
        >>> from yarus.tasks.dataset.annotation_tables.candidates import shorten_text
        >>> shorten_text("Справку выдают в деканате.", 12)
        'Справку…'
    """
    if len(text) <= max_chars:
        return text
    words = text[: max_chars + 1].rsplit(None, 1)[0]
    return f"{words[:max_chars].rstrip()}…"


JUDGED_METRICS = ("faithfulness", "answer_relevance", "answer_correctness", "e2e_score")
FAILED_STATUSES = ("sut_error", "sut_refusal", "judge_error", "parse_error")
LOW_SCORE = 0.5
UNLABELLED_PRIORITY = 0.5


def labelling_priority(cases: Sequence[Case], *, answerable: bool | None = None) -> dict[str, float]:
    """Return the reasons to label a question with their weights, without zero weights.

    Args:
        cases: the question's rows in the named evaluations, if any.
        answerable: the annotation; False if people found nothing relevant in the corpus.
    """
    reasons = {
        "disagreement": _judge_disagreement(cases),
        "uncertainty": max((_judge_uncertainty(case) for case in cases), default=0.0),
        "failure": float(any(map(_has_failed, cases))),
        "unlabelled": UNLABELLED_PRIORITY if any(_lacks_label(case, answerable) for case in cases) else 0.0,
    }
    return {name: round(weight, 3) for name, weight in reasons.items() if weight > 0}


def _judge_disagreement(cases: Sequence[Case]) -> float:
    scores = {metric: [case[metric] for case in cases if case.get(metric) is not None] for metric in JUDGED_METRICS}
    differences = [max(metric_scores) - min(metric_scores) for metric_scores in scores.values() if metric_scores]
    differences += [abs(case["mean_abs_difference"]) for case in cases if case.get("mean_abs_difference") is not None]
    differences += [
        float(case["decision"] != case["shown"])
        for case in cases
        if case.get("decision") is not None and case.get("shown") is not None
    ]
    return max(differences, default=0.0)


def _judge_uncertainty(case: Case) -> float:
    scores = (case[metric] for metric in JUDGED_METRICS if case.get(metric) is not None)
    return max((1 - abs(2 * score - 1) for score in scores), default=0.0)


def _lacks_label(case: Case, answerable: bool | None) -> bool:
    """Return whether the label that measures the case is missing; for rankings this is relevance."""
    is_unlabelled = "unlabelled" in (case.get("status"), case.get("unmeasurable"))
    return is_unlabelled and not ("relevant" in case and answerable is False)


def _has_failed(case: Case) -> bool:
    has_missed = any(case.get(name) == 0 for name in ("hit_rate@10", "e2e_score"))
    is_low = any(case[name] < LOW_SCORE for name in JUDGED_METRICS if case.get(name) is not None)
    return has_missed or is_low or case.get("status") in FAILED_STATUSES or case.get("failure") is not None

"""Candidates that an annotator is shown, and the questions whose labels would teach most."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from yarus.db.source_rows import Corpus, Row
from yarus.db.urls import canonical_url
from yarus.tasks.cases.labels import graded, pages_of
from yarus.tasks.cases.table import Case
from yarus.tasks.dataset.annotation.workbook import Passage

CUT, WHOLE = 400, 1_500
"""Characters of a text that are shown in the table, and in the sheet of passages."""
MOST, MOST_PASSAGES = 10, 10_000
"""Passages of a question, and of a workbook: more would not be read back."""


class Texts(NamedTuple):
    """The texts of a corpus by what they are named by."""

    by_name: Mapping[str, str]
    """Chunk, or page (canonical) -> text; of a page all its chunks, in their order."""
    urls: Mapping[str, str]
    """Chunk, or page -> address, as stored."""

    def of(self, name: str) -> str | None:
        """The text of a chunk or a page; None where the corpus has neither."""
        return self.by_name.get(name) or self.by_name.get(canonical_url(name) or "")

    def url_of(self, name: str) -> str:
        """The address of a chunk's page, or of a page; empty where there is none."""
        return self.urls.get(name) or self.urls.get(canonical_url(name) or "") or ""


def texts_of(corpus: Corpus) -> Texts:
    """The texts of chunks and of pages; a chunk goes before a page of its name."""
    pages = pages_of(corpus)
    parts: dict[str, list[str]] = defaultdict(list)
    urls: dict[str, str] = {}
    for chunk, text, url in zip(corpus.ids, corpus.texts, corpus.urls, strict=True):
        if (page := pages[chunk]) is not None:
            parts[page].append(text)
            urls.setdefault(page, url or page)
            urls[chunk] = url or page
    by_page = {page: "\n\n".join(of) for page, of in parts.items()}
    return Texts(by_page | dict(zip(corpus.ids, corpus.texts, strict=True)), urls)


def candidates(row: Row, retrieved: Iterable[str] | None) -> list[str]:
    """What is shown beside a question: what was retrieved, else what is labelled, else the page that the bot named."""
    labelled = [*graded(row, "relevant_chunk_ids")] or [*graded(row, "relevant_urls")]
    named = [row["confluence_url"]] if row.get("confluence_url") else []
    return list(dict.fromkeys([*(retrieved or labelled or named)]))[:MOST]


def in_short(names: Iterable[str], texts: Texts) -> str:
    """Each with its name, so that a label can name it, and the beginning of its text."""
    return "\n\n".join(
        f"[{name}] {shortened(text, CUT)}" if (text := texts.of(name)) else f"[{name}]" for name in names
    )


def passages(question_id: str, question: str, names: Iterable[str], texts: Texts) -> list[Passage]:
    """The same as rows of their own."""
    return [
        Passage(question_id, question, name, texts.url_of(name), shortened(texts.of(name) or "", WHOLE))
        for name in names
    ]


def shortened(text: str, most: int) -> str:
    """The beginning of a text, cut between two words.

    Example:
        >>> from yarus.tasks.dataset.annotation.candidates import shortened
        >>> shortened("Справку выдают в деканате.", 12)
        'Справку…'
    """
    if len(text) <= most:
        return text
    cut = text[: most + 1].rsplit(None, 1)[0]
    return f"{cut[:most].rstrip()}…"


JUDGED = ("faithfulness", "answer_relevance", "answer_correctness", "e2e_score")
FAILED = ("sut_error", "sut_refusal", "judge_error", "parse_error")
LOW = 0.5
UNLABELLED = 0.5


def priority(cases: Sequence[Case], *, answerable: bool | None = None) -> dict[str, float]:
    """The reasons to label a question, by name, without those worth nothing.

    Args:
        cases: the question's rows in the named evaluations; none where no evaluation asked it.
        answerable: as annotated; False: people have said that nothing in the corpus is relevant.
    """
    reasons = {
        "disagreement": _disagreement(cases),
        "uncertainty": max((_uncertainty(case) for case in cases), default=0.0),
        "failure": float(any(map(_failed, cases))),
        "unlabelled": UNLABELLED if any(_unlabelled(case, answerable) for case in cases) else 0.0,
    }
    return {name: round(worth, 3) for name, worth in reasons.items() if worth > 0}


def _disagreement(cases: Sequence[Case]) -> float:
    scores = {metric: [case[metric] for case in cases if case.get(metric) is not None] for metric in JUDGED}
    apart = [max(given) - min(given) for given in scores.values() if given]
    apart += [abs(case["mean_abs_difference"]) for case in cases if case.get("mean_abs_difference") is not None]
    apart += [
        float(case["decision"] != case["shown"])
        for case in cases
        if case.get("decision") is not None and case.get("shown") is not None
    ]
    return max(apart, default=0.0)


def _uncertainty(case: Case) -> float:
    scores = (case[metric] for metric in JUDGED if case.get(metric) is not None)
    return max((1 - abs(2 * score - 1) for score in scores), default=0.0)


def _unlabelled(case: Case, answerable: bool | None) -> bool:
    """Whether people have not said yet what the case is measured by; of rankings that is what is relevant."""
    lacks = "unlabelled" in (case.get("status"), case.get("unmeasurable"))
    return lacks and not ("relevant" in case and answerable is False)


def _failed(case: Case) -> bool:
    missed = any(case.get(name) == 0 for name in ("hit_rate@10", "e2e_score"))
    low = any(case[name] < LOW for name in JUDGED if case.get(name) is not None)
    return missed or low or case.get("status") in FAILED or case.get("failure") is not None

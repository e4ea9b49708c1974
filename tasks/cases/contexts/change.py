"""The contexts of an evaluation, changed in one way: a pure function of the source, the case and a seed."""

import hashlib
import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from yarus.db.source_rows import Corpus
from yarus.db.urls import canonical_url
from yarus.tasks.cases.contexts.counterfactual import counterfactual
from yarus.tasks.cases.contexts.injection import injection
from yarus.tasks.cases.contexts.passages import Distractors, arranged
from yarus.tasks.cases.labels import Row, graded, pages_of, shown_page
from yarus.tasks.cases.table import with_columns
from yarus.tasks.cases.text import BETWEEN, CHARACTERS_A_TOKEN, fit, starts
from yarus.tasks.config.probes import ContextPerturbation

AMONG_OTHERS = ("distractors", "gold_first", "gold_middle", "gold_last")
"""Kinds that keep the right passages and put others beside them."""
NO_OTHERS = "too few passages of other pages, or no room for them"
NO_VALUE = "the context has no number or date, in digits, that the reference answers with"
Changed = dict[str, Any]


def change_contexts(
    cases: pa.Table,
    questions: Sequence[Row],
    golds: Sequence[Sequence[str]],
    corpus: Corpus,
    kind: ContextPerturbation,
    *,
    seed: int,
    tokens: int,
    language: str,
) -> pa.Table:
    """Exchanges `context` and `passage_starts`, and adds `context_probe`: what was done, or why nothing could be.

    A case whose context cannot be changed keeps it, and is no part of what the change is measured by.

    Args:
        cases: n rows with their ideal context.
        questions: their rows in the source.
        golds: ids of the chunks that answer each question.
        corpus: the chunks.
        kind: what is done to every context.
        seed: of the choice of passages, values and words; a case has the same passages in all kinds.
        tokens: the longest context.
        language: of the source.
    """
    pages = pages_of(corpus)
    texts = dict(zip(corpus.ids, corpus.texts, strict=True))
    drawing, most = Distractors(corpus, pages), tokens * CHARACTERS_A_TOKEN
    columns = ("case_id", "question", "reference", "context", "passage_starts", "truncated")
    rows = []
    for case, question, gold in zip(cases.select(columns).to_pylist(), questions, golds, strict=True):
        chance = _chance(seed, case["case_id"])
        if case["context"] is None:
            rows.append(case | {"context_probe": None})
        elif kind == "counterfactual":
            rows.append(case | _counterfactual(case, chance))
        elif kind == "injection":
            context, instruction, canary = injection(case["context"], language, chance, most)
            begins = [place for place in case["passage_starts"] if place < len(context)]
            rows.append(case | _probe(context, begins, case["truncated"], instruction=instruction, canary=canary))
        else:
            right = [texts[chunk] for chunk in gold]
            own = {pages[chunk] or chunk for chunk in gold} | _named_pages(question)
            room = most if kind == "gold_removed" else most - len(BETWEEN.join(right))
            others = drawing.drawn(chance, case["question"], case["reference"], right, own, room)
            if not others:
                rows.append(case | {"context_probe": {"untouched": NO_OTHERS}})
                continue
            passages, distractors = arranged(kind, right, others, chance)
            context, cut = fit(passages, tokens)
            rows.append(case | _probe(context, starts(passages, context), cut, distractors=distractors))
    changed = ("context", "passage_starts", "truncated", "context_probe")
    return with_columns(cases, **{name: [row[name] for row in rows] for name in changed})


def perturbed_context(kind: ContextPerturbation, seed: int) -> str:
    """What the evaluation's record says of the changed contexts."""
    return f"{kind}|seed:{seed}|v:1"


def _counterfactual(case: Changed, chance: random.Random) -> Changed:
    found = counterfactual(case["context"], case["reference"], case["question"], chance)
    if found is None:
        return {"context_probe": {"untouched": NO_VALUE}}
    begins = [place + sum(by for end, by in found.shifts if end <= place) for place in case["passage_starts"]]
    return _probe(found.context, begins, case["truncated"], original=found.original, substitute=found.substitute)


def _probe(context: str, begins: list[int], cut: bool, **done: Any) -> Changed:
    return {"context": context, "passage_starts": begins, "truncated": cut, "context_probe": done}


def _named_pages(question: Row) -> set[str]:
    """The pages that labels or log name for a question, from which no distractor is taken."""
    urls = (canonical_url(url) for url in graded(question, "relevant_urls"))
    return {*filter(None, urls), *shown_page([question])}


def _chance(seed: int, case_id: str) -> random.Random:
    digest = hashlib.sha256(f"{seed}|{case_id}".encode("utf-8", "surrogatepass")).digest()
    return random.Random(int.from_bytes(digest[:8]))

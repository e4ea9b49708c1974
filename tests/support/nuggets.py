"""A judge that makes nuggets from a reference's sentences and looks for them word by word."""

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

from tests.support.evaluations import texts
from tests.support.llm_server import make_completion, make_score_completion
from yarus.tasks.dataset.dataset_schema import NuggetGeneration
from yarus.tasks.dataset.nuggets import generate_nuggets

Document = dict[str, Any]


def make_nuggets(source: str, **options: Any) -> NuggetGeneration:
    """Return the document of `yarus dataset nuggets`."""
    return asyncio.run(generate_nuggets(source, **options))


def get_request_kind(request: Document) -> str:
    names = texts(request).keys()
    if get_nuggets(request):
        return "nugget_support"
    return "score" if "answer" in names else "nuggets"


def get_nuggets(request: Document) -> Document:
    """Return the nuggets that a request asks about, by name."""
    return {name: text for name, text in texts(request).items() if re.fullmatch("[0-9a-f]{4,}", name)}


class NuggetJudge:
    """A judge whose replies `spoil` changes.

    The first sentence is vital; a sentence that begins with «Отчасти» is partly supported.
    """

    def __init__(self) -> None:
        self.spoil: Callable[[str, Document, Document], Any] = lambda kind, values, reply: reply

    def __call__(self, number: int, request: Document) -> bytes:
        kind, values = get_request_kind(request), texts(request)
        if kind == "score":
            return make_score_completion(0.9)
        if kind == "nuggets":
            sentences = [part for part in re.split(r"(?<=\.)\s", values["reference"]) if part]
            reply: Document = {"nuggets": [{"nugget": part, "vital": not i} for i, part in enumerate(sentences)]}
        else:
            entries = {name: judge_support(text, values["answer"]) for name, text in get_nuggets(request).items()}
            reply = {"verdicts": [{"id": name, "support": label} for name, label in entries.items()]}
        changed = self.spoil(kind, values, reply)
        return changed if isinstance(changed, bytes) else make_completion(json.dumps(changed, ensure_ascii=False))


def judge_support(nugget: str, answer: str) -> str:
    if nugget.startswith("Отчасти"):
        return "partial"
    return "full" if set(re.findall(r"\w+", nugget.lower())) <= set(re.findall(r"\w+", answer.lower())) else "none"

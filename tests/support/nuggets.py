"""A judge that makes nuggets of a reference's sentences and looks for them word by word."""

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

from tests.support.evaluations import texts
from tests.support.llm_server import says, scores
from yarus.tasks.dataset.dataset_schema import NuggetsMade
from yarus.tasks.dataset.nuggets import make

Document = dict[str, Any]


def made_of(source: str, **options: Any) -> NuggetsMade:
    """What `yarus dataset nuggets` says."""
    return asyncio.run(make(source, **options))


def asks_for(request: Document) -> str:
    given = texts(request).keys()
    if named(request):
        return "nugget_support"
    return "score" if "answer" in given else "nuggets"


def named(request: Document) -> Document:
    """The nuggets that a request asks about, by name."""
    return {name: text for name, text in texts(request).items() if re.fullmatch("[0-9a-f]{4,}", name)}


class Judge:
    """`spoil` changes its replies. The first sentence is vital; what begins with «Отчасти» is there in part."""

    def __init__(self) -> None:
        self.spoil: Callable[[str, Document, Document], Any] = lambda asked, given, reply: reply

    def __call__(self, number: int, request: Document) -> bytes:
        asked, given = asks_for(request), texts(request)
        if asked == "score":
            return scores(0.9)
        if asked == "nuggets":
            said = [part for part in re.split(r"(?<=\.)\s", given["reference"]) if part]
            reply: Document = {"nuggets": [{"nugget": part, "vital": not i} for i, part in enumerate(said)]}
        else:
            entries = {name: support(text, given["answer"]) for name, text in named(request).items()}
            reply = {"verdicts": [{"id": name, "support": said} for name, said in entries.items()]}
        changed = self.spoil(asked, given, reply)
        return changed if isinstance(changed, bytes) else says(json.dumps(changed, ensure_ascii=False))


def support(nugget: str, answer: str) -> str:
    if nugget.startswith("Отчасти"):
        return "partial"
    return "full" if set(re.findall(r"\w+", nugget.lower())) <= set(re.findall(r"\w+", answer.lower())) else "none"

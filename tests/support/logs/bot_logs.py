"""A log as bots have it, for tests: what people ask again and again, and what they write besides. Imported by name."""

import json
import random
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

Document = dict[str, Any]
SAMPLE = Path(__file__).parents[3] / "db" / "sample"
JUNK: dict[str, list[str]] = tomllib.loads(Path(__file__).with_name("bot_junk.toml").read_text(encoding="utf-8"))
"""What no page of a Russian university could answer, by kind."""
BEFORE = ("", "", "", "подскажите, ", "Здравствуйте! ", "скажите пожалуйста ", "а ", "интересно, ")
COVERED, BAG = 10, 3
"""Articles that have their pages; questions taken of each article that nobody else asks about."""
GONE = "Amazon_rainforest"
PAGE = "https://wiki.example/pages/viewpage.action?pageId={}"


class BotLog(NamedTuple):
    """A log, and what is true of it."""

    questions: list[Document]
    chunks: list[Document]
    truth: dict[str, str]
    """Id of a question -> the kind of junk, `bag`, or what it is about."""


def articles(xquad: Path) -> list[tuple[str, list[str], list[str]]]:
    """Title, questions and paragraphs of each, the one with the most questions first."""
    data = json.loads(xquad.read_text(encoding="utf-8"))["data"]
    found = [
        (
            one["title"],
            [question["question"] for part in one["paragraphs"] for question in part["qas"]],
            [part["context"] for part in one["paragraphs"]],
        )
        for one in data
    ]
    return sorted(found, key=lambda one: -len(one[1]))


def bot_log(xquad: Path, *, junk: int = 700, seed: int = 0) -> BotLog:
    """A few thousand questions: the sample's and those of articles, several times each, and what is planted.

    The pages of one article are gone. Of some thirty articles only three questions are asked, badly answered and
    without a page. Junk is downvoted, and said to have been answered by pages that are not there.
    """
    chance = random.Random(seed)
    rows: list[tuple[str, str, Document]] = []

    def ask(about: str, text: str, times: int, **more: Any) -> None:
        rows.extend((about, chance.choice(BEFORE) + text, more) for _ in range(times))

    sample = [json.loads(line) for line in (SAMPLE / "question_answer.jsonl").read_text(encoding="utf-8").splitlines()]
    for row in sample:
        ask("sample", row["question"], 3, confluence_url=row["confluence_url"], score=row["score"])
    chunks = [json.loads(line) for line in (SAMPLE / "chunk.jsonl").read_text(encoding="utf-8").splitlines()]
    by_size = articles(xquad)
    gone = next(one for one in by_size if one[0] == GONE)
    covered = [one for one in by_size if one is not gone][:COVERED]
    for number, (title, questions, paragraphs) in enumerate([gone, *covered]):
        for question in questions:
            ask(title, question, chance.choice((1, 2, 4)), confluence_url=PAGE.format(number), score=5)
        if title != GONE:
            chunks += [
                {"id": f"{title}-{place}", "confluence_url": PAGE.format(number), "text": text}
                for place, text in enumerate(paragraphs)
            ]
    for title, questions, _ in by_size[COVERED + 2 :]:
        rows.extend(("bag", question, {"score": 1}) for question in chance.sample(questions, BAG) if title != GONE)
    kinds = list(JUNK)
    for number in range(junk):
        kind = kinds[number % len(kinds)]
        page = PAGE.format(990_000 + number % 7)
        rows.append((kind, chance.choice(JUNK[kind]), {"score": 1, "confluence_url": page}))
    chance.shuffle(rows)
    usual: Document = {"answer": "Ответ.", "confluence_url": None, "score": None, "user_id": None, "created_at": None}
    asked = [{"id": f"q{place}", "question": text, **usual, **more} for place, (_, text, more) in enumerate(rows)]
    return BotLog(asked, chunks, {f"q{place}": about for place, (about, _, _) in enumerate(rows)})

"""A realistic log of a bot: frequent questions, and everything else that people write. Imported by name."""

import json
import random
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

Document = dict[str, Any]
SAMPLE_FOLDER = Path(__file__).parents[3] / "db" / "sample"
JUNK: dict[str, list[str]] = tomllib.loads(Path(__file__).with_name("bot_junk.toml").read_text(encoding="utf-8"))
"""Messages that no page of a Russian university could answer, by kind."""
GREETINGS = ("", "", "", "подскажите, ", "Здравствуйте! ", "скажите пожалуйста ", "а ", "интересно, ")
COVERED, BAG = 10, 3
"""Number of articles with pages; number of questions from each of the other articles."""
MISSING_ARTICLE = "Amazon_rainforest"
PAGE = "https://wiki.example/pages/viewpage.action?pageId={}"


class BotLog(NamedTuple):
    """A log, and the truth about its questions."""

    questions: list[Document]
    chunks: list[Document]
    truth: dict[str, str]
    """Id of a question -> the kind of junk, `bag`, or its topic."""


def articles(xquad: Path) -> list[tuple[str, list[str], list[str]]]:
    """Return title, questions and paragraphs of each article, the one with the most questions first."""
    data = json.loads(xquad.read_text(encoding="utf-8"))["data"]
    parsed = [
        (
            article["title"],
            [question["question"] for part in article["paragraphs"] for question in part["qas"]],
            [part["context"] for part in article["paragraphs"]],
        )
        for article in data
    ]
    return sorted(parsed, key=lambda article: -len(article[1]))


def make_bot_log(xquad: Path, *, junk: int = 700, seed: int = 0) -> BotLog:
    """Return a few thousand questions: the sample's and those of articles, repeated, and planted ones.

    The pages of one article are missing. From each of some thirty articles three questions are asked, badly
    answered and without a page. Junk is downvoted, and its recorded pages do not exist.
    """
    chance = random.Random(seed)
    rows: list[tuple[str, str, Document]] = []

    def ask(topic: str, text: str, times: int, **more: Any) -> None:
        rows.extend((topic, chance.choice(GREETINGS) + text, more) for _ in range(times))

    sample = [
        json.loads(line) for line in (SAMPLE_FOLDER / "question_answer.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    for row in sample:
        ask("sample", row["question"], 3, confluence_url=row["confluence_url"], score=row["score"])
    chunks = [json.loads(line) for line in (SAMPLE_FOLDER / "chunk.jsonl").read_text(encoding="utf-8").splitlines()]
    by_size = articles(xquad)
    missing = next(article for article in by_size if article[0] == MISSING_ARTICLE)
    covered = [article for article in by_size if article is not missing][:COVERED]
    for number, (title, questions, paragraphs) in enumerate([missing, *covered]):
        for question in questions:
            ask(title, question, chance.choice((1, 2, 4)), confluence_url=PAGE.format(number), score=5)
        if title != MISSING_ARTICLE:
            chunks += [
                {"id": f"{title}-{i}", "confluence_url": PAGE.format(number), "text": text}
                for i, text in enumerate(paragraphs)
            ]
    for title, questions, _ in by_size[COVERED + 2 :]:
        rows.extend(("bag", text, {"score": 1}) for text in chance.sample(questions, BAG) if title != MISSING_ARTICLE)
    kinds = list(JUNK)
    for number in range(junk):
        kind = kinds[number % len(kinds)]
        page = PAGE.format(990_000 + number % 7)
        rows.append((kind, chance.choice(JUNK[kind]), {"score": 1, "confluence_url": page}))
    chance.shuffle(rows)
    common: Document = {"answer": "Ответ.", "confluence_url": None, "score": None, "user_id": None, "created_at": None}
    log_rows = [{"id": f"q{i}", "question": text, **common, **more} for i, (_, text, more) in enumerate(rows)]
    return BotLog(log_rows, chunks, {f"q{i}": topic for i, (topic, _, _) in enumerate(rows)})

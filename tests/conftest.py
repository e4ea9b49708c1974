"""What all tests share: the real text that stands beside the project, where it is."""

import json
from pathlib import Path

import pytest

XQUAD = Path(__file__).parents[2] / "shared" / "data" / "xquad"


def _xquad(language: str) -> Path:
    path = XQUAD / f"xquad.{language}.json"
    if not path.exists():
        pytest.skip(f"needs the XQuAD files in {XQUAD}")
    return path


@pytest.fixture(scope="session")
def xquad_ru() -> Path:
    """The path of the Russian XQuAD file."""
    return _xquad("ru")


@pytest.fixture(scope="session")
def xquad_en() -> Path:
    """The path of the English XQuAD file."""
    return _xquad("en")


@pytest.fixture(scope="session")
def xquad_pairs(xquad_ru: Path) -> list[tuple[str, str]]:
    """(answer, the sentence it stands in) of every Russian question: short hypotheses against longer references."""
    pairs = []
    for article in json.loads(xquad_ru.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            context = paragraph["context"]
            for question in paragraph["qas"]:
                answer = question["answers"][0]
                start = context.rfind(". ", 0, answer["answer_start"]) + 1
                end = context.find(". ", answer["answer_start"] + len(answer["text"]))
                pairs.append((answer["text"], context[start : end + 1 if end >= 0 else None].strip()))
    return pairs

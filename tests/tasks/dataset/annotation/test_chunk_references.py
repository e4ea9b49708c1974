"""Which chunks and pages a cell names, in corpora whose ids and addresses look like anything."""

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy import Engine

from tests.support.evaluations import evaluate, load, question, questions_of, rows_of
from yarus.db.errors import InputError
from yarus.tasks.dataset.annotation import spreadsheets
from yarus.tasks.dataset.annotation.columns import COLUMNS
from yarus.tasks.dataset.annotation.round_trip import export, import_

Make = Callable[..., Path]

ODD = {
    "Fresno,_California-0": "squad:Fresno,_California",
    "Normandy-0": "squad:Normandy",
    "https://docs.x/a#1": "https://docs.x/a",
    "doc[1]; part 2": "https://x/a;b",
    "part 2": "https://x/with%20space, and comma?utm_source=feed",
    "7": "https://x/what%3Fnow",
    "8": "https://w.ru/Стипендии, гранты и материальная помощь студентам",
    "0": None,
}
"""Chunk -> page, as corpora have them."""
CELLS: dict[str, tuple[list[str], list[str]]] = {
    "squad:Normandy": ([], ["squad:Normandy"]),
    "https://docs.x/a#1": (["https://docs.x/a#1"], []),
    "https://docs.x/a#2": ([], ["https://docs.x/a"]),
    "https://docs.x/a#2; 7": (["7"], ["https://docs.x/a"]),
    "https://docs.x/a?utm_source=1;7": (["7"], ["https://docs.x/a"]),
    "Fresno,_California-0": (["Fresno,_California-0"], []),
    "[Fresno,_California-0], [Normandy-0]": (["Fresno,_California-0", "Normandy-0"], []),
    "Normandy-0 squad:Fresno,_California;7": (["Normandy-0", "7"], ["squad:Fresno,_California"]),
    "https://x/a;b": ([], ["https://x/a;b"]),
    "HTTPS://X/a;b?utm_source=mail": ([], ["https://x/a;b"]),
    "[https://x/a;b]\n[doc[1]; part 2]\n7": (["doc[1]; part 2", "7"], ["https://x/a;b"]),
    "part 2": (["part 2"], []),
    "https://x/with space, and comma": ([], ["https://x/with space, and comma"]),
    "https://x/with%20space, and comma?utm_source=feed, 7": (["7"], ["https://x/with space, and comma"]),
    "https://x/what?now": ([], ["https://x/what%3Fnow"]),  # as exported; stored so that it is read as the same page
    "https://w.ru/" + quote("Стипендии, гранты и материальная помощь студентам", safe=","): (
        [], ["https://w.ru/Стипендии, гранты и материальная помощь студентам"],
    ),
    "7 7 [7]": (["7"], []),
    "0": (["0"], []),
    "none": ([], []),
}  # fmt: skip


@pytest.fixture
def odd(at_home: Path, tmp_path: Path) -> str:
    """A source whose ids and addresses look like anything; a question for every cell."""
    chunks = [{"id": name, "confluence_url": url, "text": f"О том, что есть {name}."} for name, url in ODD.items()]
    return load(tmp_path, "odd_names", [question(i) for i in range(len(CELLS))], chunks)


def test_what_is_relevant_is_found_in_the_corpus(engine: Engine, odd: str, filled: Make) -> None:
    """No name is taken for what it looks like, nor cut where the corpus has it whole, and tier 1 knows every label."""
    import_(filled(*({"question_id": str(n), "source": odd, "relevant": cell} for n, cell in enumerate(CELLS))), "a")
    rows = questions_of(engine, odd)
    labels = [(rows[str(n)]["relevant_chunk_ids"], rows[str(n)]["relevant_urls"]) for n in range(len(CELLS))]
    assert dict(zip(CELLS, labels, strict=True)) == CELLS
    assert rows[str(len(CELLS) - 1)]["answerable"] is False
    cases = {case["question_id"]: case for case in rows_of(evaluate("tier1", source=odd, unit="page"))}
    for number, (chunks, pages) in enumerate(CELLS.values()):
        if pages or set(chunks) - {"0"}:
            assert cases[str(number)]["status"] == "ok", cases[str(number)]["reason"]


def test_every_name_that_is_exported_is_taken_back(odd: str, filled: Make, tmp_path: Path) -> None:
    for unit in ("chunk", "page"):
        ran = evaluate("tier1", source=odd, unit=unit)
        export(tmp_path / "out.csv", odd, [ran["evaluation_id"]])
        _, lines = spreadsheets.read(tmp_path / "out.csv")
        shown = [cells[list(COLUMNS).index("retrieved")].text.split("\n\n") for _, cells in lines]
        names = {chunk.partition(" О том")[0] for of in shown for chunk in of if chunk}
        assert len(names) > 3
        assert import_(filled({"question_id": "1", "source": odd, "relevant": "\n".join(names)}), "a")["relevant"] == 1


@pytest.mark.usefixtures("english")
@pytest.mark.parametrize(("cell", "told"), [("Normandy-0, https://docs.x/b; 7", "https://docs.x/b"), ("part 7", "part"),
                                            ("7,Fresno", "Fresno"), ("https://x/a", "https://x/a")])  # fmt: skip
def test_what_the_corpus_does_not_have_is_refused(odd: str, filled: Make, cell: str, told: str) -> None:
    with pytest.raises(InputError, match=f"no chunk or page '{re.escape(told)}' in the corpus"):
        import_(filled({"question_id": "1", "source": odd, "relevant": cell}), "a")

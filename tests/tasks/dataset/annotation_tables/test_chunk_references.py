"""Chunks and pages that a cell names, in corpora with arbitrary ids and URLs."""

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy import Engine

from tests.support.evaluations import evaluate, load, question, read_questions_by_id, read_rows
from yarus.db.errors import InputError
from yarus.tasks.dataset.annotation_tables import spreadsheets
from yarus.tasks.dataset.annotation_tables.columns import COLUMNS
from yarus.tasks.dataset.annotation_tables.round_trip import export_annotation_file, import_annotation_file

WriteFile = Callable[..., Path]

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
"""Chunk -> page, as in real corpora."""
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
    "https://x/what?now": ([], ["https://x/what%3Fnow"]),  # as exported; the stored form is parsed as the same page
    "https://w.ru/" + quote("Стипендии, гранты и материальная помощь студентам", safe=","): (
        [], ["https://w.ru/Стипендии, гранты и материальная помощь студентам"],
    ),
    "7 7 [7]": (["7"], []),
    "0": (["0"], []),
    "none": ([], []),
}  # fmt: skip


@pytest.fixture
def odd_source(at_home: Path, tmp_path: Path) -> str:
    """Load a source with arbitrary ids and URLs, with one question per cell."""
    chunks = [{"id": name, "confluence_url": url, "text": f"О том, что есть {name}."} for name, url in ODD.items()]
    return load(tmp_path, "odd_names", [question(i) for i in range(len(CELLS))], chunks)


def test_references_resolve_to_names_of_the_corpus(engine: Engine, odd_source: str, write_file: WriteFile) -> None:
    """Names are not split or reinterpreted if the corpus has them, and tier 1 recognises each label."""
    import_annotation_file(
        write_file(*({"question_id": str(n), "source": odd_source, "relevant": cell} for n, cell in enumerate(CELLS))),
        "a",
    )
    rows = read_questions_by_id(engine, odd_source)
    labels = [(rows[str(n)]["relevant_chunk_ids"], rows[str(n)]["relevant_urls"]) for n in range(len(CELLS))]
    assert dict(zip(CELLS, labels, strict=True)) == CELLS
    assert rows[str(len(CELLS) - 1)]["answerable"] is False
    cases = {case["question_id"]: case for case in read_rows(evaluate("tier1", source=odd_source, unit="page"))}
    for number, (chunks, pages) in enumerate(CELLS.values()):
        if pages or set(chunks) - {"0"}:
            assert cases[str(number)]["status"] == "ok", cases[str(number)]["reason"]


def test_exported_names_are_imported(odd_source: str, write_file: WriteFile, tmp_path: Path) -> None:
    for unit in ("chunk", "page"):
        evaluated = evaluate("tier1", source=odd_source, unit=unit)
        export_annotation_file(tmp_path / "out.csv", odd_source, [evaluated["evaluation_id"]])
        _, lines = spreadsheets.read_table(tmp_path / "out.csv")
        retrieved_texts = [cells[list(COLUMNS).index("retrieved")].text.split("\n\n") for _, cells in lines]
        names = {chunk.partition(" О том")[0] for texts in retrieved_texts for chunk in texts if chunk}
        assert len(names) > 3
        assert (
            import_annotation_file(
                write_file({"question_id": "1", "source": odd_source, "relevant": "\n".join(names)}), "a"
            )["relevant"]
            == 1
        )


@pytest.mark.usefixtures("english")
@pytest.mark.parametrize(
    ("cell", "unknown_name"),
    [
        ("Normandy-0, https://docs.x/b; 7", "https://docs.x/b"),
        ("part 7", "part"),
        ("7,Fresno", "Fresno"),
        ("https://x/a", "https://x/a"),
    ],
)
def test_unknown_references_are_rejected(odd_source: str, write_file: WriteFile, cell: str, unknown_name: str) -> None:
    with pytest.raises(InputError, match=f"no chunk or page '{re.escape(unknown_name)}' in the corpus"):
        import_annotation_file(write_file({"question_id": "1", "source": odd_source, "relevant": cell}), "a")

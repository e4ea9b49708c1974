"""The bundled sample: three files with one row a line, shaped as the source tables."""

import hashlib
from pathlib import Path

from yarus.db.importers.lines import json_lines
from yarus.db.loading.fill import Row, Rows

FOLDER = Path(__file__).parents[1] / "sample"


def read() -> Rows:
    """Reads the sample that comes with Yarus."""
    return Rows(
        questions=_rows("question_answer.jsonl"), chunks=_rows("chunk.jsonl"), annotations=_rows("annotation.jsonl")
    )


def _rows(name: str) -> list[Row]:
    objects = [values for _, values in json_lines(FOLDER / name)]
    keys = list(dict.fromkeys(key for values in objects for key in values))
    as_text = {"id", "question_id", "user_id"}
    return [
        Row(
            f"{name}:{number}",
            {key: str(values[key]) if key in as_text else values.get(key) for key in keys},
        )
        for number, values in enumerate(objects, start=1)
    ]


def digest() -> str:
    """Changes with the sample's content."""
    content = b"".join(path.read_bytes() for path in sorted(FOLDER.glob("*.jsonl")))
    return hashlib.sha256(content).hexdigest()[:12]

"""Read the bundled sample: three files with one row per line, like the source tables."""

import hashlib
from pathlib import Path

from yarus.db.importers.lines import read_json_objects
from yarus.db.loading.load_rows import ImportedRows, IncomingRow

SAMPLE_FOLDER = Path(__file__).parents[1] / "sample"


def read_sample() -> ImportedRows:
    """Read the sample that comes with Yarus."""
    return ImportedRows(
        questions=_read_rows("question_answer.jsonl"),
        chunks=_read_rows("chunk.jsonl"),
        annotations=_read_rows("annotation.jsonl"),
    )


def _read_rows(name: str) -> list[IncomingRow]:
    objects = [values for _, values in read_json_objects(SAMPLE_FOLDER / name)]
    keys = list(dict.fromkeys(key for values in objects for key in values))
    as_text = {"id", "question_id", "user_id"}
    return [
        IncomingRow(
            f"{name}:{number}",
            {key: str(values[key]) if key in as_text else values.get(key) for key in keys},
        )
        for number, values in enumerate(objects, start=1)
    ]


def sample_hash() -> str:
    """Return a hash that changes with the sample's content."""
    content = b"".join(path.read_bytes() for path in sorted(SAMPLE_FOLDER.glob("*.jsonl")))
    return hashlib.sha256(content).hexdigest()[:12]

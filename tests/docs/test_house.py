"""The house as docs/contributing.md describes it: what the linters of imports do not hold."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("yarus", "flows", "deployments", "tasks", "metrics", "db", "tests", "benchmarks")
FILES = sorted(path for top in FOLDERS for path in (ROOT / top).rglob("*.py"))


def private(path: Path) -> Iterator[str]:
    """Names that begin with an underscore and are another file's."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] in ("yarus", "tests"):
            modules |= {name.asname or name.name for name in node.names if name.name.islower()}
            yield from (name.name for name in node.names if re.match(r"_[^_]", name.name))
    for node in ast.walk(tree):
        of_module = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules
        if of_module and re.match(r"_[^_]", node.attr):
            yield f"{node.value.id}.{node.attr}"


def test_no_file_uses_a_private_name_of_another() -> None:
    assert {path.relative_to(ROOT): found for path in FILES if (found := list(private(path)))} == {}

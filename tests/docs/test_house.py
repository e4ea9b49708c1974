"""The house as docs/contributing.md describes it: what the linters of imports do not hold."""

import ast
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PACKAGED = ("yarus", "flows", "deployments", "tasks", "metrics", "db")
FILES = sorted(path for top in (*PACKAGED, "tests", "benchmarks") for path in (ROOT / top).rglob("*.py"))


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


def imported(path: Path) -> Iterator[str]:
    """The top-level packages that a file imports by their full names."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield str(node.module).partition(".")[0]


def installed_with(*extras: str) -> set[str]:
    """The distributions that an installation with these extras brings."""
    found: set[tuple[str, str]] = set()
    waiting = {("yarus", extra) for extra in ("", *extras)}
    while waiting:
        name, extra = wanted = waiting.pop()
        found.add(wanted)
        for need in map(Requirement, metadata.requires(name) or []):
            if not need.marker or need.marker.evaluate({"extra": extra}):
                waiting |= {(canonicalize_name(need.name), part) for part in ("", *need.extras)} - found
    return {name for name, _ in found}


def test_the_code_imports_only_what_its_installation_brings() -> None:
    """Without the packages of the tests; the plugin is imported by pytest."""
    ours = [path for path in FILES if path.relative_to(ROOT).parts[0] in PACKAGED and path.name != "pytest_plugin.py"]
    names = {name for path in ours for name in imported(path)} - sys.stdlib_module_names - {"yarus"}
    distributions, brought = metadata.packages_distributions(), installed_with("dask", "documents", "s3", "mlflow")
    found_in = {name: {canonicalize_name(one) for one in distributions.get(name, [])} for name in names}
    assert {name for name, found in found_in.items() if not found & brought} == set()


def test_no_file_uses_a_private_name_of_another() -> None:
    assert {path.relative_to(ROOT): found for path in FILES if (found := list(private(path)))} == {}

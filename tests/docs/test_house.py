"""Check the architecture of docs/contributing.md where import linters cannot."""

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


def find_private_names(path: Path) -> Iterator[str]:
    """Yield names that begin with an underscore and belong to another file."""
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


def find_imported_packages(path: Path) -> Iterator[str]:
    """Yield the top-level packages that a file imports by their full names."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield str(node.module).partition(".")[0]


def find_installed(*extras: str) -> set[str]:
    """Return the distributions that an installation with these extras brings."""
    installed: set[tuple[str, str]] = set()
    queue = {("yarus", extra) for extra in ("", *extras)}
    while queue:
        name, extra = item = queue.pop()
        installed.add(item)
        for requirement in map(Requirement, metadata.requires(name) or []):
            if not requirement.marker or requirement.marker.evaluate({"extra": extra}):
                queue |= {(canonicalize_name(requirement.name), part) for part in ("", *requirement.extras)} - installed
    return {name for name, _ in installed}


def test_code_imports_only_installed_packages() -> None:
    """Check the code without tests; the pytest plugin is imported by pytest."""
    files = [path for path in FILES if path.relative_to(ROOT).parts[0] in PACKAGED and path.name != "pytest_plugin.py"]
    imports = {name for path in files for name in find_imported_packages(path)} - sys.stdlib_module_names - {"yarus"}
    distributions, installed = metadata.packages_distributions(), find_installed("dask", "documents", "s3", "mlflow")
    assert {
        name for name in imports if installed.isdisjoint(map(canonicalize_name, distributions.get(name, [])))
    } == set()


def test_files_use_no_private_names_of_others() -> None:
    assert {path.relative_to(ROOT): names for path in FILES if (names := list(find_private_names(path)))} == {}

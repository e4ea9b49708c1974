"""Mutation testing of metrics/: break one place at a time and run the tests on each break.

`make mutate`, or `python -m benchmarks.mutation [module …] [--sample N] [--jobs N]`. The breaks are cosmic-ray's. Its
own runner writes each one into the source tree and starts Python again for it (4 s with SciPy); here each is imported
into a fork of a process that has the libraries loaded: nothing on disk changes, and most take a fraction of a second.

A break that no test detects has survived. Those that change nothing observable are listed with the reason in
benchmarks/mutation_survivors.toml. Exit code 1 below 95 % killed, or with a survivor that has no reason.
Half an hour on two idle cores with 30 breaks per module, which is the default; all of them take some hours.
"""

import argparse
import ast
import contextlib
import gc
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import multiprocessing
import os
import random
import resource
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from hypothesis import settings

T = TypeVar("T")
METRICS = Path("yarus/metrics")
TESTS = (*sorted(Path("tests/metrics").rglob("test_*.py")), Path("tests/docs/test_metrics.py"))
CONFTEST = Path("tests/conftest.py")
REASONS = Path("benchmarks/mutation_survivors.toml")
GOAL = 0.95
MEMORY_BYTES = 6 * 2**30
# One plausible slip for each sign. cosmic-ray has ten for every +; most fail at once and would only raise the rate.
OPERATORS = (
    *(
        f"ReplaceBinaryOperator_{pair}"
        for pair in ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Div", "Mod_Mul")
    ),
    *(f"ReplaceBinaryOperator_{pair}" for pair in ("Pow_Mul", "BitAnd_BitOr", "BitOr_BitAnd", "RShift_LShift")),
    *(f"ReplaceComparisonOperator_{pair}" for pair in ("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Eq_NotEq", "NotEq_Eq")),
    *(f"ReplaceComparisonOperator_{pair}" for pair in ("Lt_GtE", "Gt_LtE", "Is_IsNot", "IsNot_Is")),
    *("ReplaceAndWithOr", "ReplaceOrWithAnd", "AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue"),
    *("ReplaceUnaryOperator_Delete_USub", "ReplaceUnaryOperator_Delete_Not", "ReplaceUnaryOperator_Delete_Invert"),
    *("NumberReplacer", "ZeroIterationForLoop", "ReplaceBreakWithContinue", "ReplaceContinueWithBreak"),
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One break of one module."""

    module: str
    line: int
    before: str
    after: str
    source: str


class Mutated(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """An importer that loads the mutated source of the module."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        if name != self.mutant.module:
            return None
        path = _path(name)
        spec = importlib.machinery.ModuleSpec(name, self, is_package=path.name == "__init__.py")
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(str(path.parent))
        return spec

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.mutant.source, str(_path(self.mutant.module)), "exec"), module.__dict__)  # noqa: S102


def mutants(module: str) -> Iterator[Mutant]:
    """Yield every break of a module, in order of the operators; annotations, which are not executed, are skipped."""
    source = _path(module).read_text(encoding="utf-8")
    annotated = set(_annotation_positions(source))
    for name in OPERATORS:
        operator = get_operator(f"core/{name}")()
        positions = ((node, span) for node in ast_nodes(get_ast(source)) for span in operator.mutation_positions(node))
        for occurrence, (node, (start, _)) in enumerate(positions):
            # The star between parameters is not a product.
            star = node.type == "operator" and node.parent.type in ("parameters", "arglist", "argument")
            mutated = None if star or start in annotated else mutate_code(source, operator, occurrence)
            if mutated is None or mutated == source:
                continue
            pairs = zip(source.splitlines(), mutated.splitlines(), strict=True)
            line, before, after = next((i, old, new) for i, (old, new) in enumerate(pairs, 1) if old != new)
            # `strict` guards against programming errors, which no input causes.
            if after == before.replace("strict=True", "strict=False"):
                continue
            yield Mutant(module, line, before.strip(), after.strip(), mutated)


def _annotation_positions(source: str) -> Iterator[tuple[int, int]]:
    """Yield all source positions within annotations and type aliases."""
    for node in ast.walk(ast.parse(source)):
        annotations = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        for annotation in filter(None, annotations):
            for line in range(annotation.lineno, annotation.end_lineno + 1):
                yield from ((line, column) for column in range(annotation.col_offset, annotation.end_col_offset))


def main(arguments: Sequence[str]) -> int:
    """Return exit code 1 if the tests detect too little."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutation", description=__doc__.split("\n")[0])
    parser.add_argument("modules", nargs="*", help="such as statistics.intervals; all of metrics/ without")
    parser.add_argument(
        "--sample", type=int, default=30, help="so many mutants a module, drawn with a fixed seed; 0: all"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes at once")
    chosen = parser.parse_args(arguments)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    settings.register_profile("mutation", derandomize=True, database=None, deadline=None, max_examples=30)
    settings.load_profile("mutation")
    imports = {path: _collect_imports(path) for path in TESTS}
    _preload(_collect_imports(CONFTEST).union(*imports.values()))
    names = [f"yarus.metrics.{name}" for name in chosen.modules] or [
        _module(path) for path in sorted(METRICS.rglob("*.py"))
    ]
    reasons = tomllib.loads(REASONS.read_text(encoding="utf-8"))["survivor"] if REASONS.exists() else []
    total = n_survivors = unexplained = 0
    start = time.monotonic()
    relevant = [path for path in imports if imports[path].intersection(names)]
    limits_s = dict(zip(relevant, _in_child(partial(_clean_times, relevant)), strict=True))
    for name in names:
        # The module's own tests are the fastest to detect it.
        own_test = f"test_{name.rpartition('.')[2]}"
        tests = sorted(
            (path for path in relevant if name in imports[path]), key=lambda path: not path.stem.startswith(own_test)
        )
        pool = list(mutants(name))
        sample = random.Random(0).sample(pool, min(len(pool), chosen.sample or len(pool)))
        survivors = _find_survivors(sample, {path: limits_s[path] for path in tests}, chosen.jobs) if tests else sample
        total, n_survivors = total + len(sample), n_survivors + len(survivors)
        killed, minutes = len(sample) - len(survivors), (time.monotonic() - start) / 60
        print(f"{name}: {killed} of {len(sample)} killed ({len(pool)} possible), {minutes:.1f} min so far", flush=True)
        for mutant in survivors:
            reason = next((entry["reason"] for entry in reasons if _same(entry, mutant)), None)
            unexplained += reason is None
            print(f"  line {mutant.line}: {mutant.before}\n     became: {mutant.after}")
            print(f"     {reason or 'NO REASON GIVEN'}")
    explained = n_survivors - unexplained
    killed, shows = total - n_survivors, max(total - explained, 1)
    print(f"{killed} of {total} killed: {killed / max(total, 1):.1%} of all; goal {GOAL:.0%} of those that can show,")
    print(f"which leaves out {explained} survivors with a reason: {killed / shows:.1%}; {unexplained} without a reason")
    return 0 if killed >= GOAL * (total - explained) and not unexplained else 1


def _same(entry: dict[str, str], mutant: Mutant) -> bool:
    return (entry["module"], entry["before"], entry["after"]) == (mutant.module, mutant.before, mutant.after)


def _find_survivors(sample: list[Mutant], limits_s: dict[Path, float], jobs: int) -> list[Mutant]:
    """Return the mutants on which all of these tests pass; limits are CPU seconds of each test file without a break."""
    waiting, running, survivors = list(reversed(sample)), list[tuple[Mutant, BaseProcess]](), list[Mutant]()
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop()
            process = multiprocessing.get_context("fork").Process(target=_test, args=(mutant, limits_s))
            process.start()
            running.append((mutant, process))
        time.sleep(0.02)
        survivors += [mutant for mutant, process in running if process.exitcode == 0]
        running = [(mutant, process) for mutant, process in running if process.exitcode is None]
    return sorted(survivors, key=lambda mutant: mutant.line)


def _clean_times(tests: list[Path]) -> list[float]:
    """Return the seconds of processor time of each test file without a break."""
    times = []
    for path in tests:
        start = time.process_time()
        if _pytest("-x", str(path)):
            sys.exit(f"{path} fails without any break")
        times.append(time.process_time() - start)
    return times


def _test(mutant: Mutant, limits_s: dict[Path, float]) -> None:
    """Run in the child: import the mutant in place of the module and run the test files up to the first failure."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    sys.meta_path.insert(0, Mutated(mutant))
    for path, clean_s in limits_s.items():
        # An endless loop is detected too: by the system, which ends the process.
        limit_s = int(time.process_time() + 5 + 2 * clean_s)
        resource.setrlimit(resource.RLIMIT_CPU, (limit_s, resource.RLIM_INFINITY))
        if failed := _pytest("-x", str(path)):
            os._exit(failed)
    os._exit(0)


def _pytest(*arguments: str) -> int:
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):  # noqa: PTH123
        quiet = ("-q", "-m", "", "-p", "no:cacheprovider", "--assert=plain", "--hypothesis-profile=mutation")
        return int(pytest.main([*quiet, *arguments]))


def _collect_imports(path: Path) -> set[str]:
    """Return the modules that a file imports, directly or through metrics/ or tests/, without importing them."""
    modules: set[str] = set()
    paths = [path]
    while paths:
        new = _imported(paths.pop()) - modules
        modules |= new
        paths += [_path(name) for name in new if name.startswith(("yarus.metrics.", "tests.")) and _path(name).exists()]
    return modules


def _imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def _in_child(compute: Callable[[], list[T]]) -> list[T]:
    """Run it in a fork, so that metrics/ stays unimported here and every mutant is the first to be imported."""
    receiver, sender = multiprocessing.Pipe(duplex=False)

    def run(into: Connection) -> None:
        into.send_bytes(json.dumps(compute()).encode())

    child = multiprocessing.get_context("fork").Process(target=run, args=(sender,))
    child.start()
    sender.close()  # so that the death of the child ends the waiting
    result: list[T] = json.loads(receiver.recv_bytes())
    child.join()
    return result


def _preload(names: set[str]) -> None:
    """Import the libraries once, for all forks to share."""
    for name in sorted(names):
        if not name.startswith(("yarus", "tests", "__future__")):
            # About half of the names are classes and functions, not modules.
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    gc.freeze()  # so that no fork traverses all of it


def _module(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _path(module: str) -> Path:
    path = Path(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Runs the benchmarks named on the command line, or all of them, and prints one table."""

import importlib
import sys

from rich.console import Console
from rich.table import Table

from benchmarks import Row

AREAS = (
    "start",
    "text",
    "retrieval",
    "embedding",
    "statistics",
    "dense",
    "embed",
    "copy",
    "load",
    "chat",
    "dask",
    "judged",
    "many",
    "compare",
    "audit",
    "trend",
    "report",
    "map",
)


def main(areas: list[str]) -> int:
    """Exit code 1 when a target is not met."""
    if unknown := set(areas) - set(AREAS):
        sys.exit(f"no benchmark {', '.join(sorted(unknown))}; there are: {', '.join(AREAS)}")
    rows: list[Row] = []
    for area in areas or AREAS:
        print(f"{area} …", file=sys.stderr, flush=True)
        rows.extend(importlib.import_module(f"benchmarks.{area}").run())
    table = Table("what", "peer", "ours, s", "peer, s", "ratio", "target", "met")
    for row in rows:
        figures = (f"{row.ours_s:.4f}", f"{row.peer_s:.4f}", f"{row.ratio:.2f}", f"{row.goal} {row.target:g}")
        table.add_row(row.what, row.peer, *figures, "yes" if row.met else "NO")
    Console(width=150).print(table)
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Run the benchmarks named on the command line, or all of them, and print each area's rows as it ends."""

import importlib
import sys
import time

from rich.console import Console
from rich.table import Table

from benchmarks import Row

AREAS = (
    "start",
    "text",
    "facts",
    "retrieval",
    "embedding",
    "statistics",
    "dense",
    "embed",
    "served",
    "copy",
    "load",
    "chat",
    "user_code",
    "systems",
    "dask",
    "judged",
    "claims",
    "exam",
    "many",
    "compare",
    "finish",
    "labels",
    "incomplete",
    "filled",
    "audit",
    "trend",
    "alarms",
    "report",
    "map",
)


def main(areas: list[str]) -> int:
    """Return exit code 1 if a target is not met."""
    if unknown := set(areas) - set(AREAS):
        sys.exit(f"no benchmark {', '.join(sorted(unknown))}; there are: {', '.join(AREAS)}")
    console, chosen, missed = Console(width=150), areas or AREAS, 0
    for position, area in enumerate(chosen, start=1):
        print(f"{area} … ({position} of {len(chosen)})", file=sys.stderr, flush=True)
        start = time.perf_counter()
        rows = list(importlib.import_module(f"benchmarks.{area}").run())
        console.print(table(f"{area}, {time.perf_counter() - start:.0f} s", rows))
        missed += sum(not row.met for row in rows)
    return 1 if missed else 0


def table(title: str, rows: list[Row]) -> Table:
    """Return the table of one area's rows."""
    rendered = Table("what", "peer", "ours, s", "peer, s", "ratio", "target", "met", title=title, title_justify="left")
    for row in rows:
        figures = (f"{row.ours_s:.4f}", f"{row.peer_s:.4f}", f"{row.ratio:.2f}", f"{row.goal} {row.target:g}")
        rendered.add_row(row.what, row.peer, *figures, "yes" if row.met else "NO")
    return rendered


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

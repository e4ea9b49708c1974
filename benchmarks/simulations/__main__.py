"""Run the simulations, print every claim, and write docs/simulated.json: `make simulate`."""

import importlib
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.simulations import Claim

AREAS: tuple[str, ...] = (
    "verdicts",
    "baselines",
    "samples",
    "intervals",
    "differences",
    "grades",
    "trends",
    "exams",
    "corrected",
    "users",
    "crashes",
    "incomplete",
    "filled",
    "alarms",
    "moving_topics",
    "explained",
    "showing",
    "facts",
    "probes",
    "topics",
)
RESULTS = Path(__file__).parents[2] / "docs" / "simulated.json"


def main(areas: list[str]) -> int:
    """Return exit code 1 if a claim does not hold."""
    if unknown := set(areas) - set(AREAS):
        sys.exit(f"no simulation {', '.join(sorted(unknown))}; there are: {', '.join(AREAS)}")
    console, start = Console(width=120), time.perf_counter()
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    failed = 0
    with ProcessPoolExecutor() as pool:
        for area, claims in zip(areas or AREAS, pool.map(simulate, areas or AREAS), strict=True):
            console.print(table(area, claims))
            results[area] = [claim._asdict() | {"holds": claim.holds} for claim in claims]
            failed += sum(not claim.holds for claim in claims)
    RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(
        f"{time.perf_counter() - start:.0f} s; {failed} claims do not hold; python docs/generate.py shows them in docs"
    )
    return 1 if failed else 0


def simulate(area: str) -> list[Claim]:
    """Return all claims of one area."""
    return list(importlib.import_module(f"benchmarks.simulations.{area}").claims(1.0))


def table(title: str, claims: list[Claim]) -> Table:
    """Return the table of one area's claims."""
    rendered = Table("what", "promised", "measured", "repetitions", "holds", title=title, title_justify="left")
    for claim in claims:
        promised_range = f"{claim.low:g} to {claim.high:g}"
        rendered.add_row(
            claim.what, promised_range, f"{claim.measured:.3f}", str(claim.repetitions), "yes" if claim.holds else "NO"
        )
    return rendered


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

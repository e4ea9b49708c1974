"""Print sweeps, robustness probes and a judge compared with people, on stdout."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from yarus.flows.terminal.printing import add_colour, clean, get_tier_name, make_console, make_titled_table
from yarus.tasks.comparison.experiments.experiments_schema import (
    JudgeAndPeople,
    Outcome,
    Preference,
    Probe,
    Robustness,
    Sweep,
    SweepPair,
)
from yarus.tasks.comparison.experiments.sweep_table import (
    SIGNIFICANT_VERDICTS,
    format_difference,
    format_figure,
    format_interval,
    is_across_sources,
)
from yarus.tasks.config.texts import texts
from yarus.tasks.config.texts.messages import told


def print_sweep(document: Sweep, language: str) -> None:
    """Print the table of arms, the significant differences, the judges compared with people, and failures."""
    words, console = texts("sweep", language), make_console()
    heads = (words["arm"], *document["metrics"], words["cost"], words["latency"], words["front"])
    table = make_titled_table(words["sweep"], *heads)
    for arm in document["variants"]:
        cells = [format_interval(arm["metrics"].get(name)) for name in document["metrics"]]
        if arm["state"] != "completed":
            cells[0] = add_colour(texts("states", language)[arm["state"]], arm["state"])
        latency = " / ".join(filter(None, (format_figure(arm["latency_ms_p50"]), format_figure(arm["latency_ms_p95"]))))
        table.add_row(
            clean(arm["variant_name"]), *cells, format_figure(arm["cost_usd"]), latency, "*" if arm["pareto"] else ""
        )
    console.print("", table, words["legend"])
    if is_across_sources(document):
        console.print(words["sources"], soft_wrap=True)
    _print_pairs(document["pairs"], words)
    if document["judges"]:
        _print_judges(document["judges"], words)
    for outcome in (*document["variants"], *document["judges"]):
        if outcome["error"]:
            console.print(
                clean(words["failed"].format(arm=outcome["variant_name"], error=told(outcome["error"], language))),
                style="yellow",
            )
    if document["state"] in ("failed", "cancelled"):
        console.print(words["next"].format(id=document["sweep_id"]))


def print_robustness(document: Robustness, language: str) -> None:
    """Print one row per kind: how many cases it changes, and how ranks and answers move."""
    words, console = texts("sweep", language), make_console()
    for tier, kinds in document["tiers"].items():
        names = document["metrics"][tier]
        same = "same first" if tier == "tier1" else "same answer"
        title = words["contexts" if tier == "tier2" else "robustness"]
        kind_key = "kind of context" if tier == "tier2" else "kind"
        heads = (words[kind_key], words["changed"], words[same], *names)
        table = Table(*heads, title=f"{title}: {get_tier_name(tier, language)}", box=None, title_justify="left")
        for kind, probe in kinds.items():
            changed = f"{probe['n_changed']} / {probe['n']}" if probe["n"] else ""
            cells = [format_difference(probe["metrics"].get(name)) for name in names]
            table.add_row(words[kind], changed, format_interval(probe["unchanged_share"]), *cells)
        console.print("", table)
        _print_rates(kinds, words)
        for kind, probe in kinds.items():
            if probe["error"]:
                console.print(clean(f"{words[kind]}: {told(probe['error'], language)}"), style="yellow")
    _print_positions(document, words)
    console.print(words["differences"])


def _print_rates(kinds: Mapping[str, Probe], words: dict[str, str]) -> None:
    """Print the rates that only answers from bad contexts have."""
    rates = [(kind, *rate) for kind, probe in kinds.items() for rate in probe["rates"].items()]
    if not rates:
        return
    table = Table(*(words[name] for name in ("kind of context", "shows", "share", "of")), box=None)
    for kind, name, rate in rates:
        table.add_row(words[kind], words[name], format_interval(rate), f"{rate['n_scored']} / {rate['n_total']}")
    make_console().print("", table)


def _print_positions(document: Robustness, words: dict[str, str]) -> None:
    """Print the differences between positions of the relevant passages, one row per pair."""
    names = document["metrics"].get("tier2", [])
    differences = {(pair["a"], pair["b"], pair["metric"]): pair for pair in document["position_differences"]}
    if not differences:
        return
    table = Table(words["places"], *names, box=None)
    for a, b in dict.fromkeys(key[:2] for key in differences):
        table.add_row(f"{words[b]} − {words[a]}", *(format_difference(differences.get((a, b, name))) for name in names))
    make_console().print("", table)


def _print_pairs(pairs: Sequence[SweepPair], words: dict[str, str]) -> None:
    console = make_console()
    decided = [pair for pair in pairs if pair["verdict"] is not None]
    significant = [pair for pair in decided if pair["verdict"] in SIGNIFICANT_VERDICTS]
    if decided:
        console.print(f"\n{words['pairs']}", style="bold")
        for pair in significant:
            console.print(clean(words["better"].format(**pair)), soft_wrap=True)
        if not significant:
            console.print(words["none differ"])
    incomparable = {(pair["a"], pair["b"]) for pair in pairs if pair["reason"] == "judged by different judges"}
    if incomparable:
        console.print(words["not compared"].format(n=len(incomparable), reason=words["different judges"]))


def _print_judges(judges: Sequence[Outcome], words: dict[str, str]) -> None:
    names = ("exam_auc_faithfulness", "weighted_kappa", "user_votes_weighted_kappa")
    table = make_titled_table(words["judges"], words["judge"], *names)
    for row in judges:
        table.add_row(clean(row["judge_model"] or ""), *(format_interval(row["metrics"].get(name)) for name in names))
    make_console().print("", table)


def print_people(comparison: JudgeAndPeople, language: str) -> None:
    """Print how far a judge's preferences agree with people's, and theirs with each other's."""
    words = texts("people_pairs", language)
    title = words["title"].format(judge=comparison["judge"], n=comparison["pairs"])
    heads = (words[name] for name in ("who", "aspect", "pearson", "accuracy", "pairs"))
    table = make_titled_table(clean(title), *heads)
    judged = [*comparison["prompts"].items(), *comparison["other_scores"].items()]
    rows: list[tuple[str, Mapping[str, Preference | None]]] = [
        (words["people"], comparison["agreement_among_people"]),
        *judged,
    ]
    for rater, aspects in rows:
        for aspect, preference in aspects.items():
            if preference is not None:
                table.add_row(
                    clean(rater),
                    words[aspect],
                    _format_interval(preference, "pearson"),
                    _format_interval(preference, "accuracy"),
                    str(preference["pairs"]),
                )
                rater = ""
    console = make_console()
    console.print("", table)
    console.print(words["stand-in" if comparison["is_stand_in"] else "reading"], soft_wrap=True)


def _format_interval(preference: Mapping[str, Any], name: str) -> str:
    value, low, high = preference[name], preference[f"{name}_low"], preference[f"{name}_high"]
    if value is None:
        return "—"
    return f"{value:.3f}" + ("" if low is None else f" ({low:.3f} – {high:.3f})")

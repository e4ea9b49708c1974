"""Sweeps, robustness probes and a judge beside people, on stdout."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from yarus.flows.terminal.printing import coloured, new_console, plain, tier_name, titled_table
from yarus.tasks.comparison.experiments.experiments_schema import (
    JudgeAndPeople,
    Outcome,
    Preference,
    Probe,
    Robustness,
    Sweep,
    SweepPair,
)
from yarus.tasks.comparison.experiments.sweep_table import SHOWN, across_sources, difference, figure_of, interval
from yarus.tasks.config.texts import texts
from yarus.tasks.config.texts.messages import told


def print_sweep(document: Sweep, language: str) -> None:
    """The table of arms, the differences that are shown, the judges beside people, and what failed."""
    words, console = texts("sweep", language), new_console()
    heads = (words["arm"], *document["metrics"], words["cost"], words["latency"], words["front"])
    table = titled_table(words["sweep"], *heads)
    for arm in document["arms"]:
        cells = [interval(arm["metrics"].get(name)) for name in document["metrics"]]
        if arm["state"] != "completed":
            cells[0] = coloured(texts("states", language)[arm["state"]], arm["state"])
        latency = " / ".join(filter(None, (figure_of(arm["latency_ms_p50"]), figure_of(arm["latency_ms_p95"]))))
        table.add_row(plain(arm["arm"]), *cells, figure_of(arm["cost_usd"]), latency, "*" if arm["pareto"] else "")
    console.print("", table, words["legend"])
    if across_sources(document):
        console.print(words["sources"], soft_wrap=True)
    _print_pairs(document["pairs"], words)
    if document["judges"]:
        _print_judges(document["judges"], words)
    for said in (*document["arms"], *document["judges"]):
        if said["error"]:
            console.print(
                plain(words["failed"].format(arm=said["arm"], error=told(said["error"], language))), style="yellow"
            )
    if document["state"] in ("failed", "cancelled"):
        console.print(words["next"].format(id=document["sweep_id"]))


def print_robustness(document: Robustness, language: str) -> None:
    """A row a kind: how many cases it changes, and what that does to ranks and answers; then what only it shows."""
    words, console = texts("sweep", language), new_console()
    for tier, kinds in document["tiers"].items():
        names = document["metrics"][tier]
        same = "same first" if tier == "tier1" else "same answer"
        title = words["contexts" if tier == "tier2" else "robustness"]
        of = "kind of context" if tier == "tier2" else "kind"
        heads = (words[of], words["changed"], words[same], *names)
        table = Table(*heads, title=f"{title}: {tier_name(tier, language)}", box=None, title_justify="left")
        for kind, said in kinds.items():
            changed = f"{said['n_changed']} / {said['n']}" if said["n"] else ""
            cells = [difference(said["metrics"].get(name)) for name in names]
            table.add_row(words[kind], changed, interval(said["same"]), *cells)
        console.print("", table)
        _print_rates(kinds, words)
        for kind, said in kinds.items():
            if said["error"]:
                console.print(plain(f"{words[kind]}: {told(said['error'], language)}"), style="yellow")
    _print_places(document, words)
    console.print(words["differences"])


def _print_rates(kinds: Mapping[str, Probe], words: dict[str, str]) -> None:
    """What answers from bad contexts are measured by beside the differences."""
    rates = [(kind, *rate) for kind, said in kinds.items() for rate in said["rates"].items()]
    if not rates:
        return
    table = Table(*(words[name] for name in ("kind of context", "shows", "share", "of")), box=None)
    for kind, name, rate in rates:
        table.add_row(words[kind], words[name], interval(rate), f"{rate['n_scored']} / {rate['n_total']}")
    new_console().print("", table)


def _print_places(document: Robustness, words: dict[str, str]) -> None:
    """The right passages in one place less those in another, a row a pair."""
    names = document["metrics"].get("tier2", [])
    found = {(pair["a"], pair["b"], pair["metric"]): pair for pair in document["places"]}
    if not found:
        return
    table = Table(words["places"], *names, box=None)
    for a, b in dict.fromkeys(key[:2] for key in found):
        table.add_row(f"{words[b]} − {words[a]}", *(difference(found.get((a, b, name))) for name in names))
    new_console().print("", table)


def _print_pairs(pairs: Sequence[SweepPair], words: dict[str, str]) -> None:
    console = new_console()
    told = [pair for pair in pairs if pair["verdict"] is not None]
    found = [pair for pair in told if pair["verdict"] in SHOWN]
    if told:
        console.print(f"\n{words['pairs']}", style="bold")
        for pair in found:
            console.print(plain(words["better"].format(**pair)), soft_wrap=True)
        if not found:
            console.print(words["none differ"])
    untold = {(pair["a"], pair["b"]) for pair in pairs if pair["reason"] == "judged by different judges"}
    if untold:
        console.print(words["not compared"].format(n=len(untold), reason=words["different judges"]))


def _print_judges(judges: Sequence[Outcome], words: dict[str, str]) -> None:
    names = ("exam_auc_faithfulness", "weighted_kappa", "user_votes_weighted_kappa")
    table = titled_table(words["judges"], words["judge"], *names)
    for said in judges:
        table.add_row(plain(said["judge_model"] or ""), *(interval(said["metrics"].get(name)) for name in names))
    new_console().print("", table)


def print_people(found: JudgeAndPeople, language: str) -> None:
    """A judge beside people: how far its preferences are theirs, and theirs each other's."""
    words = texts("people_pairs", language)
    title = words["title"].format(judge=found["judge"], n=found["pairs"])
    heads = (words[name] for name in ("who", "aspect", "pearson", "accuracy", "pairs"))
    table = titled_table(plain(title), *heads)
    judged = [*found["prompts"].items(), *found["others"].items()]
    rows: list[tuple[str, Mapping[str, Preference | None]]] = [(words["people"], found["people"]), *judged]
    for who, aspects in rows:
        for aspect, of in aspects.items():
            if of is not None:
                table.add_row(plain(who), words[aspect], _span(of, "pearson"), _span(of, "accuracy"), str(of["pairs"]))
                who = ""
    console = new_console()
    console.print("", table)
    console.print(words["stand-in" if found["stand_in"] else "reading"], soft_wrap=True)


def _span(of: Mapping[str, Any], name: str) -> str:
    value, low, high = of[name], of[f"{name}_low"], of[f"{name}_high"]
    if value is None:
        return "—"
    return f"{value:.3f}" + ("" if low is None else f" ({low:.3f} – {high:.3f})")

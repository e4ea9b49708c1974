"""Print the expected costs and delays of alarms as a table."""

from rich.markup import escape
from rich.table import Table

from yarus.deployments.alarms.expected_alarms import AlarmBudget
from yarus.flows.terminal.printing import make_console
from yarus.metrics.statistics.change_detection.expectation import MAX_DELAY
from yarus.tasks.config.texts import texts


def print_budget(budget: AlarmBudget, language: str) -> None:
    """Print the document of `yarus.deployments.alarms.expected_alarms.alarm_budget`."""
    words = texts("alarm_budget", language)
    console = make_console()
    totals = {"source": budget["source"], "alarms": budget["false_alarms_per_year"], "looks": budget["checks_per_year"]}
    console.print(escape(words["title"].format(**totals)), soft_wrap=True)
    table = Table(box=None, padding=(0, 1), header_style="dim")
    for name in ("tier", "cases", "nights", "noise", "false", "at once", "less", "slowly"):
        table.add_column(words[name], justify="left" if name == "tier" else "right", no_wrap=name == "tier")
    for tier in budget["tiers"]:
        noise, false = tier["night_noise_sd"], tier["false_alarms_per_year"]
        delays = [
            tier["detection_delay_5_points"],
            tier["detection_delay_2_points"],
            tier["detection_delay_drift"],
        ]
        no_delay = "—" if noise is None else f"> {MAX_DELAY}"
        table.add_row(
            f"{tier['tier']} {tier['metric']}",
            str(tier["cases"]),
            str(tier["nights"]),
            "—" if noise is None else f"{noise:.4f}",
            "—" if false is None else f"{false:.1f}",
            *(no_delay if delay is None else f"{delay:g}" for delay in delays),
        )
    console.print(table)
    for name in budget["unmonitored_evaluations"]:
        console.print(escape(words["unwatched"].format(id=name)), soft_wrap=True)
    for sentence in ("meaning", "one night"):
        if sentence == "meaning" or any(tier["night_noise_sd"] is None for tier in budget["tiers"]):
            console.print(escape(words[sentence]), soft_wrap=True, style="dim")

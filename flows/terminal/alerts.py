"""What alarms may cost and find here, as a table."""

from rich.markup import escape
from rich.table import Table

from yarus.deployments.alarms.expected import AlarmBudget
from yarus.flows.terminal.printing import new_console
from yarus.metrics.statistics.alarms.expectation import LONGEST
from yarus.tasks.config.texts import texts


def print_budget(found: AlarmBudget, language: str) -> None:
    """The document of `yarus.deployments.alarms.expected.alarm_budget`."""
    words = texts("alarm_budget", language)
    console = new_console()
    budget = {"source": found["source"], "alarms": found["false_alarms_a_year"], "looks": found["looks_a_year"]}
    console.print(escape(words["title"].format(**budget)), soft_wrap=True)
    table = Table(box=None, padding=(0, 1), header_style="dim")
    for name in ("tier", "cases", "nights", "noise", "false", "at once", "less", "slowly"):
        table.add_column(words[name], justify="left" if name == "tier" else "right", no_wrap=name == "tier")
    for one in found["tiers"]:
        noise, false = one["night_by_itself"], one["false_alarms_a_year"]
        until = [
            one["nights_to_notice_5_points"],
            one["nights_to_notice_2_points"],
            one["nights_to_notice_a_fifth_of_a_point_a_night"],
        ]
        never = "—" if noise is None else f"> {LONGEST}"
        table.add_row(
            f"{one['tier']} {one['metric']}",
            str(one["cases"]),
            str(one["nights"]),
            "—" if noise is None else f"{noise:.4f}",
            "—" if false is None else f"{false:.1f}",
            *(never if nights is None else f"{nights:g}" for nights in until),
        )
    console.print(table)
    for name in found["unwatched"]:
        console.print(escape(words["unwatched"].format(id=name)), soft_wrap=True)
    for sentence in ("meaning", "one night"):
        if sentence == "meaning" or any(one["night_by_itself"] is None for one in found["tiers"]):
            console.print(escape(words[sentence]), soft_wrap=True, style="dim")

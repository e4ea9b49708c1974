"""The group of all commands: their order in the help, and the new names of renamed commands and options."""

import shlex
from collections.abc import Sequence

import click

from yarus.db.errors import InputError
from yarus.tasks.config.former_names import FORMER_TIER_PARAMETERS

RENAMED_COMMANDS = {
    "examine": "judge agreement",
    "label": "judge label",
    "label --plan": "judge plan",
    "prune": "admin prune",
    "stop": "admin stop",
    "tag": "admin tag",
    "view": "serve --reports",
}
"""Old command -> new command. If several match, the last one counts."""
RENAMED_PARAMETER_OPTIONS = {f"--{old}": f"--{new.replace('_', '-')}" for old, new in FORMER_TIER_PARAMETERS.items()}
RENAMED_OPTIONS = {
    "admin prune": {"--all": "--include-baselines", "--calls": "--replies"},
    "admin tag": {"--remove": "--untag"},
    "corpus": {"--points": "--map-points"},
    "dataset nuggets": {"--remake": "--regenerate"},
    "dataset split": {"--at": "--from-date"},
    "judge agreement": {"--scored": "--other-scores"},
    "judge label": {"--between": "--suggest", "--relevance": "--results"},
    "robustness": {"--kinds": "--perturbations"},
    **dict.fromkeys(("judge exam", "run"), RENAMED_PARAMETER_OPTIONS),
}
"""Command -> its old options -> the new ones."""


class CommandGroup(click.Group):
    """A group whose help keeps the order of its commands, and that refuses old spellings with the new ones."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in the order in which they were added."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is called.

        Raises:
            InputError: the command or an option was renamed; the message has the new name.
        """
        if ctx.resilient_parsing:  # a completion prints no errors
            return super().resolve_command(ctx, args)
        if new_line := translate_command_line(args):
            raise InputError("'yarus {old}' was renamed; run: {new}", old=args[0], new=new_line)
        if renamed := find_renamed_option(args):
            raise InputError("'{old}' was renamed; use {new}", old=renamed[0], new=renamed[1])
        return super().resolve_command(ctx, args)


def translate_command_line(arguments: Sequence[str]) -> str | None:
    """Return the command line in its new spelling; None if it is not an old one."""
    for old, new in reversed(RENAMED_COMMANDS.items()):
        command, *flags = old.split()
        dropped = [*flags, "--metric"] if flags else []  # the metric is an argument of the new command
        options = [part for argument in arguments[1:] for part in _split_option(argument, dropped)]
        if arguments[0] == command and set(flags) <= set(options):
            kept = (option for option in options if option not in dropped)
            return shlex.join(["yarus", *new.split(), *(_rename_option(option, new) for option in kept)])
    return None


def _rename_option(argument: str, command: str) -> str:
    """Return an argument with the new name of its option."""
    name, separator, value = argument.partition("=")
    return RENAMED_OPTIONS.get(command, {}).get(name, name) + separator + value


def _split_option(argument: str, flags: Sequence[str]) -> list[str]:
    """Return an argument `--FLAG=VALUE` in two parts if it is of one of these flags."""
    return argument.split("=", 1) if argument.partition("=")[0] in flags else [argument]


def find_renamed_option(arguments: Sequence[str]) -> tuple[str, str] | None:
    """Return the first old option of a command line and its new name; None if there is none."""
    for command, options in RENAMED_OPTIONS.items():
        words = command.split()
        if list(arguments[: len(words)]) == words:
            names = (argument.partition("=")[0] for argument in arguments[len(words) :])
            return next(((name, options[name]) for name in names if name in options), None)
    return None

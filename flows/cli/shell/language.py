"""The language that the command line speaks: Russian, or English where YARUS_LANGUAGE is `en`."""

import copy
import inspect
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from yarus.db.words import Words

LANGUAGE = "YARUS_LANGUAGE"
HELP = {"-h", "--help"}


def language() -> str:
    """The language that is set, found without the other settings: help needs none of them, and a wrong one is told."""
    given = {name.upper(): value for name, value in os.environ.items()}
    if LANGUAGE not in given and Path(".env").is_file():
        from dotenv import dotenv_values

        given |= {name.upper(): value or "" for name, value in dotenv_values(".env").items()}
    return "en" if given.get(LANGUAGE) == "en" else "ru"


def told(said: "str | Words | BaseException") -> str:
    """A message in that language."""
    from yarus.tasks.config.texts.messages import told

    return told(said, language())


def spoken(cli: click.Group, arguments: Sequence[str]) -> click.Command:
    """The command line as it is run: where its help is asked for, with that in its language."""
    _let_click_speak()
    group = cli.commands.get(arguments[0]) if len(arguments) == 1 else None
    if arguments and not HELP.intersection(arguments) and not isinstance(group, click.Group):
        return cli
    return in_language(cli, language(), arguments)


def in_language(command: click.Command, spoken: str, arguments: Sequence[str] = ()) -> click.Command:
    """A copy of a command, and of those below it, whose help is in a language and is cut nowhere."""
    from yarus.tasks.config.texts.messages import translated

    made = copy.copy(command)
    parts = re.split(r"\n\s*\n", inspect.cleandoc(command.help or ""))
    first, *others = [part if part.startswith("\b") else translated(" ".join(part.split()), spoken) for part in parts]
    made.help, made.short_help = "\n\n".join((first, *others)), first
    made.options_metavar = translated("[OPTIONS]", spoken)
    made.params = [_parameter(one, spoken) for one in command.params]
    made._help_option = None  # click keeps the one that it made first, whatever language that was asked for in
    if isinstance(made, click.Group) and isinstance(command, click.Group):
        made.subcommand_metavar = translated("COMMAND [ARGS]...", spoken)
        made.commands = {name: in_language(one, spoken, arguments) for name, one in command.commands.items()}
    if command.name == "run" and "run" in arguments:
        from yarus.flows.cli.shell.tier_help import with_tiers

        with_tiers(made, arguments, spoken)
    return made


def shown(error: click.ClickException) -> str:
    """An error of usage, as click shows it."""
    from io import StringIO

    if isinstance(error, click.UsageError):
        error.message = told(error.message)  # type: ignore[misc]  # ours is English until here
        if error.ctx is not None:
            error.ctx.command = in_language(error.ctx.command, language())
            param = getattr(error, "param", None)
            if isinstance(param, click.Parameter) and isinstance(error, click.BadParameter):
                error.param = _parameter(param, language())
    said = StringIO()
    error.show(file=said)
    return said.getvalue()


def _parameter(given: click.Parameter, spoken: str) -> click.Parameter:
    from yarus.tasks.config.texts.messages import translated

    made = copy.copy(given)
    if isinstance(made, click.Option):
        made.help = made.help and translated(made.help, spoken)
        if made.is_flag or isinstance(made.type, click.Choice) or made.count:
            return made
    usual = made.name if isinstance(made, click.Argument) else made.type.name
    name = made.metavar or str(usual).upper()
    if not isinstance(made.type, click.Choice) and (other := translated(name, spoken)) != name:
        made.metavar = f"{other}..." if made.nargs == -1 and not made.metavar else other
    return made


def _let_click_speak() -> None:
    """Click looks its words up by `gettext`, which knows files of its own format only: ours are looked up instead."""
    for module in [module for name, module in sys.modules.items() if name.startswith("click.")]:
        for name, ours in (("_", _word), ("ngettext", _words)):
            if hasattr(module, name):
                setattr(module, name, ours)


def _word(text: str) -> str:
    from yarus.tasks.config.texts.messages import translated

    return translated(text, language())


def _words(one: str, many: str, n: int) -> str:
    return _word(one if n == 1 else many)

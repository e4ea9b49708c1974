"""The language of the command line: YARUS_LANGUAGE, else that of the locale."""

import copy
import inspect
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from yarus.tasks.config.former_names import find_former_names
from yarus.tasks.config.language import locale_language

if TYPE_CHECKING:
    from yarus.db.messages import Words

LANGUAGE_VARIABLE = "YARUS_LANGUAGE"
ALL_OPTION = "--help-all"
HELP_OPTIONS = {"-h", "--help", ALL_OPTION}
CLICK_TEXTS = {"Show this message and exit.": "Show this message and exit; --help-all: in full."}
"""Click's text -> that of Yarus."""
COMPLETION_VARIABLE = "_YARUS_COMPLETE"
"""Set by the shell when it completes a command line."""


def get_language() -> str:
    """Return the language of the output: YARUS_LANGUAGE, else that of the locale.

    It is read without the other settings: help must work even if one of them is wrong.
    """
    language = _read_language()
    return language if language in ("ru", "en") else locale_language()


def _read_language() -> str:
    return os.environ.get(LANGUAGE_VARIABLE) or _read_variables().get(LANGUAGE_VARIABLE, "")


def _warn_about_language() -> None:
    """Print on stderr the error of a wrong YARUS_LANGUAGE, with which other commands than help end."""
    if _read_language() in ("", "ru", "en") or COMPLETION_VARIABLE in os.environ:
        return
    from yarus.db.errors import InputError
    from yarus.tasks.config.settings import get_settings

    try:
        get_settings()
    except InputError as error:
        click.echo(f"yarus: {translate(error)}", err=True)


def _read_variables() -> dict[str, str]:
    """Return the variables of the environment and of `.env`; an empty one does not hide that of the file."""
    variables = {name.upper(): value for name, value in os.environ.items() if value}
    if not Path(".env").is_file():
        return variables
    from dotenv import dotenv_values

    return {name.upper(): value for name, value in dotenv_values(".env").items() if value} | variables


def warn_about_former_names() -> None:
    """Print one line on stderr if settings have their former names; completions of the shell print nothing."""
    renamed = sorted(find_former_names(_read_variables()))
    if renamed and COMPLETION_VARIABLE not in os.environ:
        from yarus.db.messages import Words

        names = ", ".join(f"{former} → {present}" for former, present in renamed)
        message = Words(
            "yarus: renamed settings: {names}; the next release does not accept the former names", names=names
        )
        click.echo(translate(message), err=True)


def translate(message: "str | Words | BaseException") -> str:
    """Return a message in that language."""
    from yarus.tasks.config.texts.messages import told

    return told(message, get_language())


def localize_cli(cli: click.Group, arguments: Sequence[str]) -> click.Command:
    """Return the command line to run; if its help is asked for, with the help in the chosen language."""
    _patch_click_messages()
    command: click.Command | None = cli
    for name in arguments:
        command = command.commands.get(name) if isinstance(command, click.Group) else None
    if not HELP_OPTIONS.intersection(arguments) and not isinstance(command, click.Group):
        return cli
    _warn_about_language()
    return localize_command(cli, get_language(), arguments)


def localize_command(command: click.Command, language: str, arguments: Sequence[str] = ()) -> click.Command:
    """Return a copy of a command and its subcommands whose help is translated and never cut off.

    With --help-all, and to complete a command line, nothing is hidden.
    """
    from yarus.tasks.config.texts.messages import translate_text

    copied = copy.copy(command)
    parts = re.split(r"\n\s*\n", inspect.cleandoc(command.help or ""))
    first, *further = [
        part if part.startswith("\b") else translate_text(" ".join(part.split()), language) for part in parts
    ]
    copied.help, copied.short_help = "\n\n".join((first, *further)), first
    copied.options_metavar = translate_text("[OPTIONS]", language)
    copied.params = [_localize_parameter(parameter, language) for parameter in command.params]
    copied.epilog = command.epilog and translate_text(command.epilog, language)
    copied._help_option = None  # click caches the first one, in whatever language it was made
    if isinstance(copied, click.Group) and isinstance(command, click.Group):
        copied.subcommand_metavar = translate_text("COMMAND [ARGS]...", language)
        copied.commands = {
            name: localize_command(subcommand, language, arguments) for name, subcommand in command.commands.items()
        }
    tier_words = {"run": arguments, "exam": ["judge"]}.get(str(command.name), ())
    if tier_words and command.name in arguments:
        from yarus.flows.cli.framework.tier_help import add_tier_help

        add_tier_help(copied, tier_words, language)
    _show_or_count_hidden(copied, arguments, language)
    return copied


def _show_or_count_hidden(command: click.Command, arguments: Sequence[str], language: str) -> None:
    """Show the hidden options of a command if all are asked for, else add that there are some."""
    from yarus.tasks.config.texts.messages import translate_text

    hidden = [option for option in command.params if isinstance(option, click.Option) and option.hidden]
    if ALL_OPTION in arguments or COMPLETION_VARIABLE in os.environ:
        command.hidden = False
        for option in hidden:
            option.hidden = False
    elif hidden:
        hint = translate_text("Rarely used options: --help-all.", language)
        command.epilog = "\n\n".join(filter(None, (command.epilog, hint)))


def format_usage_error(error: click.ClickException) -> str:
    """Return a usage error as click prints it."""
    from io import StringIO

    if isinstance(error, click.UsageError):
        error.message = translate(error.message)  # type: ignore[misc]  # Yarus writes it in English until here
        if error.ctx is not None:
            error.ctx.command = localize_command(error.ctx.command, get_language())
            error.ctx.help_option_names = ["--help"]  # click names the longest one in the hint
            param = getattr(error, "param", None)
            if isinstance(param, click.Parameter) and isinstance(error, click.BadParameter):
                error.param = _localize_parameter(param, get_language())
    output = StringIO()
    error.show(file=output)
    return output.getvalue()


def _localize_parameter(parameter: click.Parameter, language: str) -> click.Parameter:
    from yarus.tasks.config.texts.messages import translate_text

    copied = copy.copy(parameter)
    if isinstance(copied, click.Option):
        copied.help = copied.help and translate_text(copied.help, language)
        if copied.is_flag or isinstance(copied.type, click.Choice) or copied.count:
            return copied
    default_name = copied.name if isinstance(copied, click.Argument) else copied.type.name
    name = copied.metavar or str(default_name).upper()
    if not isinstance(copied.type, click.Choice) and (translated_name := translate_text(name, language)) != name:
        copied.metavar = f"{translated_name}..." if copied.nargs == -1 and not copied.metavar else translated_name
    return copied


def _patch_click_messages() -> None:
    """Replace click's `gettext`, which reads only its own file format, with the translations of Yarus."""
    for module in [module for name, module in sys.modules.items() if name.startswith("click.")]:
        for name, replacement in (("_", _translate_text), ("ngettext", _translate_plural)):
            if hasattr(module, name):
                setattr(module, name, replacement)


def _translate_text(text: str) -> str:
    from yarus.tasks.config.texts.messages import translate_text

    return translate_text(CLICK_TEXTS.get(text, text), get_language())


def _translate_plural(singular: str, plural: str, n: int) -> str:
    return _translate_text(singular if n == 1 else plural)

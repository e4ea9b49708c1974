"""The group of all commands: their order in the help, and the new spelling of commands that were renamed."""

import shlex
from collections.abc import Sequence

import click

from yarus.db.errors import InputError

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
            InputError: the command was renamed; the message is the new command line.
        """
        if new_line := translate_command_line(args):
            raise InputError("'yarus {old}' was renamed; run: {new}", old=args[0], new=new_line)
        return super().resolve_command(ctx, args)


def translate_command_line(arguments: Sequence[str]) -> str | None:
    """Return the command line in its new spelling; None if it is not an old one."""
    for old, new in reversed(RENAMED_COMMANDS.items()):
        old_words = old.split()
        if arguments[0] == old_words[0] and set(old_words) <= set(arguments):
            options = list(arguments)
            for word in old_words:
                options.remove(word)
            return shlex.join(["yarus", *new.split(), *options])
    return None

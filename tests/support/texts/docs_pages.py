"""The documentation pages, and the commands in them. Imported by full name."""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("README*.md")), ROOT / "deployments" / "README.md"]
PAGES = [page for page in PAGES if not page.name.endswith("template.md")]
FENCED = re.compile(r"(?:^<!-- not run: (?P<why>[^\n]+) -->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.M | re.S)
COMMAND = re.compile(r"(?:\.venv/bin/)?(?:yarus|prefect) |(?:[A-Z_]+=\S+ )+(?:\.venv/bin/)?yarus |make\b|export ")


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    kind: str
    """The word after the fence: console, sql, python, toml … or nothing."""
    not_run: str | None
    """Why its commands are only checked; None if a test runs them."""
    text: str

    @property
    def commands(self) -> list[str]:
        """Return its commands, without comments: console lines after `$`, elsewhere lines that begin like a command."""
        lines = self.text.replace("\\\n", "").splitlines()
        if self.kind == "console":
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        elif self.kind:
            return []
        else:
            lines = [line for line in lines if COMMAND.match(line)]
        return [re.sub(r"\s{2,}# .*", "", line).strip() for line in lines]


def read_blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page."""
    matches = FENCED.finditer(page.read_text(encoding="utf-8"))
    return [Block(page.name, block["kind"], block["why"], block["text"]) for block in matches]


def find_inline_commands(page: Path) -> list[str]:
    """Return the commands in the running text and tables of a page: `yarus …`."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    return [" ".join(command.split()) for command in re.findall(r"`((?:\.venv/bin/)?yarus [^`]+)`", text)]


def split_command(command: str) -> tuple[dict[str, str], list[str]]:
    """Return the variables before a command, and its words up to a shell operator."""
    parts = shlex.split(command.replace("…", ""), comments=True)
    end = next((index for index, word in enumerate(parts) if word in (">", "|", "&&", "||")), len(parts))
    parts = parts[:end]
    first = next((index for index, word in enumerate(parts) if not re.fullmatch(r"[A-Z_0-9]+=.*", word)), len(parts))
    return dict(word.split("=", 1) for word in parts[:first]), parts[first:]

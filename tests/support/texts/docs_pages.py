"""The pages that people read, and the commands in them. Imported by full name."""

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
    """What follows the fence: console, sql, python, toml … or nothing."""
    not_run: str | None
    """Why its commands are only checked; None: a test runs them."""
    text: str

    @property
    def commands(self) -> list[str]:
        """Its commands, without comments; in a console those after `$`, elsewhere lines that begin like one."""
        lines = self.text.replace("\\\n", "").splitlines()
        if self.kind == "console":
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        elif self.kind:
            return []
        else:
            lines = [line for line in lines if COMMAND.match(line)]
        return [re.sub(r"\s{2,}# .*", "", line).strip() for line in lines]


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page."""
    found = FENCED.finditer(page.read_text(encoding="utf-8"))
    return [Block(page.name, block["kind"], block["why"], block["text"]) for block in found]


def inline(page: Path) -> list[str]:
    """The commands that stand in its running text and tables: `yarus …`."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    return [" ".join(said.split()) for said in re.findall(r"`((?:\.venv/bin/)?yarus [^`]+)`", text)]


def words(command: str) -> tuple[dict[str, str], list[str]]:
    """The variables before a command, and its words up to where the shell goes on with something else."""
    given = shlex.split(command.replace("…", ""), comments=True)
    end = next((n for n, word in enumerate(given) if word in (">", "|", "&&", "||")), len(given))
    given = given[:end]
    first = next((n for n, word in enumerate(given) if not re.fullmatch(r"[A-Z_0-9]+=.*", word)), len(given))
    return dict(word.split("=", 1) for word in given[:first]), given[first:]

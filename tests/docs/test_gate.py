"""Check that the file in docs/gate.md is a gate file, and that its commands exist."""

import re
import shlex
from pathlib import Path

import pytest

from yarus.__main__ import cli
from yarus.flows.cli.runner import parse_parameters
from yarus.tasks.comparison.gate_rules import GateRule, read_gate_rules

PAGE = (Path(__file__).parents[2] / "docs" / "gate.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
COMMANDS = [
    part.strip()
    for kind, block in BLOCKS
    if not kind
    for line in block.splitlines()
    for part in line.split("&&")
    if part.strip().startswith("yarus ")
]


def test_page_file_is_valid_gate_file(tmp_path: Path) -> None:
    (text,) = (block for kind, block in BLOCKS if kind == "toml")
    path = tmp_path / "gate.toml"
    path.write_text(text, encoding="utf-8")
    policy = read_gate_rules(path)
    assert len(policy.rules) == 6
    assert GateRule("avg_e2e_score", "no regression", 0.03) in policy.rules
    assert set(policy.baselines) == {"tier1"}


@pytest.mark.parametrize("command", COMMANDS)
def test_page_commands_exist(command: str) -> None:
    _, name, *words = shlex.split(command)
    if name == "run":
        tier, *options = words
        parse_parameters(tier, {}, (), options)
    else:
        cli.commands[name].make_context(name, words)


def test_page_has_commands() -> None:
    assert len(COMMANDS) >= 8

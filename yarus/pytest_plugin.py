"""For pytest: a test that fails where an evaluation does not pass its gate."""

from pathlib import Path


def assert_gate(
    evaluation: str = "last", *, baseline: str | None = None, file: str | Path | None = None, strict: bool = False
) -> None:
    """Fails where `yarus gate` would, with every rule and what its verdict rests on.

    Args:
        evaluation: its id, the beginning or end of it, its name, or `last`.
        baseline: in place of the accepted one; `previous` for the evaluation before.
        file: with the rules; default: gate.toml in the current folder, else the rules that hold without one.
        strict: fail also where too few cases were measured to tell.

    Raises:
        AssertionError: the gate is not passed.
        InputError: no such evaluation, baseline or file.
    """
    __tracebackhide__ = True
    from yarus.flows.cli import own_database
    from yarus.flows.terminal.differences.gate import gate_lines, stops
    from yarus.tasks.comparison.gates.gate import gate
    from yarus.tasks.comparison.gates.gate_rules import read_policy
    from yarus.tasks.config.settings import settings

    found = gate(own_database(), evaluation, read_policy(Path(file) if file else None), baseline=baseline)
    if stops(found, strict=strict):
        raise AssertionError("\n".join(gate_lines(found, settings().language)))

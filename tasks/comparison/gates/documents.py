"""What a gate finds, as it is printed with `--json`."""

from typing import Literal

from typing_extensions import TypedDict

from yarus.tasks.comparison.gates.gate_rules import Kind
from yarus.tasks.results.summary import GateVerdict, State

BaselineKind = Literal["accepted", "first", "pinned", "given", "previous"]


class RuleResult(TypedDict):
    """A rule of the gate, judged."""

    metric: str
    stratum: str | None
    rule: Kind
    bound: float | None
    """The floor, the ceiling, or the largest tolerated loss."""
    verdict: GateVerdict
    value: float | None
    ci_low: float | None
    """Of the 95 % confidence interval: of the value, or of the difference where the rule is about one."""
    ci_high: float | None
    n: int | None
    """Cases that it is made of."""
    baseline: float | None
    """The value of the baseline."""
    difference: float | None
    p: float | None
    """Two-sided, for no difference at all; with a margin one-sided, for a loss of at most the margin."""
    p_holm: float | None
    """Holm's p: of a headline metric without a margin over the tier's headline metrics, as `compare` has it; of the
    other rules that compare over all of these."""
    smallest_detectable: float | None
    """The true difference that a comparison of this size, under that p, finds four times in five; with a margin what
    a loss has to exceed it by."""
    reason: str | None
    """Why it could not be judged."""
    needs: int | None
    """About how many more cases would decide it."""


class GateResult(TypedDict):
    """An evaluation judged by every rule that is about its tier."""

    evaluation_id: str
    tier: str
    source: str
    state: State
    sut_label: str | None
    error: str | None
    verdict: GateVerdict
    """The worst of its rules'."""
    file: str | None
    """Null: the rules that hold without one."""
    baseline: str | None
    """The evaluation compared with; null where there is none, or none is needed."""
    baseline_kind: BaselineKind | None
    """Why that one: named on the command line or pinned in the gate file; accepted by a person, or the first of its
    comparability key; or merely the one before, which was asked for and may be a bad one."""
    rules: list[RuleResult]

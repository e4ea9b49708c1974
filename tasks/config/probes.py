"""Ways of changing what a system is given, to see whether its answers stay: questions, and contexts."""

from typing import Literal, get_args

Perturbation = Literal["typos", "yo", "lower", "layout", "paraphrase"]
"""Ways of asking the same: typing errors, «е» for «ё», lower case, wrong keyboard layout, other words."""
ContextPerturbation = Literal[
    "distractors", "gold_first", "gold_middle", "gold_last", "gold_removed", "counterfactual", "injection"
]
"""Bad contexts: passages of other pages among the right ones, the right ones before, amid or behind these, or not at
all; another number or date in them; an instruction in them.
"""
Kind = Literal[Perturbation, ContextPerturbation]
KINDS: dict[str, tuple[Kind, ...]] = {
    "tier1": get_args(Perturbation),
    "tier2": get_args(ContextPerturbation),
    "tier3": get_args(Perturbation),
}
"""What each tier can be given changed."""
ProbedTier = Literal["tier1", "tier2", "tier3"]
QUESTIONS: tuple[ProbedTier, ...] = ("tier1", "tier3")
"""The tiers that are probed where nothing is chosen."""

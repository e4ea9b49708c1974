"""What an evaluation of answers is made with: who answers, and who judges."""

from collections.abc import Sequence
from typing import TypeVar

from yarus.db.errors import InputError
from yarus.tasks.cases.perturbations import perturbed
from yarus.tasks.config.parameters import Answering, Tier3
from yarus.tasks.config.settings import settings
from yarus.tasks.evaluation.identity import (
    CITATIONS,
    CLAIMS,
    FOLLOW_UPS,
    NUGGETS,
    generator_identity,
    judge_identity,
    prompt_identity,
)
from yarus.tasks.evaluation.resolved import Resolved
from yarus.tasks.evaluation.run import Run
from yarus.tasks.loading.source import unchanged
from yarus.tasks.models.embedders import measuring_embedder
from yarus.tasks.prompts import rubrics
from yarus.tasks.steps.reuse_answers import RECORDED
from yarus.tasks.systems.sut import system

A = TypeVar("A", bound=Answering)


def resumed(run: Run[A], metrics: Sequence[str]) -> Run[A]:
    """The evaluation that is resumed, if it is made with what it was begun with."""
    now = measuring(run.parameters, run.resolved["language"], metrics)
    if "generator" in run.resolved and "answers_of" not in run.resolved:
        now |= answering(run.parameters, run.resolved["language"])
    if "dialogs" in run.resolved:
        now["dialogs"] = judge_identity(run.parameters, run.resolved["language"], FOLLOW_UPS)
    return unchanged(run, **now)


def answering(parameters: Answering, language: str) -> Resolved:
    """Who answers, and by which prompt where it is one of the user's own."""
    found: Resolved = {"generator": generator_identity(parameters)}
    if prompt := prompt_identity(parameters, language):
        found["generator_prompt"] = prompt
    return found


def asked_system(parameters: Tier3) -> Resolved:
    """The system under test, and whether it takes history; what cannot work is found before anything is asked."""
    configuration = settings()
    sut = parameters.sut or configuration.sut
    if sut == RECORDED and perturbed(parameters):
        raise InputError("recorded answers are to the questions as they are: leave out --perturbation")
    if sut in ("local", RECORDED):
        return {"sut": sut}
    found = system(sut, configuration)
    if parameters.unit == "chunk":
        raise InputError("unit 'chunk' needs the system 'local': another one names pages; leave out --unit")
    for name in ("reranker", "generator_prompt"):
        if getattr(parameters, name):
            raise InputError(
                "{name} {given!r} needs the system 'local': another one has its own; leave out --{option}",
                name=name,
                given=getattr(parameters, name),
                option=name.replace("_", "-"),
            )
    return {"sut": sut, "takes_history": found.takes_history}


def measuring(parameters: Answering, language: str, metrics: Sequence[str]) -> Resolved:
    """Who judges, by which prompts, and what measures similarity."""
    found: Resolved = {
        "judge": judge_identity(parameters, language, (*metrics, *rubrics(settings()))),
        "similarity_embedder": measuring_embedder(),
    }
    if parameters.claims:
        found["claims"] = judge_identity(parameters, language, CLAIMS)
    if parameters.nuggets:
        found["nuggets"] = judge_identity(parameters, language, NUGGETS)
    if isinstance(parameters, Tier3) and (parameters.claims or parameters.citations):
        found["citations"] = judge_identity(parameters, language, CITATIONS)
    return found

"""What can be known before anything is started: settings and files at once, then rows, addresses and users' code."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from yarus.db.errors import InputError, nothing_in, nothing_to_search
from yarus.db.source_rows import has_recorded_contexts, is_empty
from yarus.db.words import Words
from yarus.tasks.comparison.gate_rules import policy_set
from yarus.tasks.config.connections import source
from yarus.tasks.config.flow_parameters import Nightly, Robustness, Sweep
from yarus.tasks.config.parameters import (
    Answering,
    Embedding,
    Fillable,
    JudgePipeline,
    JudgeQuality,
    JudgesLog,
    Parameters,
    Retrieval,
    Tier0,
    Tier2,
    Tier3,
    Ux,
)
from yarus.tasks.config.services import is_function
from yarus.tasks.config.settings import Settings, settings
from yarus.tasks.evaluation.identity import prompt_identity, reranker_of, with_models
from yarus.tasks.evaluation.resources import Resources
from yarus.tasks.models.calls import RoleName
from yarus.tasks.models.embedding.embedders import embedders
from yarus.tasks.models.endpoints import checked, place_of
from yarus.tasks.models.prices import price_of
from yarus.tasks.models.prompts import prompts
from yarus.tasks.steps.recorded import RECORDED
from yarus.tasks.systems.retrievers.registry import retriever_kind
from yarus.tasks.systems.retrievers.reranking import reranker_kind

if TYPE_CHECKING:
    from yarus.tasks.systems.user_code import Gives


def evaluations(chosen: Parameters) -> list[Parameters]:
    """The parameters of every tier that a flow evaluates; a tier's own are the only ones."""
    if isinstance(chosen, Nightly):
        return [chosen.of(tier) for tier in chosen.tiers]
    if isinstance(chosen, Robustness):
        from yarus.tasks.comparison.experiments.robustness import arms as probes  # a tier alone needs no experiment

        return [probe.parameters for probe in probes(chosen)]
    if isinstance(chosen, Sweep):
        from yarus.tasks.comparison.experiments.sweep import arms

        return [arm.parameters for arm in arms(chosen)]
    return [chosen]


def roles(chosen: Parameters) -> set[RoleName]:
    """The language models that a tier asks, whether they are set or have stand-ins."""
    asked: set[RoleName] = set()
    if getattr(chosen, "perturbation", None) == "paraphrase":
        asked.add("generator")
    if isinstance(chosen, Answering):
        new = not (chosen.reuse_answers or chosen.anchor)
        ours = system_of(chosen) == "local" if isinstance(chosen, Tier3) else system_of(chosen) != RECORDED
        asked |= {"judge", "generator"} if new and ours else {"judge"}
    elif isinstance(chosen, JudgeQuality):
        asked |= {"judge", "gate"} if chosen.exam else {"judge"}
    elif isinstance(chosen, JudgePipeline):
        asked.add("gate")
    elif isinstance(chosen, Fillable) and chosen.labels == "filled":
        asked.add("judge")
    return asked


def system_of(chosen: Parameters) -> str:
    """The system under test that the parameters or the settings name."""
    return getattr(chosen, "sut", None) or settings().sut


def check_settings(chosen: Parameters) -> None:
    """Finds what cannot work by settings, parameters and files alone: no database, no network, nothing started.

    Raises:
        InputError: a model, price, prompt, rubric, retriever, re-ranker or system that cannot be used, a secret in an
            address, an embedder's address without a model, or a mistake in the file of YARUS_GATE_FILE.
    """
    policy_set()
    if chosen.resume:  # its own parameters are in the database
        return
    _check_recorded(chosen)
    for tier in evaluations(chosen):
        check_roles(roles(tier), with_models(tier))
        _check_system(tier)


def check_rows(chosen: Parameters) -> None:
    """That the sources have what is evaluated; a night goes on without the tiers that find nothing.

    Raises:
        InputError: no questions, or no chunks where chunks are needed; of a night, nothing that any tier measures.
    """
    if isinstance(chosen, Nightly):
        from yarus.flows.before.night_plan import plan_night  # a tier alone needs no plan

        plan_night(chosen)
        return
    needs_questions = not chosen.cases and not _embeds_chunks(chosen)
    needs_chunks = all(map(_needs_chunks, evaluations(chosen)))
    for name in (isinstance(chosen, Sweep) and chosen.sources) or [chosen.source]:
        where = source(name)
        if needs_questions and is_empty(where, "question_answer"):
            raise nothing_in(name, Words("questions"))
        if needs_chunks and is_empty(where, "chunk"):
            if isinstance(chosen, JudgesLog) and has_recorded_contexts(where):
                continue  # judged with what they were given
            raise nothing_to_search(name) if isinstance(chosen, Tier3) else nothing_in(name, Words("chunks"))


def check_code(chosen: Parameters, opened: Resources) -> None:
    """Starts the users' functions that will be asked, which the evaluation then finds started; not those of a night.

    Args:
        chosen: what is to be evaluated.
        opened: what the evaluation will take over.

    Raises:
        InputError: the interpreter, the module or the function is none.
    """
    for name, setting, gives in [] if isinstance(chosen, Nightly) else _functions(chosen):
        from yarus.tasks.systems.user_code import UserCodes

        opened.get(UserCodes).get(name, setting, gives)


def _functions(chosen: Parameters) -> Iterator[tuple[str, str, "Gives"]]:
    configuration = settings()
    for tier in evaluations(chosen):
        system = system_of(tier) if isinstance(tier, Tier3) else "local"
        named: list[tuple[str, str, Gives]] = [(system, "YARUS_SUT", "answer")]
        if isinstance(tier, Retrieval) and system == "local":
            named.append((tier.retriever or configuration.retriever, "YARUS_RETRIEVER", "ranking"))
            named.append((reranker_of(tier) or "", "YARUS_RERANKER", "scores"))
        yield from (found for found in named if is_function(found[0]))


def _embeds_chunks(chosen: Parameters) -> bool:
    """Whether the passages themselves are evaluated, and no question."""
    return isinstance(chosen, Tier0) and chosen.texts == "chunks"


def _needs_chunks(chosen: Parameters) -> bool:
    """Whether passages of the source are searched or read; a system that is not ours searches by itself."""
    if isinstance(chosen, Tier3):
        return system_of(chosen) == "local" and not chosen.reuse_answers
    if isinstance(chosen, Tier2):
        return system_of(chosen) != RECORDED and not chosen.reuse_answers
    return not isinstance(chosen, Ux) and (not isinstance(chosen, Tier0) or _embeds_chunks(chosen))


def check_roles(asked: set[RoleName], configuration: Settings) -> None:
    """The settings of every role that has a server, and all prompts.

    Raises:
        InputError: a model or a price is missing, an address or a key is none, a prompt or a rubric cannot be used.
    """
    for name in sorted(asked):
        if getattr(configuration, name).base_url is not None:
            model, _, _ = checked(getattr(configuration, name), place_of(name))
            price_of(model, configuration)
    if asked:
        prompts(configuration)


def _check_system(chosen: Parameters) -> None:
    """The parts of the system under test, by their names."""
    configuration = settings()
    if isinstance(chosen, Retrieval):
        retriever_kind(chosen.retriever or configuration.retriever)
        if reranker := reranker_of(chosen):
            reranker_kind(reranker)
    if isinstance(chosen, Embedding):
        embedders(chosen.embedder or configuration.embedder, configuration)
    if isinstance(chosen, Answering):
        prompt_identity(chosen, configuration.language)
    if isinstance(chosen, Tier3) and system_of(chosen) not in ("local", RECORDED):
        from yarus.tasks.systems.sut import check_system  # aiohttp, which no system of ours needs

        check_system(system_of(chosen), configuration)


def _check_recorded(chosen: Parameters) -> None:
    """That nothing is to be changed about answers that were given long ago."""
    changed = getattr(chosen, "perturbation", None) or getattr(chosen, "context_perturbation", None)
    if isinstance(chosen, Robustness):
        changed = changed or {"tier2", "tier3"} & {*chosen.tiers}
    elif not isinstance(chosen, Tier2 | Tier3):
        return
    if changed and system_of(chosen) == RECORDED:
        raise InputError(
            "recorded answers are to questions and contexts as they were (YARUS_SUT or --sut is 'recorded'): leave out "
            "the perturbation, or name a system that can be asked"
        )

"""Check everything that can be known before an evaluation starts.

Settings and files come first, then rows, addresses and users' code.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from yarus.db.errors import InputError, empty_source_error, nothing_to_search_error
from yarus.db.messages import Words
from yarus.db.source_rows import has_recorded_contexts, is_source_empty
from yarus.tasks.comparison.gate_rules import configured_gate_rules
from yarus.tasks.config.connections import open_source
from yarus.tasks.config.flow_parameters import NightlyParameters, RobustnessParameters, SweepParameters
from yarus.tasks.config.parameters import (
    AnswerParameters,
    EmbeddingParameters,
    JudgePipeline,
    JudgeQuality,
    LLMLabelParameters,
    LoggedAnswerParameters,
    Parameters,
    RetrievalParameters,
    Tier0,
    Tier2,
    Tier3,
    Ux,
)
from yarus.tasks.config.services import is_function_path
from yarus.tasks.config.settings import Settings, get_settings
from yarus.tasks.evaluation.identity import prompt_identity, reranker_name, settings_with_models
from yarus.tasks.evaluation.resources import Resources
from yarus.tasks.models.calls import RoleName
from yarus.tasks.models.embedding.embedders import get_embedder_pair
from yarus.tasks.models.endpoints import check_role, get_setting_prefix
from yarus.tasks.models.prices import find_price
from yarus.tasks.models.prompts import read_prompts
from yarus.tasks.steps.recorded import RECORDED_SYSTEM
from yarus.tasks.systems.retrievers.registry import get_retriever_kind
from yarus.tasks.systems.retrievers.reranking import get_reranker_kind

if TYPE_CHECKING:
    from yarus.tasks.systems.user_code import ResultKind


def list_evaluations(chosen: Parameters) -> list[Parameters]:
    """Return the parameters of every tier that a flow evaluates; a tier's flow evaluates only itself."""
    if isinstance(chosen, NightlyParameters):
        return [chosen.of(tier) for tier in chosen.tiers]
    if isinstance(chosen, RobustnessParameters):
        from yarus.tasks.comparison.experiments.robustness import (
            plan_arms as probes,  # a tier alone needs no experiment
        )

        return [probe.parameters for probe in probes(chosen)]
    if isinstance(chosen, SweepParameters):
        from yarus.tasks.comparison.experiments.sweep import plan_arms

        return [arm.parameters for arm in plan_arms(chosen)]
    return [chosen]


def list_roles(chosen: Parameters) -> set[RoleName]:
    """Return the language models that a tier calls, whether they are configured or have stand-ins."""
    required: set[RoleName] = set()
    if getattr(chosen, "perturbation", None) == "paraphrase":
        required.add("generator")
    if isinstance(chosen, AnswerParameters):
        is_new = not (chosen.reuse_answers or chosen.anchor)
        is_local = get_system(chosen) == "local" if isinstance(chosen, Tier3) else get_system(chosen) != RECORDED_SYSTEM
        required |= {"judge", "generator"} if is_new and is_local else {"judge"}
    elif isinstance(chosen, JudgeQuality):
        required |= {"judge", "gate"} if chosen.exam else {"judge"}
    elif isinstance(chosen, JudgePipeline):
        required.add("gate")
    elif isinstance(chosen, LLMLabelParameters) and chosen.labels == "llm":
        required.add("judge")
    return required


def get_system(chosen: Parameters) -> str:
    """Return the system under test that the parameters or the settings name."""
    return getattr(chosen, "sut", None) or get_settings().sut


def check_settings(chosen: Parameters) -> None:
    """Check settings, parameters and files, without a database, a network or a started process.

    Raises:
        InputError: an unusable model, price, prompt, rubric, retriever, re-ranker or system; a secret in an address; an
            embedder's address without a model; or a mistake in the file of YARUS_GATE_FILE.
    """
    configured_gate_rules()
    if chosen.resume:  # its own parameters are in the database
        return
    _check_recorded(chosen)
    for tier in list_evaluations(chosen):
        check_roles(list_roles(tier), settings_with_models(tier))
        _check_system(tier)


def check_rows(chosen: Parameters) -> None:
    """Check that the sources have what is evaluated; a nightly run goes on without the tiers that have no data.

    Raises:
        InputError: no questions, or no chunks where chunks are needed; of a night, nothing that any tier measures.
    """
    if isinstance(chosen, NightlyParameters):
        from yarus.flows.preflight.night_plan import plan_night  # a tier alone needs no plan

        plan_night(chosen)
        return
    needs_questions = not chosen.cases and not _embeds_chunks(chosen)
    needs_chunks = all(map(_needs_chunks, list_evaluations(chosen)))
    for name in (isinstance(chosen, SweepParameters) and chosen.sources) or [chosen.source]:
        origin = open_source(name)
        if needs_questions and is_source_empty(origin, "question_answer"):
            raise empty_source_error(name, Words("questions"))
        if needs_chunks and is_source_empty(origin, "chunk"):
            if isinstance(chosen, LoggedAnswerParameters) and has_recorded_contexts(origin):
                continue  # judged with the recorded contexts
            raise (
                nothing_to_search_error(name)
                if isinstance(chosen, Tier3)
                else empty_source_error(name, Words("chunks"))
            )


def check_code(chosen: Parameters, opened: Resources) -> None:
    """Start the users' functions that the evaluation will call, and keep them for it; not those of a nightly run.

    Args:
        chosen: parameters of the evaluation.
        opened: resources that the evaluation will take over.

    Raises:
        InputError: the interpreter, the module or the function does not exist.
    """
    for name, setting, kind in [] if isinstance(chosen, NightlyParameters) else _list_functions(chosen):
        from yarus.tasks.systems.user_code import UserFunctions

        opened.get(UserFunctions).get(name, setting, kind)


def _list_functions(chosen: Parameters) -> Iterator[tuple[str, str, "ResultKind"]]:
    settings = get_settings()
    for tier in list_evaluations(chosen):
        system = get_system(tier) if isinstance(tier, Tier3) else "local"
        candidates: list[tuple[str, str, ResultKind]] = [(system, "YARUS_SUT", "answer")]
        if isinstance(tier, RetrievalParameters) and system == "local":
            candidates.append((tier.retriever or settings.retriever, "YARUS_RETRIEVER", "ranking"))
            candidates.append((reranker_name(tier) or "", "YARUS_RERANKER", "scores"))
        yield from (candidate for candidate in candidates if is_function_path(candidate[0]))


def _embeds_chunks(chosen: Parameters) -> bool:
    """Return whether the passages themselves are evaluated, and no question."""
    return isinstance(chosen, Tier0) and chosen.texts == "chunks"


def _needs_chunks(chosen: Parameters) -> bool:
    """Return whether passages of the source are searched or read; an external system searches by itself."""
    if isinstance(chosen, Tier3):
        return get_system(chosen) == "local" and not chosen.reuse_answers
    if isinstance(chosen, Tier2):
        return get_system(chosen) != RECORDED_SYSTEM and not chosen.reuse_answers
    return not isinstance(chosen, Ux) and (not isinstance(chosen, Tier0) or _embeds_chunks(chosen))


def check_roles(required: set[RoleName], settings: Settings) -> None:
    """Check the settings of every role that has a server, and all prompts.

    Raises:
        InputError: a model or a price is missing, or an address, a key, a prompt or a rubric cannot be used.
    """
    for name in sorted(required):
        role = settings.get_role(name)
        if role.base_url is not None:
            model, _, _ = check_role(role, get_setting_prefix(name))
            find_price(model, settings)
    if required:
        read_prompts(settings)


def _check_system(chosen: Parameters) -> None:
    """Check that the names of the parts of the system under test are known."""
    settings = get_settings()
    if isinstance(chosen, RetrievalParameters):
        get_retriever_kind(chosen.retriever or settings.retriever)
        if reranker := reranker_name(chosen):
            get_reranker_kind(reranker)
    if isinstance(chosen, EmbeddingParameters):
        get_embedder_pair(chosen.embedder or settings.embedder, settings)
    if isinstance(chosen, AnswerParameters):
        prompt_identity(chosen, settings.text_language)
    if isinstance(chosen, Tier3) and get_system(chosen) not in ("local", RECORDED_SYSTEM):
        from yarus.tasks.systems.sut import check_system  # aiohttp, which local and recorded systems do not need

        check_system(get_system(chosen), settings)


def _check_recorded(chosen: Parameters) -> None:
    """Check that nothing is to change the questions or contexts of recorded answers."""
    changed = getattr(chosen, "perturbation", None) or getattr(chosen, "context_perturbation", None)
    if isinstance(chosen, RobustnessParameters):
        changed = changed or {"tier2", "tier3"} & {*chosen.tiers}
    elif not isinstance(chosen, Tier2 | Tier3):
        return
    if changed and get_system(chosen) == RECORDED_SYSTEM:
        raise InputError(
            "recorded answers are to questions and contexts as they were (YARUS_SUT or --sut is 'recorded'): leave out "
            "the perturbation, or name a system that can be asked"
        )

"""Identity of an evaluation: settings that must be equal to resume it, and parts that must be equal to compare two."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from sqlalchemy.engine import RowMapping

from yarus.db.errors import InputError
from yarus.db.sources import PRODUCTION
from yarus.db.stores.server_profiles import load_profile
from yarus.db.tables import JsonObject
from yarus.tasks.config.connections import database
from yarus.tasks.config.factors import NO_RERANKER, RerankerService
from yarus.tasks.config.former_names import present_name
from yarus.tasks.config.parameters import LLMLabelParameters, Parameters, RetrievalParameters
from yarus.tasks.config.settings import ModelRole, Settings, get_settings
from yarus.tasks.evaluation.aggregate import list_metrics
from yarus.tasks.evaluation.config import (
    ComparabilityParts,
    ConfigValues,
    EvaluationConfig,
    JudgeIdentity,
    MetricOptions,
)
from yarus.tasks.evaluation.judge_standing import list_judges
from yarus.tasks.evaluation.run import EvaluationRun
from yarus.tasks.models.calls import RoleName
from yarus.tasks.models.endpoints import build_completions_url, get_setting_prefix
from yarus.tasks.models.prompts import read_prompts
from yarus.tasks.models.server_profile import ServerProfile
from yarus.tasks.models.stand_ins import GENERATOR_NAME, JUDGE_NAME


def effective_settings(run: EvaluationRun) -> Settings:
    """Return the settings in the language of the source, with the models that the evaluation's parameters name."""
    return settings_with_models(run.parameters).model_copy(update={"language": run.config.language})


def settings_with_models(parameters: Parameters) -> Settings:
    """Return the settings, with the models and the prompt that the parameters name instead of the roles' own.

    Raises:
        InputError: a model or prompt is named for a role that no server is set for.
    """
    settings = get_settings()
    models = {role: getattr(parameters, f"{role}_model", None) for role in ("generator", "judge")}
    roles: dict[str, ModelRole] = {name: getattr(settings, name) for name, model in models.items() if model}
    for name, role in roles.items():
        if role.base_url is None:
            raise InputError(
                "{name}_model {model!r} needs a server that has it: set YARUS_{variable}__BASE_URL",
                name=name,
                model=models[name],
                variable=name.upper(),
            )
    changed_roles = {name: role.model_copy(update={"model": models[name]}) for name, role in roles.items()}
    if prompt := getattr(parameters, "generator_prompt", None):
        role = changed_roles.get("generator", settings.generator)
        if role.base_url is None:
            raise InputError(
                "generator_prompt {prompt!r}: only a language model reads prompts: set YARUS_GENERATOR__BASE_URL",
                prompt=prompt,
            )
        changed_roles["generator"] = role.model_copy(update={"prompt": Path(prompt)})
    return settings.model_copy(update=changed_roles)


def generator_identity(parameters: Parameters) -> str:
    """Return the generator's name, as results contain it."""
    role = settings_with_models(parameters).generator
    return GENERATOR_NAME if role.base_url is None else str(role.model)


def prompt_identity(parameters: Parameters, language: str) -> str | None:
    """Return the generator's prompt, as results contain it, if it is a file of the user's own; else None.

    Raises:
        InputError: the file cannot be read, lacks the question, or has another variable.
    """
    settings = settings_with_models(parameters).model_copy(update={"language": language})
    if settings.generator.base_url is None or (path := settings.generator.prompt) is None:
        return None
    return f"{path.name}|{read_prompts(settings)['generation'].digest}"


def reranker_name(parameters: RetrievalParameters) -> str | None:
    """Return the name of the re-ranker; None if there is none."""
    name = parameters.reranker or get_settings().reranker
    return None if name == NO_RERANKER else name


JUDGED_ON_IDEAL_CONTEXT = ("faithfulness", "answer_relevance", "answer_correctness")
JUDGED_END_TO_END = ("e2e_score", "faithfulness")
CLAIMS = ("claims", "support")
"""The prompts that find claims and check them."""
CITATIONS = ("support",)
NUGGETS = ("nugget_support",)
FOLLOW_UPS = ("follow_up",)


def judge_identity(
    parameters: Parameters, language: str, metrics: Sequence[str], *, name: Literal["judge", "gate"] = "judge"
) -> JudgeIdentity:
    """Return what determines a judge's verdicts: the requested model, its parameters, and the prompts' wording."""
    settings = settings_with_models(parameters).model_copy(update={"language": language})
    role = settings.get_role(name)
    texts = read_prompts(settings)
    wording = {metric: texts[metric].digest for metric in metrics}
    if role.base_url is None:
        return {"model": JUDGE_NAME, "prompts": wording}
    identity: JudgeIdentity = {
        "model": role.model,
        "temperature": role.temperature,
        "max_tokens": role.max_tokens,
        "prompts": wording,
    }
    if role.extra_body:
        identity["extra_body"] = role.extra_body
    if settings.mask_model_input:
        identity["mask_calls"] = True
    return identity


def collect_sent_differences(run: EvaluationRun) -> EvaluationConfig:
    """Return how requests to the models differed from the settings, because the servers refused parameters.

    Returns:
        `sent` for the models that judge, `generator_sent` for the generator; each only if something differed.
    """
    settings = settings_with_models(run.parameters)
    sent: dict[str, JsonObject] = {}
    for name in get_args(RoleName):
        role = settings.get_role(name)
        if role.base_url is None or not _uses_model(run, name):
            continue
        profile = ServerProfile.from_stored(
            load_profile(database(), build_completions_url(role.base_url, get_setting_prefix(name)), role.model or "")
        )
        if profile and profile.differences:
            sent[name] = profile.differences
    generator = sent.pop("generator", None)
    differences: ConfigValues = {"generator_sent": generator, "sent": sent}
    return EvaluationConfig(**{name: value for name, value in differences.items() if value})


def _uses_model(run: EvaluationRun, name: RoleName) -> bool:
    if name == "generator":
        return run.config.generator is not None
    model = settings_with_models(run.parameters).get_role(name).model
    return any(judge.get("model") == model for judge in list_judges(run.config))


def labelling_judge(parameters: LLMLabelParameters, language: str) -> JudgeIdentity:
    """Return the identity of the judge that grades results without a label.

    Raises:
        InputError: the judge is the model that re-ranks. It would find right what it has put first itself (Clarke and
            Dietz 2024, arXiv 2412.17156).
    """
    identity = judge_identity(parameters, language, ["relevance"])
    for name in _reranker_names(parameters):
        if _bare_model_name(name) == _bare_model_name(identity["model"] or ""):
            raise InputError(
                "the judge {model!r} also re-ranks (YARUS_RERANKER, YARUS_RERANKER_MODEL): it would find right what "
                "it has put first itself; name another with --judge-model or YARUS_JUDGE__MODEL, or leave out "
                "--labels llm",
                model=identity["model"],
            )
    return identity


def _reranker_names(parameters: LLMLabelParameters) -> list[str]:
    """Return all names of a re-ranking model: the re-ranker's own, and those of the model behind it."""
    settings = get_settings()
    try:
        request = json.loads(settings.reranker_service.request)
    except json.JSONDecodeError:  # reported when the service is opened
        request = None
    requested = request.get("model") if isinstance(request, dict) else None
    names = (reranker_name(parameters), settings.reranker_model, requested)
    return [name for name in names if isinstance(name, str)]


def _bare_model_name(name: str) -> str:
    """Return a model's name without owner and address: `openai/GPT-4o` is `gpt-4o`."""
    return name.strip().rpartition("/")[2].casefold()


MEASUREMENT_SETTINGS: tuple[str, ...] = ("embedder", "embedder_backend", "query_prefix", "passage_prefix")
MEASUREMENT_SETTINGS += ("similarity_embedder", "retriever", "retriever_service", "sut", "sut_service", "sut_python")
MEASUREMENT_SETTINGS += ("refusals", "rubrics", "language", "mask_calls", "embedder_model", "reranker")
MEASUREMENT_SETTINGS += ("reranker_model", "reranker_service")
MEASUREMENT_ROLE_SETTINGS = ("base_url", "model", "temperature", "max_tokens", "prompt", "extra_body")


def require_same_settings(row: RowMapping) -> None:
    """Check that the settings are the same as when the evaluation was begun.

    Raises:
        InputError: a setting that affects the measurement was changed.
    """
    before, now = (measurement_settings(public) for public in (row["settings"], get_settings().public()))
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            variable = present_name(f"YARUS_{name.upper().replace('.', '__')}")
            raise InputError(
                "evaluation {id} was started with {variable}={before!r}, but it is now {now!r}; restore the setting or "
                "start a new evaluation",
                id=row["id"],
                variable=variable,
                before=before.get(name),
                now=now.get(name),
            )


def measurement_settings(public: dict[str, Any]) -> dict[str, Any]:
    """Return those settings that must not change during an evaluation, because they affect the measurement."""
    flat = {name: public[name] for name in MEASUREMENT_SETTINGS if name in public}
    if flat.get("reranker_service") == RerankerService().model_dump(mode="json"):  # older evaluations do not have it
        del flat["reranker_service"]
    for role in ("generator", "judge", "gate"):
        options = {name: value for name, value in public.get(role, {}).items() if value != {}}  # unset in older ones
        flat |= {f"{role}.{name}": value for name, value in options.items() if name in MEASUREMENT_ROLE_SETTINGS}
    return flat


SAMPLING_METHOD = "by hash"
"""How samples are drawn; before, every new question could change the whole sample."""
LATER_METRICS = {("judge_pipeline", "sut_error_rate")}
"""Tiers, with metrics that were added later: their keys must not change."""


def is_rolling(run: EvaluationRun) -> bool:
    """Return whether its questions come from a growing log, so that it is compared with evaluations of others."""
    return run.parameters.source == PRODUCTION and run.config.cases is None


def comparability(run: EvaluationRun, case_set_hash: str) -> ComparabilityParts:
    """Return everything that must be equal for two evaluations' metrics to be compared.

    The system under test and its corpus are not part of it, because they are what is compared.
    """
    config = run.config
    sampling = (
        {"limit": run.parameters.limit, "seed": run.parameters.seed, "drawn": SAMPLING_METHOD}
        if run.parameters.limit
        else {}
    )
    case_set = {"source": run.parameters.source, **sampling} if is_rolling(run) else {"sha256": case_set_hash}
    if failed := getattr(run.parameters, "retry_failed", None):  # its own key: failed cases are not a fair sample
        case_set["failed_in"] = sampling["failed_in"] = failed
    labels = "annotation, else the log" if run.tier != "real_users" else "the log"
    return {
        "tier": run.tier,
        "cases": {**config.cases, **sampling} if config.cases else case_set,
        "metrics": [
            metric.signature_with(**metric_options(run))
            for metric in list_metrics(run.tier, config)
            if metric.in_key and (run.tier, metric.name) not in LATER_METRICS
        ],
        "labels": f"{labels}, filled by a judge" if config.pool is not None else labels,
        **config.comparability(),
    }


def comparability_key(parts: ComparabilityParts) -> str:
    """Return the key of two evaluations with equal parts: 16 hexadecimal digits."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def metric_options(run: EvaluationRun) -> MetricOptions:
    """Return the options of metric signatures that the evaluation chooses."""
    config = run.config
    options: dict[str, int | str | None] = {"depth": config.k, "gain": config.gain, "distance": config.distance}
    return {name: value for name, value in options.items() if value is not None}

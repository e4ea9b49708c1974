"""What decides an evaluation's numbers: what must be equal to resume it, and to compare two."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from sqlalchemy.engine import RowMapping

from yarus.db.errors import InputError
from yarus.db.sources import PRODUCTION
from yarus.db.stores.server_profiles import load_profile
from yarus.db.tables import Json
from yarus.tasks.config.connections import database
from yarus.tasks.config.factors import NO_RERANKER, RerankerService
from yarus.tasks.config.parameters import Fillable, Parameters, Retrieval
from yarus.tasks.config.settings import Role, Settings, settings
from yarus.tasks.evaluation.aggregate import measured_by
from yarus.tasks.evaluation.config import (
    ComparabilityParts,
    ConfigValues,
    EvaluationConfig,
    JudgeIdentity,
    MetricOptions,
)
from yarus.tasks.evaluation.run import Run
from yarus.tasks.evaluation.standings import judges_of
from yarus.tasks.models.calls import RoleName
from yarus.tasks.models.endpoints import completions, place_of
from yarus.tasks.models.prompts import prompts
from yarus.tasks.models.server_profile import ServerProfile
from yarus.tasks.models.stand_ins import GENERATOR, JUDGE


def configured(run: Run) -> Settings:
    """The settings, in the language of the source, with the models that the evaluation's parameters name."""
    return with_models(run.parameters).model_copy(update={"language": run.config.language})


def with_models(parameters: Parameters) -> Settings:
    """The settings, with the models and the prompt that the parameters name in the place of the roles' own.

    Raises:
        InputError: a model or prompt is named for a role that no server is set for.
    """
    configuration = settings()
    named = {role: getattr(parameters, f"{role}_model", None) for role in ("generator", "judge")}
    roles: dict[str, Role] = {name: getattr(configuration, name) for name, model in named.items() if model}
    for name, role in roles.items():
        if role.base_url is None:
            raise InputError(
                "{name}_model {model!r} needs a server that has it: set YARUS_{variable}__BASE_URL",
                name=name,
                model=named[name],
                variable=name.upper(),
            )
    models = {name: role.model_copy(update={"model": named[name]}) for name, role in roles.items()}
    if prompt := getattr(parameters, "generator_prompt", None):
        role = models.get("generator", configuration.generator)
        if role.base_url is None:
            raise InputError(
                "generator_prompt {prompt!r}: only a language model reads prompts: set YARUS_GENERATOR__BASE_URL",
                prompt=prompt,
            )
        models["generator"] = role.model_copy(update={"prompt": Path(prompt)})
    return configuration.model_copy(update=models)


def generator_identity(parameters: Parameters) -> str:
    """The generator, as every result names it."""
    role = with_models(parameters).generator
    return GENERATOR if role.base_url is None else str(role.model)


def prompt_identity(parameters: Parameters, language: str) -> str | None:
    """The generator's prompt, as results name it, where it is a file of the user's own; else None.

    Raises:
        InputError: the file cannot be read, lacks the question, or has another variable.
    """
    configuration = with_models(parameters).model_copy(update={"language": language})
    if configuration.generator.base_url is None or (path := configuration.generator.prompt) is None:
        return None
    return f"{path.name}|{prompts(configuration)['generation'].digest}"


def reranker_of(parameters: Retrieval) -> str | None:
    """What orders the rankings anew, by its name; None where nothing does."""
    name = parameters.reranker or settings().reranker
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
    """What decides a judge's verdicts: the model that is asked for, its parameters, and the wording of its prompts."""
    configuration = with_models(parameters).model_copy(update={"language": language})
    role: Role = getattr(configuration, name)
    known = prompts(configuration)
    wording = {metric: known[metric].digest for metric in metrics}
    if role.base_url is None:
        return {"model": JUDGE, "prompts": wording}
    asked: JudgeIdentity = {
        "model": role.model,
        "temperature": role.temperature,
        "max_tokens": role.max_tokens,
        "prompts": wording,
    }
    if role.extra_body:
        asked["extra_body"] = role.extra_body
    if configuration.mask_calls:
        asked["mask_calls"] = True
    return asked


def collect_sent_differences(run: Run) -> EvaluationConfig:
    """Return how requests to the models differed from the settings, because the servers refused parameters.

    Returns:
        `sent` for the models that judge, `generator_sent` for the generator; each only if something differed.
    """
    configuration = with_models(run.parameters)
    sent: dict[str, Json] = {}
    for name in get_args(RoleName):
        role: Role = getattr(configuration, name)
        if role.base_url is None or not _uses_model(run, name):
            continue
        profile = ServerProfile.from_stored(
            load_profile(database(), completions(role.base_url, place_of(name)), role.model or "")
        )
        if profile and profile.differences:
            sent[name] = profile.differences
    generator = sent.pop("generator", None)
    differences: ConfigValues = {"generator_sent": generator, "sent": sent}
    return EvaluationConfig(**{name: value for name, value in differences.items() if value})


def _uses_model(run: Run, name: RoleName) -> bool:
    if name == "generator":
        return run.config.generator is not None
    model = getattr(with_models(run.parameters), name).model
    return any(judge.get("model") == model for judge in judges_of(run.config))


def filled_by(parameters: Fillable, language: str) -> JudgeIdentity:
    """Who grades the results that nobody has judged.

    Raises:
        InputError: the judge is the model that re-ranks. It would find right what it has put first itself (Clarke and
            Dietz 2024, arXiv 2412.17156).
    """
    found = judge_identity(parameters, language, ["relevance"])
    for name in _rerankers(parameters):
        if _model(name) == _model(found["model"] or ""):
            raise InputError(
                "the judge {model!r} also re-ranks (YARUS_RERANKER, YARUS_RERANKER_MODEL): it would find right what "
                "it has put first itself; name another with --judge-model or YARUS_JUDGE__MODEL, or leave out "
                "--labels filled",
                model=found["model"],
            )
    return found


def _rerankers(parameters: Fillable) -> list[str]:
    """Every name by which a model that re-ranks is told: the re-ranker's own, and those of the model behind it."""
    configuration = settings()
    try:
        asked = json.loads(configuration.reranker_service.request)
    except json.JSONDecodeError:  # which is said where the service is opened
        asked = None
    written = asked.get("model") if isinstance(asked, dict) else None
    named = (reranker_of(parameters), configuration.reranker_model, written)
    return [name for name in named if isinstance(name, str)]


def _model(name: str) -> str:
    """Without whose it is, and by which address: `openai/GPT-4o` is `gpt-4o`."""
    return name.strip().rpartition("/")[2].casefold()


STEADY: tuple[str, ...] = ("embedder", "embedder_backend", "query_prefix", "passage_prefix", "similarity_embedder")
STEADY += ("retriever", "retriever_service", "sut", "sut_service", "sut_python", "refusals", "rubrics", "language")
STEADY += ("mask_calls", "embedder_model", "reranker", "reranker_model", "reranker_service")
STEADY_OF_ROLE = ("base_url", "model", "temperature", "max_tokens", "prompt", "extra_body")


def same_settings(row: RowMapping) -> None:
    """Makes sure that what is measured is the same as when the evaluation was begun.

    Raises:
        InputError: a setting that changes it was changed.
    """
    before, now = (steady(given) for given in (row["settings"], settings().public()))
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            variable = f"YARUS_{name.upper().replace('.', '__')}"
            raise InputError(
                "evaluation {id} was begun with {variable}={before!r}, now it is {now!r}; set it as it was, or run "
                "it anew",
                id=row["id"],
                variable=variable,
                before=before.get(name),
                now=now.get(name),
            )


def steady(public: dict[str, Any]) -> dict[str, Any]:
    """Those of an evaluation's settings that must stay while it lasts, because they change what it measures."""
    flat = {name: public[name] for name in STEADY if name in public}
    if flat.get("reranker_service") == RerankerService().model_dump(mode="json"):  # older evaluations know of none
        del flat["reranker_service"]
    for role in ("generator", "judge", "gate"):
        options = {name: value for name, value in public.get(role, {}).items() if value != {}}  # unset in older ones
        flat |= {f"{role}.{name}": value for name, value in options.items() if name in STEADY_OF_ROLE}
    return flat


DRAWN = "by hash"
"""How samples are drawn; before, every new question could exchange all of them."""
LATER = {("judge_pipeline", "sut_error_rate")}
"""Tiers, and metrics that they were given later: their keys stay as they were."""


def is_rolling(run: Run) -> bool:
    """Whether its questions are those of a log that goes on, so that evaluations with others are compared with it."""
    return run.parameters.source == PRODUCTION and run.config.cases is None


def comparability(run: Run, case_set_hash: str) -> ComparabilityParts:
    """Everything that must be equal for two evaluations' metrics to be compared.

    The system under test and its corpus are what is compared, so they are not in it.
    """
    config = run.config
    rule = {"limit": run.parameters.limit, "seed": run.parameters.seed, "drawn": DRAWN} if run.parameters.limit else {}
    by_content = {"source": run.parameters.source, **rule} if is_rolling(run) else {"sha256": case_set_hash}
    if failed := getattr(run.parameters, "failed", None):  # a key of its own: what failed is no fair sample
        by_content["failed_in"] = rule["failed_in"] = failed
    labels = "annotation, else the log" if run.tier != "real_users" else "the log"
    return {
        "tier": run.tier,
        "cases": {**config.cases, **rule} if config.cases else by_content,
        "metrics": [
            metric.signature_with(**metric_options(run))
            for metric in measured_by(run.tier, config)
            if metric.in_key and (run.tier, metric.name) not in LATER
        ],
        "labels": f"{labels}, filled by a judge" if config.pool is not None else labels,
        **config.comparability(),
    }


def comparability_key(parts: ComparabilityParts) -> str:
    """The key that two evaluations share whose parts are equal: 16 hexadecimal digits."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def metric_options(run: Run) -> MetricOptions:
    """What stands in the metrics' signatures and is chosen by the evaluation."""
    config = run.config
    options: dict[str, int | str | None] = {"depth": config.k, "gain": config.gain, "distance": config.distance}
    return {name: value for name, value in options.items() if value is not None}

"""The models and prompts that decide an evaluation's numbers."""

from collections.abc import Sequence
from typing import Literal

from db.errors import InputError
from tasks.config.parameters import Fillable, Parameters
from tasks.config.settings import Role, Settings, settings
from tasks.evaluation.run import Run
from tasks.models.stand_ins import GENERATOR, JUDGE
from tasks.prompts import prompts
from tasks.results.system import JudgeIdentity


def configured(run: Run) -> Settings:
    """The settings, in the language of the source, with the models that the evaluation's parameters name."""
    return with_models(run.parameters).model_copy(update={"language": run.resolved["language"]})


def with_models(parameters: Parameters) -> Settings:
    """The settings, with the models that the parameters name in the place of the roles' own.

    Raises:
        InputError: a model is named for a role that no server is set for.
    """
    configuration = settings()
    named = {role: getattr(parameters, f"{role}_model", None) for role in ("generator", "judge")}
    roles: dict[str, Role] = {name: getattr(configuration, name) for name, model in named.items() if model}
    for name, role in roles.items():
        if role.base_url is None:
            raise InputError(
                f"{name}_model {named[name]!r} needs a server that has it: set YARUS_{name.upper()}__BASE_URL"
            )
    models = {name: role.model_copy(update={"model": named[name]}) for name, role in roles.items()}
    return configuration.model_copy(update=models)


def generator_identity(parameters: Parameters) -> str:
    """The generator, as every result names it."""
    role = with_models(parameters).generator
    return GENERATOR if role.base_url is None else str(role.model)


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
    if configuration.mask_calls:
        asked["mask_calls"] = True
    return asked


def filled_by(parameters: Fillable, language: str) -> JudgeIdentity:
    """Who grades the results that nobody has judged.

    Raises:
        InputError: the judge is the model that re-ranks. It would find right what it has put first itself (Clarke and
            Dietz 2024, arXiv 2412.17156).
    """
    found, reranker = judge_identity(parameters, language, ["relevance"]), settings().reranker
    if reranker and _model(reranker) == _model(found["model"] or ""):
        raise InputError(
            f"the judge {found['model']!r} also re-ranks (YARUS_RERANKER={reranker!r}): it would find right what it "
            "has put first itself; name another with --judge-model or YARUS_JUDGE__MODEL, or leave out --labels filled"
        )
    return found


def _model(name: str) -> str:
    """Without whose it is, and by which address: `openai/GPT-4o` is `gpt-4o`."""
    return name.strip().rpartition("/")[2].casefold()

"""Whether anything answers where an evaluation will ask: a connection to every address, before it is begun."""

import logging
import os
import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import NamedTuple

from yarl import URL

from yarus.db.errors import InputError, ModelUnavailable
from yarus.flows.before.preflight import evaluations, roles, system_of
from yarus.tasks.config.flow_parameters import Nightly
from yarus.tasks.config.parameters import Embedding, Parameters, Retrieval, Tier3, Ux
from yarus.tasks.config.services import OPENAI, is_address
from yarus.tasks.config.settings import Role, Settings, settings
from yarus.tasks.evaluation.identity import reranker_of, with_models
from yarus.tasks.models.embedding.embedders import LEXICAL, downloaded, measuring_embedder
from yarus.tasks.models.endpoints import place_of
from yarus.tasks.systems.retrievers.registry import retriever_kind

log = logging.getLogger("yarus")
DEADLINE_S = 3.0
"""Longer than a connection takes anywhere; a slow one is not refused."""


class Place(NamedTuple):
    """Somewhere that an evaluation will ask."""

    what: str
    address: str
    setting: str


def check_reach(chosen: Parameters) -> None:
    """Connects to every address that will be asked; a night is only warned, for its other tiers go on.

    Raises:
        ModelUnavailable: nothing listens there, or the name is not known; nothing was begun, so nothing is lost.
        InputError: an embedder that is not on this machine, and nowhere to download it from.
    """
    places = list(dict.fromkeys(place for tier in evaluations(chosen) for place in _places(tier)))
    for place, why in zip(places, _reached([place.address for place in places]), strict=True):
        if why is None:
            continue
        error = _unreachable(place, why)
        if not isinstance(chosen, Nightly):
            raise error
        log.warning("%s; what does not need it goes on", error)


def _unreachable(place: Place, why: str) -> ModelUnavailable | InputError:
    if place.address == hub():
        return InputError(
            "embedder {what!r} is not on this machine, and {address} cannot be reached to download it ({why}). Give "
            "'lexical', or the folder of a sentence-transformers model",
            what=place.what, address=place.address, why=why,
        )  # fmt: skip
    return ModelUnavailable(
        "{what} at {address}: nothing answers there ({why}). Start it, or correct {setting}",
        what=place.what, address=place.address, why=why, setting=place.setting,
    )  # fmt: skip


def _places(chosen: Parameters) -> Iterator[Place]:
    configuration = with_models(chosen)
    for name in sorted(roles(chosen)):
        role: Role = getattr(configuration, name)
        if role.base_url is not None:
            yield Place(f"{name} {role.model!r}", role.base_url, f"{place_of(name)}__BASE_URL")
    system = system_of(chosen).removeprefix(OPENAI) if isinstance(chosen, Tier3) else "local"
    if is_address(system):
        yield Place("the system under test", system, "YARUS_SUT or --sut")
    for embedder in dict.fromkeys(_embedders(chosen, ours=system == "local")):
        if is_address(embedder):
            yield Place("the embedder", embedder.partition("#")[0], "YARUS_EMBEDDER or --embedder")
        elif embedder != LEXICAL and not downloaded(embedder):
            yield Place(embedder, hub(), "")
    if isinstance(chosen, Retrieval) and system == "local":
        yield from _searches(chosen, configuration)


def _searches(chosen: Retrieval, configuration: Settings) -> Iterator[Place]:
    named = (("retriever", chosen.retriever or configuration.retriever), ("reranker", reranker_of(chosen) or ""))
    for what, name in named:
        if is_address(name):
            yield Place(f"the {what}", name, f"YARUS_{what.upper()} or --{what}")


def _embedders(chosen: Parameters, *, ours: bool) -> Iterator[str]:
    """Names of what will embed: for the retriever where it goes by vectors, and for similarity."""
    configuration = settings()
    by_vectors = True
    if isinstance(chosen, Retrieval):
        by_vectors = retriever_kind(chosen.retriever or configuration.retriever).uses_vectors
    if isinstance(chosen, Embedding) and ours and by_vectors:
        yield chosen.embedder or configuration.embedder
    if isinstance(chosen, Tier3 | Ux):
        yield measuring_embedder()


def hub() -> str:
    """Where sentence-transformers models are downloaded from."""
    return os.environ.get("HF_ENDPOINT", "https://huggingface.co")


def _reached(addresses: Sequence[str]) -> list[str | None]:
    """Why nothing can be asked at each address; None where something listens, or nobody knows yet."""
    pool = ThreadPoolExecutor(len(addresses) or 1, thread_name_prefix="reach")
    asked = [pool.submit(_refusal, address) for address in addresses]
    in_time, _ = wait(asked, DEADLINE_S)  # of a name that nobody resolves in time nothing is known
    pool.shutdown(wait=False)
    return [answer.result() if answer in in_time else None for answer in asked]


def _refusal(address: str) -> str | None:
    from yarus.tasks.models.transport import proxy_of  # aiohttp, which an evaluation without services needs not

    url = URL(address)
    url = URL(proxy_of(url) or url)
    if os.environ.get("HF_HUB_OFFLINE") in ("1", "true", "True") and address == hub():
        return "HF_HUB_OFFLINE is set"
    try:
        socket.create_connection((url.host or "", url.port or 443), timeout=DEADLINE_S).close()
    except TimeoutError:
        return None  # a firewall, or a slow way: the evaluation waits for it as long as it is set to
    except OSError as error:
        return error.strerror or str(error)
    return None

"""Check that every address that an evaluation will call accepts connections."""

import logging
import os
import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import NamedTuple

from yarl import URL

from yarus.db.errors import InputError, ModelUnavailable
from yarus.flows.preflight.checks import get_system, list_evaluations, list_roles
from yarus.tasks.config.flow_parameters import NightlyParameters
from yarus.tasks.config.parameters import EmbeddingParameters, Parameters, RetrievalParameters, Tier3, Ux
from yarus.tasks.config.services import OPENAI_PREFIX, is_http_url
from yarus.tasks.config.settings import Settings, get_settings
from yarus.tasks.evaluation.identity import reranker_name, settings_with_models
from yarus.tasks.models.embedding.embedders import LEXICAL, get_measuring_embedder_name, is_downloaded
from yarus.tasks.models.endpoints import get_setting_prefix
from yarus.tasks.systems.retrievers.registry import get_retriever_kind

log = logging.getLogger("yarus")
DEADLINE_S = 3.0
"""Seconds to wait for connections, longer than one takes anywhere; a slow address is not refused."""


class Endpoint(NamedTuple):
    """An address that an evaluation will call, or a model that it will download."""

    what: str
    address: str
    setting: str


def check_reach(chosen: Parameters) -> None:
    """Connect to every address that will be called; a nightly run is only warned, since its other tiers go on.

    Raises:
        ModelUnavailable: nothing listens there, or the name is not known; nothing was begun, so nothing is lost.
        InputError: an embedder that is not on this machine, and nowhere to download it from.
    """
    endpoints = list(dict.fromkeys(endpoint for tier in list_evaluations(chosen) for endpoint in _list_endpoints(tier)))
    for endpoint, reason in zip(endpoints, _probe_addresses([endpoint.address for endpoint in endpoints]), strict=True):
        if reason is None:
            continue
        error = _unreachable_error(endpoint, reason)
        if not isinstance(chosen, NightlyParameters):
            raise error
        log.warning("%s; what does not need it goes on", error)


def _unreachable_error(endpoint: Endpoint, reason: str) -> ModelUnavailable | InputError:
    if endpoint.address == get_hub_url():
        return InputError(
            "embedder {what!r} is not on this machine, and {address} cannot be reached to download it ({why}). Give "
            "'lexical', or the folder of a sentence-transformers model",
            what=endpoint.what, address=endpoint.address, why=reason,
        )  # fmt: skip
    return ModelUnavailable(
        "{what} at {address}: nothing answers there ({why}). Start it, or correct {setting}",
        what=endpoint.what, address=endpoint.address, why=reason, setting=endpoint.setting,
    )  # fmt: skip


def _list_endpoints(chosen: Parameters) -> Iterator[Endpoint]:
    settings = settings_with_models(chosen)
    for name in sorted(list_roles(chosen)):
        role = settings.get_role(name)
        if role.base_url is not None:
            yield Endpoint(f"{name} {role.model!r}", role.base_url, f"{get_setting_prefix(name)}__BASE_URL")
    system = get_system(chosen).removeprefix(OPENAI_PREFIX) if isinstance(chosen, Tier3) else "local"
    if is_http_url(system):
        yield Endpoint("the system under test", system, "YARUS_SUT or --sut")
    for embedder in dict.fromkeys(_list_embedders(chosen, is_local=system == "local")):
        if is_http_url(embedder):
            yield Endpoint("the embedder", embedder.partition("#")[0], "YARUS_EMBEDDER or --embedder")
        elif embedder != LEXICAL and not is_downloaded(embedder):
            yield Endpoint(embedder, get_hub_url(), "")
    if isinstance(chosen, RetrievalParameters) and system == "local":
        yield from _list_search_services(chosen, settings)


def _list_search_services(chosen: RetrievalParameters, settings: Settings) -> Iterator[Endpoint]:
    components = (("retriever", chosen.retriever or settings.retriever), ("reranker", reranker_name(chosen) or ""))
    for component, name in components:
        if is_http_url(name):
            yield Endpoint(f"the {component}", name, f"YARUS_{component.upper()} or --{component}")


def _list_embedders(chosen: Parameters, *, is_local: bool) -> Iterator[str]:
    """Yield the names of the embedders: the retriever's if it uses vectors, and the one that measures similarity."""
    settings = get_settings()
    by_vectors = True
    if isinstance(chosen, RetrievalParameters):
        by_vectors = get_retriever_kind(chosen.retriever or settings.retriever).uses_vectors
    if isinstance(chosen, EmbeddingParameters) and is_local and by_vectors:
        yield chosen.embedder or settings.embedder
    if isinstance(chosen, Tier3 | Ux):
        yield get_measuring_embedder_name()


def get_hub_url() -> str:
    """Return the address from which sentence-transformers models are downloaded."""
    return os.environ.get("HF_ENDPOINT", "https://huggingface.co")


def _probe_addresses(addresses: Sequence[str]) -> list[str | None]:
    """Return why each address cannot be reached; None if it accepts connections, or if that is not known in time."""
    pool = ThreadPoolExecutor(len(addresses) or 1, thread_name_prefix="reach")
    probes = [pool.submit(_probe_address, address) for address in addresses]
    finished, _ = wait(probes, DEADLINE_S)  # nothing is known of a name that is not resolved in time
    pool.shutdown(wait=False)
    return [probe.result() if probe in finished else None for probe in probes]


def _probe_address(address: str) -> str | None:
    from yarus.tasks.models.transport import find_proxy  # aiohttp, which an evaluation without services does not need

    url = URL(address)
    url = URL(find_proxy(url) or url)
    if os.environ.get("HF_HUB_OFFLINE") in ("1", "true", "True") and address == get_hub_url():
        return "HF_HUB_OFFLINE is set"
    try:
        socket.create_connection((url.host or "", url.port or 443), timeout=DEADLINE_S).close()
    except TimeoutError:
        return None  # a firewall or a slow network: the evaluation has its own timeout
    except OSError as error:
        return error.strerror or str(error)
    return None

"""Embedder on a server: its name, and its vectors for callers in threads."""

import json
import queue
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from pydantic import SecretStr

from yarus.db.errors import InputError
from yarus.tasks.cases.privacy.masking import load_own_key, mask
from yarus.tasks.config.redaction import replace_surrogates
from yarus.tasks.config.services import require_public_address
from yarus.tasks.config.settings import EmbedderService, Settings
from yarus.tasks.models.credentials import check_access
from yarus.tasks.models.embedding.client import EmbeddingClient, EmbeddingEndpoint
from yarus.tasks.models.embedding.partial_results import PartialResult, Vectors, build_missing_error
from yarus.tasks.models.transport import run_in_background

Secrets = tuple[tuple[str, SecretStr], ...]
NO_ACCESS: Mapping[str, Any] = {"headers": {}, "token_url": None, "token_form": {}, "token_command": None}
"""Values that remove the secrets which only the address of YARUS_EMBEDDER may get."""
RESERVED_FIELDS = ("input", "encoding_format")
"""Fields of a request that a user's fields may not replace."""


class HttpEmbedder:
    """Model behind an address, with the fields that are sent beside its texts."""

    worth_storing = True

    def __init__(
        self, client: EmbeddingClient, prefix: str, fields: Mapping[str, Any], mask_text: Callable[[str], str] | None
    ) -> None:
        """Take the client of its server, the prefix of every text, the fields beside them, and a masking function."""
        self.client, self._prefix, self._fields, self._mask = client, prefix, fields, mask_text

    @property
    def identity(self) -> str:
        """Return address and model, the prefix, the fields, and whether it sees pseudonyms; never the key."""
        fields = f"|fields:{json.dumps(self._fields, sort_keys=True, ensure_ascii=False)}" if self._fields else ""
        return f"{self.client.endpoint.name}|prefix:{self._prefix}{fields}{'|masked' if self._mask else ''}|v:1"

    def encode(self, texts: list[str]) -> Vectors:
        """See `Embedder`.

        Raises:
            ModelUnavailable: the server refuses all requests, or does not return a vector for every text.
        """
        results = [result for arrived in self.parts(texts) for result in arrived]
        vectors = np.zeros((len(texts), self.client.dimensions), dtype=np.float32)
        failures: dict[int, str] = {}
        for result in results:
            if not result.failures:
                vectors[list(result.positions)] = result.vectors
            failures |= {result.positions[row]: reason for row, reason in result.failures.items()}
        if failures:
            raise build_missing_error(self.identity, texts, failures)
        return vectors

    def parts(self, texts: Sequence[str]) -> Iterator[list[PartialResult]]:
        """See `RemoteEmbedder`."""
        queued: queue.SimpleQueue[PartialResult | None] = queue.SimpleQueue()
        request = run_in_background(self._ask(texts, queued.put))
        request.add_done_callback(lambda _: queued.put(None))
        has_more = True
        try:
            while has_more:
                batch = [queued.get()]
                while not queued.empty():
                    batch.append(queued.get())
                has_more = batch[-1] is not None
                if results := [result for result in batch if result is not None]:
                    yield results
            request.result()
        finally:
            request.cancel()  # the caller does not take the rest

    async def _ask(self, texts: Sequence[str], put: Callable[[PartialResult], None]) -> None:
        non_empty = [position for position, text in enumerate(texts) if text.strip()]
        mask_text = self._mask or str
        inputs = [replace_surrogates(self._prefix + mask_text(texts[position])) for position in non_empty]

        def put_positions(result: PartialResult) -> None:
            put(result._replace(positions=[non_empty[position] for position in result.positions]))

        if len(non_empty) < len(texts) or not texts:
            error = await self.client.probe_server(self._fields)
            empty = sorted(set(range(len(texts))) - set(non_empty))
            zeros = np.zeros((len(empty), self.client.dimensions), dtype=np.float32)
            put(PartialResult(empty, zeros, dict.fromkeys(range(len(empty)), error.reason) if error else {}))
        await self.client.embed(inputs, self._fields, put_positions)


def open_http_embedder(
    name: str, settings: Settings, *, prefix: str = "", fields: Mapping[str, Any] | None = None
) -> HttpEmbedder:
    """Return the embedder at an address.

    Args:
        name: http(s)://…/v1, with the model behind a `#` or in the settings.
        settings: keys, limits, and whether models get pseudonyms.
        prefix: put before every text.
        fields: sent beside the texts.

    Raises:
        InputError: the address is unusable or has a secret in it, or the model is not named.
    """
    endpoint, service, request_fields = resolve_endpoint(name, settings), settings.embedder_service, dict(fields or {})
    if reserved := sorted(set(request_fields) & set(RESERVED_FIELDS)):
        raise InputError(
            "YARUS_EMBEDDER_SERVICE: QUERY and PASSAGE may not set {name!r}, which Yarus sends itself", name=reserved[0]
        )
    mask_text = (
        partial(mask, key=load_own_key(), language=settings.text_language) if settings.mask_model_input else None
    )
    check_access(service, "YARUS_EMBEDDER_SERVICE")
    if endpoint.address != _split_name(settings.embedder)[0]:
        service = service.model_copy(update=NO_ACCESS)
    limits = service.model_dump_json(exclude={"query", "passage", "headers", "token_form", "token_command"})
    secrets = tuple(service.headers.items()), tuple(service.token_form.items()), service.token_command
    return HttpEmbedder(_get_client(endpoint, limits, *secrets), prefix, request_fields, mask_text)


def resolve_endpoint(name: str, settings: Settings) -> EmbeddingEndpoint:
    """Return address, model and key of a name. A key is sent only to the address of its own setting.

    Raises:
        InputError: see `open_http_embedder`.
    """
    require_public_address(name, "YARUS_EMBEDDER", keys="YARUS_EMBEDDER_API_KEY")
    address, model = _split_name(name)
    if not address.partition("://")[2].strip("/"):
        raise InputError("embedder {name!r}: expected an address like https://host/v1", name=name)
    retriever_address, retriever_model = _split_name(settings.embedder)
    model = model or (retriever_model if retriever_address == address else "") or settings.embedder_model or ""
    if not model:
        raise InputError(
            "embedder {address}: no model is named; set YARUS_EMBEDDER_MODEL, or write it behind the address: "
            "{address}#MODEL",
            address=address,
        )
    measuring_address, _ = _split_name(settings.similarity_embedder or "")
    keys = (
        (retriever_address, settings.embedder_api_key, "YARUS_EMBEDDER_API_KEY"),
        (measuring_address, settings.similarity_embedder_api_key, "YARUS_SIMILARITY_EMBEDDER_API_KEY"),
    )
    matching = [(key, setting) for key_address, key, setting in keys if key_address == address] or [(None, keys[0][2])]
    key, setting = next((candidate for candidate in matching if candidate[0]), matching[0])
    return EmbeddingEndpoint(address, model, key, setting)


def _split_name(name: str) -> tuple[str, str]:
    address, _, model = name.strip().partition("#")
    base, mark, query = address.partition("?")
    return base.rstrip("/").removesuffix("/embeddings") + mark + query, model.strip()


@lru_cache(maxsize=8)
def _get_client(
    endpoint: EmbeddingEndpoint, limits: str, headers: Secrets, token_form: Secrets, token_command: SecretStr | None
) -> EmbeddingClient:
    """Return one client for all users of the same model, so that limits hold and connections stay open.

    Args:
        endpoint: address, model and key.
        limits: the settings of the service as JSON, which masks secrets; these are separate arguments.
        headers: of its requests.
        token_form: sent to the address that issues tokens.
        token_command: prints tokens.
    """
    service = EmbedderService.model_validate_json(limits)
    secrets = {"headers": dict(headers), "token_form": dict(token_form), "token_command": token_command}
    return EmbeddingClient(endpoint, service.model_copy(update=secrets))

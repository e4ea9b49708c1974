"""An embedder that a server offers: its name, and its vectors for callers in threads."""

import json
import queue
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from pydantic import SecretStr

from yarus.db.errors import InputError
from yarus.tasks.cases.privacy.masking import mask, own_key
from yarus.tasks.config.redaction import encodable
from yarus.tasks.config.services import open_address
from yarus.tasks.config.settings import EmbedderService, Settings
from yarus.tasks.models.credentials import check_access
from yarus.tasks.models.embedding.client import Client, Place
from yarus.tasks.models.embedding.parts import Part, Vectors, no_vectors
from yarus.tasks.models.transport import in_background

Secrets = tuple[tuple[str, SecretStr], ...]
NO_ACCESS: Mapping[str, Any] = {"headers": {}, "token_url": None, "token_form": {}, "token_command": None}
"""Settings of a service without what only the address of YARUS_EMBEDDER may get."""
OURS = ("input", "encoding_format")
"""Fields of a request that a user's may not replace."""


class Served:
    """A model behind an address, with what is sent beside its texts."""

    worth_storing = True

    def __init__(
        self, client: Client, prefix: str, fields: Mapping[str, Any], masked: Callable[[str], str] | None
    ) -> None:
        """Takes the client of its server, what is put before every text, what is sent beside them, and pseudonyms."""
        self.client, self._prefix, self._fields, self._masked = client, prefix, fields, masked

    @property
    def identity(self) -> str:
        """Address and model, the prefix, the fields, and whether it sees pseudonyms; never the key."""
        fields = f"|fields:{json.dumps(self._fields, sort_keys=True, ensure_ascii=False)}" if self._fields else ""
        return f"{self.client.place.name}|prefix:{self._prefix}{fields}{'|masked' if self._masked else ''}|v:1"

    def encode(self, texts: list[str]) -> Vectors:
        """See `Embedder`.

        Raises:
            ModelUnavailable: the server refuses us, or does not give a vector for every text.
        """
        parts = [part for some in self.parts(texts) for part in some]
        vectors = np.zeros((len(texts), self.client.dimensions), dtype=np.float32)
        wrong: dict[int, str] = {}
        for part in parts:
            if not part.wrong:
                vectors[list(part.positions)] = part.vectors
            wrong |= {part.positions[row]: why for row, why in part.wrong.items()}
        if wrong:
            raise no_vectors(self.identity, texts, wrong)
        return vectors

    def parts(self, texts: Sequence[str]) -> Iterator[list[Part]]:
        """See `Remote`."""
        arrived: queue.SimpleQueue[Part | None] = queue.SimpleQueue()
        asked = in_background(self._ask(texts, arrived.put))
        asked.add_done_callback(lambda _: arrived.put(None))
        more = True
        try:
            while more:
                given = [arrived.get()]
                while not arrived.empty():
                    given.append(arrived.get())
                more = given[-1] is not None
                if some := [part for part in given if part is not None]:
                    yield some
            asked.result()
        finally:
            asked.cancel()  # nobody takes the rest

    async def _ask(self, texts: Sequence[str], put: Callable[[Part], None]) -> None:
        full = [number for number, text in enumerate(texts) if text.strip()]
        masked = self._masked or str
        sent = [encodable(self._prefix + masked(texts[number])) for number in full]

        def placed(part: Part) -> None:
            put(part._replace(positions=[full[number] for number in part.positions]))

        if len(full) < len(texts) or not texts:
            error = await self.client.meet(self._fields)
            empty = sorted(set(range(len(texts))) - set(full))
            zeros = np.zeros((len(empty), self.client.dimensions), dtype=np.float32)
            put(Part(empty, zeros, dict.fromkeys(range(len(empty)), error.reason) if error else {}))
        await self.client.embed(sent, self._fields, placed)


def served(name: str, settings: Settings, *, prefix: str = "", fields: Mapping[str, Any] | None = None) -> Served:
    """The embedder at an address.

    Args:
        name: http(s)://…/v1, with the model behind a `#` or in the settings.
        settings: keys, limits, whether models get pseudonyms.
        prefix: put before every text.
        fields: sent beside the texts.

    Raises:
        InputError: it is no usable address, has a secret in it, or no model is named.
    """
    place, service, sent = place_of(name, settings), settings.embedder_service, dict(fields or {})
    if taken := sorted(set(sent) & set(OURS)):
        raise InputError(
            "YARUS_EMBEDDER_SERVICE: QUERY and PASSAGE may not set {name!r}, which Yarus sends itself", name=taken[0]
        )
    masked = partial(mask, key=own_key(), language=settings.language) if settings.mask_calls else None
    check_access(service, "YARUS_EMBEDDER_SERVICE")
    if place.address != _parted(settings.embedder)[0]:
        service = service.model_copy(update=NO_ACCESS)
    limits = service.model_dump_json(exclude={"query", "passage", "headers", "token_form", "token_command"})
    secrets = tuple(service.headers.items()), tuple(service.token_form.items()), service.token_command
    return Served(_client(place, limits, *secrets), prefix, sent, masked)


def place_of(name: str, settings: Settings) -> Place:
    """Address, model and key that a name stands for. A key goes to the address of its own setting, and nowhere else.

    Raises:
        InputError: see `served`.
    """
    open_address(name, "YARUS_EMBEDDER", keys="YARUS_EMBEDDER_API_KEY")
    address, model = _parted(name)
    if not address.partition("://")[2].strip("/"):
        raise InputError("embedder {name!r}: expected an address like https://host/v1", name=name)
    retrievers, its_model = _parted(settings.embedder)
    model = model or (its_model if retrievers == address else "") or settings.embedder_model or ""
    if not model:
        raise InputError(
            "embedder {address}: no model is named; set YARUS_EMBEDDER_MODEL, or write it behind the address: "
            "{address}#MODEL",
            address=address,
        )
    measuring, _ = _parted(settings.similarity_embedder or "")
    known = (
        (retrievers, settings.embedder_api_key, "YARUS_EMBEDDER_API_KEY"),
        (measuring, settings.similarity_embedder_api_key, "YARUS_SIMILARITY_EMBEDDER_API_KEY"),
    )
    theirs = [(key, setting) for where, key, setting in known if where == address] or [(None, known[0][2])]
    key, setting = next((pair for pair in theirs if pair[0]), theirs[0])
    return Place(address, model, key, setting)


def _parted(name: str) -> tuple[str, str]:
    address, _, model = name.strip().partition("#")
    base, mark, query = address.partition("?")
    return base.rstrip("/").removesuffix("/embeddings") + mark + query, model.strip()


@lru_cache(maxsize=8)
def _client(
    place: Place, limits: str, headers: Secrets, token_form: Secrets, token_command: SecretStr | None
) -> Client:
    """Return one client for all who ask the same, so that limits hold and connections stay open.

    Args:
        place: address, model and key.
        limits: the settings of the service as JSON, which masks secrets: those are given apart.
        headers: of its requests.
        token_form: sent to the address that issues tokens.
        token_command: prints tokens.
    """
    service = EmbedderService.model_validate_json(limits)
    secrets = {"headers": dict(headers), "token_form": dict(token_form), "token_command": token_command}
    return Client(place, service.model_copy(update=secrets))

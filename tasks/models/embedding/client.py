"""One model of one embedding server: batches in flight, attempts, and what a server has to be told once.

A batch that is refused is halved and asked again, down to the one text that is to blame; a server that takes shorter
batches than were sent gets no longer ones again. What would fail every text ends the evaluation.
"""

import asyncio
import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, get_args

import httpx
import numpy as np
from pydantic import SecretStr

from yarus.db.errors import ModelUnavailable
from yarus.db.words import Words
from yarus.tasks.config.secrets import fetched
from yarus.tasks.config.settings import EmbedderService
from yarus.tasks.models.credentials import Credentials
from yarus.tasks.models.embedding.parts import Part
from yarus.tasks.models.embedding.wire import Embedded, Form, body, read
from yarus.tasks.models.endpoints import with_path
from yarus.tasks.models.protocol import CallError, exchanged, failure
from yarus.tasks.models.rate_limits import (
    AdaptiveConcurrency,
    CircuitBreaker,
    RateLimiter,
    RetryPolicy,
    Waiting,
    may_pass,
)
from yarus.tasks.models.server_errors import SentRequest
from yarus.tasks.models.transport import ACCEPTED, JSON, Response, Transport, closed_with

log = logging.getLogger("yarus")
RETRIES = RetryPolicy()
BATCH_CHARACTERS = 64_000
"""Of one request, if it has more than one text: some providers refuse what has too many tokens together."""
HELLO = "?"
"""The first text that a server is asked for: it shows whether vectors come at all, and of what dimension."""
OF_THESE_TEXTS = (400, 413, 422)
"""Statuses that say something about the texts, once the server has taken others."""
FOREVER = float("inf")
HELP: dict[str, Words] = {
    "key": Words("Set {key} to a valid key; it is sent only to the address of its own setting"),
    "money": Words("The account has no money left: top it up, or set {key} to another account's key"),
    "unclear": Words("Allow the model for this key, or change {key} or the model"),
}
CHECK_ADDRESS = Words("Check the address (it usually ends with /v1) and the model")


class Place(NamedTuple):
    """Where a model is served."""

    address: str
    """Up to /v1."""
    model: str
    key: SecretStr | None
    setting: str
    """That the key stands in."""

    @property
    def name(self) -> str:
        """Address and model in one."""
        return f"{self.address}#{self.model}"


class Client:
    """Asks one server; lives in one event loop, and is shared by all who ask the same."""

    def __init__(self, place: Place, service: EmbedderService) -> None:
        """Makes a client that has sent nothing yet."""
        self.place, self._service = place, service
        self.dimensions = 0
        """Of its vectors; 0 before the first."""
        self._size = service.batch
        self._form: Form = "base64"
        self._retries = RETRIES
        self._concurrency = AdaptiveConcurrency(service.concurrency)
        self._breaker = CircuitBreaker(self._retries)
        self._waiting = Waiting(f"embedder {place.name}", self._breaker, service.timeout_s)
        self._requests = RateLimiter(service.rpm)
        self._served: set[str | None] = {place.model, None}
        self._meeting = asyncio.Lock()
        self._transport: Transport | None = None
        self._credentials: Credentials | None = None

    async def embed(self, texts: Sequence[str], fields: Mapping[str, Any], put: Callable[[Part], None]) -> None:
        """Asks for all texts, and hands over what has come as it comes.

        Args:
            texts: n texts, none of them empty.
            fields: sent beside them.
            put: takes the parts; together they have every position once.

        Raises:
            InputError: the key cannot be used.
            ModelUnavailable: the server refuses what every text would bring.
        """
        with self._waiting:
            await self._embed(texts, fields, put)

    async def _embed(self, texts: Sequence[str], fields: Mapping[str, Any], put: Callable[[Part], None]) -> None:
        if (error := await self.meet(fields)) is not None:
            return put(self._none(range(len(texts)), error))
        batches = self._batches(texts)

        async def work() -> None:
            for batch in batches:
                await self._batch(texts, batch, fields, put)

        workers = [asyncio.create_task(work()) for _ in range(2 * self._service.concurrency)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
        return None

    async def meet(self, fields: Mapping[str, Any]) -> CallError | None:
        """Asks for one vector, the first time, to know their form and dimension: later refusals are about texts.

        Returns:
            Why there is none, if the server could not be asked.
        """
        async with self._meeting:
            if self.dimensions:
                return None
            if self._transport is None:
                await self._open()
            outcome: Embedded | CallError = CallError("refused", "")
            for self._form in get_args(Form):
                outcome = await self._tried([HELLO], fields)
                if isinstance(outcome, Embedded) or outcome.status not in OF_THESE_TEXTS:
                    break  # otherwise perhaps it knows only the other form
            if isinstance(outcome, Embedded):
                self._size = 1 if self._form == "single" else self._size
                return CallError("fault", f"for the text {HELLO!r}: {outcome.wrong[0]}", 200) if outcome.wrong else None
            if outcome.status in OF_THESE_TEXTS:
                raise self._refused(outcome)
            self._form = "base64"
            return outcome

    @property
    def _secrets(self) -> tuple[str, ...]:
        return self._credentials.secrets if self._credentials else ()

    async def _open(self) -> None:
        key = await fetched(self.place.key, self.place.setting)
        secret = key.get_secret_value().strip() if key else ""
        self._credentials = Credentials(self._service, secret, "YARUS_EMBEDDER_SERVICE", self.place.setting)
        self._transport = Transport(with_path(self.place.address, "/embeddings"), self._service.ca_file)
        closed_with(self, self._transport)

    def _batches(self, texts: Sequence[str]) -> Iterator[range]:
        """Positions of texts that are asked for together, as many as the server is known to take by then."""
        start = 0
        while start < len(texts):
            end, characters = start + 1, len(texts[start])
            while end < len(texts) and end - start < self._size:
                characters += len(texts[end])
                if characters > BATCH_CHARACTERS:
                    break
                end += 1
            yield range(start, end)
            start = end

    async def _batch(
        self, texts: Sequence[str], batch: range, fields: Mapping[str, Any], put: Callable[[Part], None]
    ) -> bool:
        """Asks for a batch, and if it fails and may be too much at once, for its halves.

        Returns:
            Whether all of it was taken as it was sent.
        """
        outcome = await self._tried(texts[batch.start : batch.stop], fields)
        if isinstance(outcome, Embedded):
            put(Part(batch, outcome.vectors, outcome.wrong))
            return True
        alone = outcome.kind not in ("blocked", "busy") and not self._breaker.is_given_up  # the server answers others
        together = outcome.status in OF_THESE_TEXTS or alone
        if len(batch) == 1 or not together:
            put(self._none(batch, outcome))
            return False
        middle = batch.start + (len(batch) + 1) // 2
        halves = range(batch.start, middle), range(middle, batch.stop)
        taken = await asyncio.gather(*(self._batch(texts, half, fields, put) for half in halves))
        if all(taken):
            self._size = min(self._size, len(halves[0]))
        return False

    async def _tried(self, texts: Sequence[str], fields: Mapping[str, Any]) -> Embedded | CallError:
        """Tries until there are vectors, or there is no try left.

        Raises:
            ModelUnavailable: the server refuses what every text would bring.
        """
        content = body(texts, self.place.model, self._form, fields)
        faults, waited_s, renewed = 0, 0.0, False
        while True:
            token = self._credentials.token if self._credentials else ""
            outcome = await self._attempt(content, len(texts), first=faults > 0 and not self._breaker.is_open)
            if isinstance(outcome, Embedded):
                return outcome
            if outcome.status == 401 and self._credentials and self._credentials.is_renewable and not renewed:
                renewed = True
                await self._credentials.renew(token)
                continue
            if not may_pass(outcome.kind) and await self._concerns_all(outcome, texts, fields):
                raise self._refused(outcome)
            if not may_pass(outcome.kind):
                return outcome
            faults += 1
            wait_s = self._retries.wait_s(outcome.kind, faults, self._breaker)
            waited_s += max(wait_s, outcome.pause_s or 0.0)
            too_much = outcome.kind in ("timeout", "fault") and outcome.status is None  # too slow, or too large a reply
            if (too_much and len(texts) > 1) or self._retries.gives_up(outcome.kind, faults, waited_s, self._breaker):
                return outcome
            await asyncio.sleep(wait_s)

    async def _concerns_all(self, error: CallError, texts: Sequence[str], fields: Mapping[str, Any]) -> bool:
        """Whether every text would be refused like this: the first one is, too."""
        is_of_texts = error.status in OF_THESE_TEXTS and not (error.cause and error.cause.kind in ("money", "key"))
        if is_of_texts or error.kind in ("call", "blocked"):
            return False
        if list(texts) == [HELLO]:
            return True
        content = body([HELLO], self.place.model, self._form, fields)
        outcome = await self._attempt(content, 1, first=True)
        return isinstance(outcome, CallError) and not may_pass(outcome.kind) and outcome.kind != "blocked"

    async def _attempt(self, content: bytes, n: int, *, first: bool) -> Embedded | CallError:
        """One try at a place of its own."""
        await self._concurrency.take(first=first)
        try:
            started = time.monotonic()
            try:
                found = await self._asked(content)
                if isinstance(found, CallError):
                    self._learn(found, started)
                    return found
            finally:
                self._concurrency.give()
            await asyncio.sleep(0)  # whose turn it is sends first: reading takes a millisecond
            outcome = self._known(read(found, n, self._secrets))
            self._learn(outcome, started)
            return outcome
        except asyncio.CancelledError:
            self._breaker.abandoned()
            raise

    async def _asked(self, content: bytes) -> Response | CallError:
        """What came with status 200, when breaker and limits had let it go."""
        if self._transport is None or self._credentials is None:
            raise RuntimeError("a client meets its server before it asks for texts")
        if blocked := await self._breaker.ready(FOREVER):
            return CallError("blocked", blocked)
        if (wait_s := self._requests.wait_s(1)) > 0:
            await asyncio.sleep(wait_s)
        headers = httpx.Headers(ACCEPTED | JSON | await self._credentials.build_headers())
        found = await exchanged(self._transport, content, headers, self._service.timeout_s, self._secrets)
        if isinstance(found, CallError) or found.status == 200:
            return found
        return failure(found, SentRequest({}, json.loads(content)), self._secrets)

    def _known(self, outcome: Embedded | CallError) -> Embedded | CallError:
        """The same, if it is of the dimension that came before; whoever else answers is told of."""
        if isinstance(outcome, CallError):
            return outcome
        dimensions = outcome.vectors.shape[1]
        if self.dimensions and dimensions != self.dimensions:
            return CallError(
                "fault", f"vectors of {dimensions} dimensions, where it gave {self.dimensions} before: several models "
                "answer at this address", 200,
            )  # fmt: skip
        if outcome.served_model not in self._served:
            self._served.add(outcome.served_model)
            log.warning("embedder: asked for the model %s, served by %s", self.place.model, outcome.served_model)
        if len(outcome.wrong) < len(outcome.vectors):
            self.dimensions = dimensions
        return outcome

    def _learn(self, outcome: Embedded | CallError, started: float) -> None:
        """What an outcome says about the server; what was not asked says nothing."""
        if isinstance(outcome, CallError) and outcome.kind == "blocked":
            return
        if isinstance(outcome, Embedded) or not may_pass(outcome.kind):
            self._waiting.answered()
            self._breaker.worked()
            self._concurrency.grow()
            return
        if outcome.kind in ("busy", "timeout"):  # many servers compute one batch after another, given up or not
            self._concurrency.shrink(started)
        self._breaker.failed(outcome.kind, outcome.reason, pause_s=outcome.pause_s or 0.0)

    def _none(self, batch: Sequence[int], error: CallError) -> Part:
        rows = np.full((len(batch), self.dimensions), np.nan, dtype=np.float32)
        return Part(batch, rows, dict.fromkeys(range(len(batch)), error.reason))

    def _refused(self, error: CallError) -> ModelUnavailable:
        way_out = HELP.get(error.cause.kind if error.cause else "", CHECK_ADDRESS)
        if error.is_redirect:
            way_out = Words("The address redirects: set it to the final one")
        return ModelUnavailable(
            "embedder {place}: {reason}. {way_out}",
            place=self.place.name,
            reason=error.reason,
            way_out=Words(way_out.template, key=self.place.setting),
        )

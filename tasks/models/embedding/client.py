"""Client of one model of one embedding server: batches in flight, attempts, and what is learnt about the server.

A refused batch is halved and sent again, down to the one text that causes the refusal. A server that takes only shorter
batches gets no longer ones again. An error that would fail every text ends the evaluation.
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
from yarus.db.messages import Words
from yarus.tasks.config.secrets import resolve_secret
from yarus.tasks.config.settings import EmbedderService
from yarus.tasks.models.credentials import Credentials
from yarus.tasks.models.embedding.partial_results import PartialResult
from yarus.tasks.models.embedding.wire import EmbeddingResponse, VectorForm, encode_request, parse_response
from yarus.tasks.models.endpoints import append_path
from yarus.tasks.models.protocol import CallError, parse_failure, send_request
from yarus.tasks.models.rate_limits import (
    AdaptiveConcurrency,
    CircuitBreaker,
    RateLimiter,
    RetryPolicy,
    WaitReporter,
    may_pass,
)
from yarus.tasks.models.server_errors import SentRequest
from yarus.tasks.models.transport import ACCEPT_HEADERS, JSON_HEADERS, Response, Transport, close_with_owner

log = logging.getLogger("yarus")
RETRIES = RetryPolicy()
BATCH_CHARACTERS = 64_000
"""Limit of a request with more than one text: some providers refuse too many tokens together."""
PROBE_TEXT = "?"
"""First text sent to a server, which shows whether it returns vectors, and their dimension."""
TEXT_STATUSES = (400, 413, 422)
"""Statuses that concern the texts, once the server has taken others."""
NEVER = float("inf")
HELP: dict[str, Words] = {
    "key": Words("Set {key} to a valid key; it is sent only to the address of its own setting"),
    "money": Words("The account has no money left: top it up, or set {key} to another account's key"),
    "unclear": Words("Allow the model for this key, or change {key} or the model"),
}
CHECK_ADDRESS = Words("Check the address (it usually ends with /v1) and the model")


class EmbeddingEndpoint(NamedTuple):
    """Address and credentials of a served model."""

    address: str
    """The address up to /v1."""
    model: str
    key: SecretStr | None
    setting: str
    """Name of the setting with the key."""

    @property
    def name(self) -> str:
        """Return address and model in one."""
        return f"{self.address}#{self.model}"


class EmbeddingClient:
    """Client of one server; lives in one event loop, and is shared by all users of the same model."""

    def __init__(self, endpoint: EmbeddingEndpoint, service: EmbedderService) -> None:
        """Make a client that has sent nothing yet."""
        self.endpoint, self._service = endpoint, service
        self.dimensions = 0
        """Dimensions of its vectors; 0 before the first."""
        self._batch_size = service.batch
        self._form: VectorForm = "base64"
        self._retries = RETRIES
        self._concurrency = AdaptiveConcurrency(service.concurrency)
        self._breaker = CircuitBreaker(self._retries)
        self._wait_reporter = WaitReporter(f"embedder {endpoint.name}", self._breaker, service.timeout_s)
        self._requests = RateLimiter(service.rpm)
        self._known_models: set[str | None] = {endpoint.model, None}
        self._probe_lock = asyncio.Lock()
        self._transport: Transport | None = None
        self._credentials: Credentials | None = None

    async def embed(
        self, texts: Sequence[str], fields: Mapping[str, Any], put: Callable[[PartialResult], None]
    ) -> None:
        """Embed all texts, and pass on results as they arrive.

        Args:
            texts: n texts that are not empty.
            fields: sent beside them.
            put: receives the results, which together have every position once.

        Raises:
            InputError: the key cannot be used.
            ModelUnavailable: the server would refuse every text.
        """
        with self._wait_reporter:
            await self._embed(texts, fields, put)

    async def _embed(
        self, texts: Sequence[str], fields: Mapping[str, Any], put: Callable[[PartialResult], None]
    ) -> None:
        if (error := await self.probe_server(fields)) is not None:
            return put(self._build_failed_result(range(len(texts)), error))
        batches = self._batches(texts)

        async def work() -> None:
            for batch in batches:
                await self._embed_batch(texts, batch, fields, put)

        workers = [asyncio.create_task(work()) for _ in range(2 * self._service.concurrency)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
        return None

    async def probe_server(self, fields: Mapping[str, Any]) -> CallError | None:
        """Request one vector, the first time, to learn form and dimension: later refusals are about texts.

        Returns:
            The error of the probe if it brings no vector, otherwise None.
        """
        async with self._probe_lock:
            if self.dimensions:
                return None
            if self._transport is None:
                await self._open()
            outcome: EmbeddingResponse | CallError = CallError("refused", "")
            for self._form in get_args(VectorForm):
                outcome = await self._try([PROBE_TEXT], fields)
                if isinstance(outcome, EmbeddingResponse) or outcome.status not in TEXT_STATUSES:
                    break  # otherwise it may know only another form
            if isinstance(outcome, EmbeddingResponse):
                self._batch_size = 1 if self._form == "single" else self._batch_size
                return (
                    CallError("fault", f"for the text {PROBE_TEXT!r}: {outcome.failures[0]}", 200)
                    if outcome.failures
                    else None
                )
            if outcome.status in TEXT_STATUSES:
                raise self._build_refusal(outcome)
            self._form = "base64"
            return outcome

    @property
    def _secrets(self) -> tuple[str, ...]:
        return self._credentials.secrets if self._credentials else ()

    async def _open(self) -> None:
        key = await resolve_secret(self.endpoint.key, self.endpoint.setting)
        secret = key.get_secret_value().strip() if key else ""
        self._credentials = Credentials(self._service, secret, "YARUS_EMBEDDER_SERVICE", self.endpoint.setting)
        self._transport = Transport(append_path(self.endpoint.address, "/embeddings"), self._service.ca_file)
        close_with_owner(self, self._transport)

    def _batches(self, texts: Sequence[str]) -> Iterator[range]:
        """Yield positions of texts to send together, as many as the server is known to take by then."""
        start = 0
        while start < len(texts):
            end, characters = start + 1, len(texts[start])
            while end < len(texts) and end - start < self._batch_size:
                characters += len(texts[end])
                if characters > BATCH_CHARACTERS:
                    break
                end += 1
            yield range(start, end)
            start = end

    async def _embed_batch(
        self, texts: Sequence[str], batch: range, fields: Mapping[str, Any], put: Callable[[PartialResult], None]
    ) -> bool:
        """Embed a batch; if it fails and may be too large, embed its halves.

        Returns:
            Whether the server took the batch as it was sent.
        """
        outcome = await self._try(texts[batch.start : batch.stop], fields)
        if isinstance(outcome, EmbeddingResponse):
            put(PartialResult(batch, outcome.vectors, outcome.failures))
            return True
        # The batch is at fault if the server answers other requests.
        is_batch_at_fault = outcome.kind not in ("blocked", "busy") and not self._breaker.is_given_up
        may_split = outcome.status in TEXT_STATUSES or is_batch_at_fault
        if len(batch) == 1 or not may_split:
            put(self._build_failed_result(batch, outcome))
            return False
        middle = batch.start + (len(batch) + 1) // 2
        halves = range(batch.start, middle), range(middle, batch.stop)
        accepted = await asyncio.gather(*(self._embed_batch(texts, half, fields, put) for half in halves))
        if all(accepted):
            self._batch_size = min(self._batch_size, len(halves[0]))
        return False

    async def _try(self, texts: Sequence[str], fields: Mapping[str, Any]) -> EmbeddingResponse | CallError:
        """Try until there are vectors, or no try is left.

        Raises:
            ModelUnavailable: the server would refuse every text.
        """
        content = encode_request(texts, self.endpoint.model, self._form, fields)
        faults, waited_s, has_renewed = 0, 0.0, False
        while True:
            token = self._credentials.token if self._credentials else ""
            outcome = await self._attempt(content, len(texts), first=faults > 0 and not self._breaker.is_open)
            if isinstance(outcome, EmbeddingResponse):
                return outcome
            if outcome.status == 401 and self._credentials and self._credentials.is_renewable and not has_renewed:
                has_renewed = True
                await self._credentials.renew(token)
                continue
            if not may_pass(outcome.kind) and await self._concerns_all(outcome, texts, fields):
                raise self._build_refusal(outcome)
            if not may_pass(outcome.kind):
                return outcome
            faults += 1
            wait_s = self._retries.wait_s(outcome.kind, faults, self._breaker)
            waited_s += max(wait_s, outcome.pause_s or 0.0)
            # Too slow, or too large a reply.
            is_large = outcome.kind in ("timeout", "fault") and outcome.status is None
            if (is_large and len(texts) > 1) or self._retries.gives_up(outcome.kind, faults, waited_s, self._breaker):
                return outcome
            await asyncio.sleep(wait_s)

    async def _concerns_all(self, error: CallError, texts: Sequence[str], fields: Mapping[str, Any]) -> bool:
        """Return whether every text would be refused like this, because the first one is, too."""
        is_of_texts = error.status in TEXT_STATUSES and not (error.cause and error.cause.kind in ("money", "key"))
        if is_of_texts or error.kind in ("call", "blocked"):
            return False
        if list(texts) == [PROBE_TEXT]:
            return True
        content = encode_request([PROBE_TEXT], self.endpoint.model, self._form, fields)
        outcome = await self._attempt(content, 1, first=True)
        return isinstance(outcome, CallError) and not may_pass(outcome.kind) and outcome.kind != "blocked"

    async def _attempt(self, content: bytes, n_texts: int, *, first: bool) -> EmbeddingResponse | CallError:
        """Try once, in a separate slot."""
        await self._concurrency.acquire(first=first)
        try:
            started_at = time.monotonic()
            try:
                response = await self._post(content)
                if isinstance(response, CallError):
                    self._learn(response, started_at)
                    return response
            finally:
                self._concurrency.release()
            await asyncio.sleep(0)  # the next waiter sends first, because parsing takes a millisecond
            outcome = self._check_response(parse_response(response, n_texts, self._secrets))
            self._learn(outcome, started_at)
            return outcome
        except asyncio.CancelledError:
            self._breaker.release_probe()
            raise

    async def _post(self, content: bytes) -> Response | CallError:
        """Return the response of status 200, or an error, after breaker and limits allow the request."""
        if self._transport is None or self._credentials is None:
            raise RuntimeError("a client meets its server before it asks for texts")
        if blocked := await self._breaker.wait_until_ready(NEVER):
            return CallError("blocked", blocked)
        if (wait_s := self._requests.wait_s(1)) > 0:
            await asyncio.sleep(wait_s)
        headers = httpx.Headers(ACCEPT_HEADERS | JSON_HEADERS | await self._credentials.build_headers())
        response = await send_request(self._transport, content, headers, self._service.timeout_s, self._secrets)
        if isinstance(response, CallError) or response.status == 200:
            return response
        return parse_failure(response, SentRequest({}, json.loads(content)), self._secrets)

    def _check_response(self, outcome: EmbeddingResponse | CallError) -> EmbeddingResponse | CallError:
        """Return the response if it has the dimension of earlier ones; log a change of the serving model."""
        if isinstance(outcome, CallError):
            return outcome
        dimensions = outcome.vectors.shape[1]
        if self.dimensions and dimensions != self.dimensions:
            return CallError(
                "fault", f"vectors of {dimensions} dimensions, where it gave {self.dimensions} before: several models "
                "answer at this address", 200,
            )  # fmt: skip
        if outcome.served_model not in self._known_models:
            self._known_models.add(outcome.served_model)
            log.warning("embedder: asked for the model %s, served by %s", self.endpoint.model, outcome.served_model)
        if len(outcome.failures) < len(outcome.vectors):
            self.dimensions = dimensions
        return outcome

    def _learn(self, outcome: EmbeddingResponse | CallError, started_at: float) -> None:
        """Update breaker and concurrency from an outcome; a request that was not sent changes nothing."""
        if isinstance(outcome, CallError) and outcome.kind == "blocked":
            return
        if isinstance(outcome, EmbeddingResponse) or not may_pass(outcome.kind):
            self._wait_reporter.record_reply()
            self._breaker.record_success()
            self._concurrency.grow()
            return
        if outcome.kind in ("busy", "timeout"):  # many servers compute one batch after another, even cancelled ones
            self._concurrency.shrink(started_at)
        self._breaker.record_failure(outcome.kind, outcome.reason, pause_s=outcome.pause_s or 0.0)

    def _build_failed_result(self, batch: Sequence[int], error: CallError) -> PartialResult:
        rows = np.full((len(batch), self.dimensions), np.nan, dtype=np.float32)
        return PartialResult(batch, rows, dict.fromkeys(range(len(batch)), error.reason))

    def _build_refusal(self, error: CallError) -> ModelUnavailable:
        way_out = HELP.get(error.cause.kind if error.cause else "", CHECK_ADDRESS)
        if error.is_redirect:
            way_out = Words("The address redirects: set it to the final one")
        return ModelUnavailable(
            "embedder {place}: {reason}. {way_out}",
            place=self.endpoint.name,
            reason=error.reason,
            way_out=Words(way_out.template, key=self.endpoint.setting),
        )

"""A reply is bought: attempts at a chat server, one after another, until there is an answer or no try is left.

An attempt is a place in the queue, the breaker's leave, the rate limits, money set aside, and one exchange; from what
comes of it the breaker, the limits and the response format learn.
"""

import asyncio
import logging
import time
from contextlib import suppress
from dataclasses import dataclass, replace

import httpx

from db.errors import ModelUnavailable
from db.words import Words
from tasks.config.settings import Role, Settings
from tasks.models.calls import Call, Reply, RoleName, most_tokens
from tasks.models.cost.prices import Allowed, Budget, allowed, cost_usd, counted, price_of
from tasks.models.endpoints import checked, place_of, remedy
from tasks.models.protocol import Answer, CallError, exchanged, in_format, last_format, read
from tasks.models.rate_limits import AdaptiveConcurrency, CircuitBreaker, RateLimiter, RetryPolicy
from tasks.models.transport import ACCEPTED, JSON, Transport
from tasks.models.waiting import Waiting
from tasks.progress.counts import note
from tasks.prompts import Form

log = logging.getLogger("yarus")
NO_MONEY = Words("the budget (YARUS_BUDGET_USD) does not allow another call")
NO_TIME = Words("the evaluation's time (YARUS_EVALUATION_TIMEOUT_S) is over")


@dataclass(frozen=True, slots=True)
class Limits:
    """What all roles of an evaluation share."""

    budget: Budget
    ends_at: float


class Attempts:
    """The attempts of one role."""

    def __init__(
        self,
        name: RoleName,
        settings: Settings,
        limits: Limits,
        retries: RetryPolicy,
        unsaved: asyncio.Semaphore | None,
    ) -> None:
        """Makes a client that has sent nothing yet.

        Args:
            name: the role.
            settings: its address, limits and prices.
            limits: what it shares with the other roles.
            retries: how long failures of the server are waited out.
            unsaved: taken for every answer, within its place; whoever stores the answer gives it back.

        Raises:
            InputError: settings that cannot work.
        """
        self.name = name
        self.role: Role = getattr(settings, name)
        self.model, url, self._secret = checked(self.role, place_of(name))
        self._url = url
        self._price = price_of(self.model, settings)
        self._budget, self._ends_at = limits.budget, limits.ends_at
        self._retries = retries
        self._concurrency = AdaptiveConcurrency(self.role.concurrency)
        self._breaker = CircuitBreaker(retries)
        self._waiting = Waiting(f"{name} {self.model!r} at {url}", self._breaker, self.role.timeout_s)
        self._calls, self._tokens = RateLimiter(self.role.rpm), RateLimiter(self.role.tpm)
        self._tokens_out = 0.0  # running mean: tokens are booked before they are counted
        self._format = 0  # the best response format that the server may understand
        self._understood = False
        self._served: set[str | None] = {self.model}
        self._unsure = False  # it has been said that costs are not known
        self._refusal = ""  # why no further call is sent
        self._unsaved = unsaved
        self._headers = httpx.Headers(ACCEPTED | JSON)
        if self._secret:
            self._headers["authorization"] = f"Bearer {self._secret}"
        self._transport = Transport(url)

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._transport.aclose()

    async def reply(self, call: Call, request: bytes) -> Reply:
        """Tries until there is an answer, or neither the call nor the evaluation has a try left.

        Args:
            call: what is asked.
            request: its body.

        Raises:
            ModelUnavailable: the server refuses what every call would bring.
        """
        with self._waiting:
            return await self._reply(call, request)

    async def _reply(self, call: Call, request: bytes) -> Reply:
        form = call.prompt.shape.form
        most = allowed(request, most_tokens(call, self.role))
        tries, faults, waited_s = 0, 0, 0.0  # a try that only finds out the response format is no fault
        free = True
        while True:
            first = tries > 0 and not self._breaker.is_open
            outcome, level, latency_ms = await self._attempt(request, form, most, first=first)
            tries += 1
            if isinstance(outcome, Answer):
                self._understood = True
                return self._ok(outcome, latency_ms)
            if outcome.reason == NO_MONEY:
                return Reply("skipped_budget", NO_MONEY, requested_model=self.model)
            free = free and outcome.free
            if outcome.kind == "refused":
                if outcome.status not in (400, 422) or level == last_format(form) or self._understood:
                    raise self._refused(outcome)
                self._format = max(self._format, level + 1)  # perhaps only this format is not known there
                continue
            faults += 1
            note(f"{self.name}: try {tries} failed", outcome.reason)
            wait_s = self._retries.wait_s(outcome.kind, faults, self._breaker)
            waited_s += max(wait_s, outcome.pause_s or 0.0)
            if self._retries.gives_up(outcome.kind, faults, waited_s, self._breaker):
                return Reply("error", outcome.reason, requested_model=self.model, cost_usd=0.0 if free else None)
            await asyncio.sleep(min(wait_s, max(0.0, self._ends_at - time.monotonic())))

    async def _attempt(
        self, request: bytes, form: Form, most: Allowed, *, first: bool
    ) -> tuple[Answer | CallError, int, float]:
        """One try at a place of its own; with the response format that it was made in, and its milliseconds."""
        await self._concurrency.take(first=first)
        level = min(self._format, last_format(form))
        try:
            if blocked := await self._breaker.ready(self._ends_at):
                return CallError("call", blocked, free=True), level, 0.0
            if time.monotonic() >= self._ends_at:
                return CallError("call", NO_TIME, free=True), level, 0.0
            if self._refusal:
                raise ModelUnavailable(self._refusal)
            booked = int(len(request) / 4 + self._tokens_out)
            if (wait_s := max(self._calls.wait_s(1), self._tokens.wait_s(booked))) > 0:
                await asyncio.sleep(wait_s)
            if not await self._budget.set_aside(cost_usd(self._price, *most) or 0.0):
                self._breaker.abandoned()
                return CallError("call", NO_MONEY, free=True), level, 0.0
            started = time.monotonic()
            outcome = await self._paid(in_format(request, form, level), most)
            latency_ms = (time.monotonic() - started) * 1000
            self._learn(outcome, started, booked)
            if self._unsaved and isinstance(outcome, Answer):
                with suppress(asyncio.CancelledError):  # what was received is stored, whoever gives it up
                    await self._unsaved.acquire()  # at its place: a kill loses little beside what is in flight
            return outcome, level, latency_ms
        except asyncio.CancelledError:
            self._breaker.abandoned()
            raise
        finally:
            self._concurrency.give()

    async def _paid(self, content: bytes, most: Allowed) -> Answer | CallError:
        """One exchange, for which money is set aside; what it can have cost is booked, also where it is cancelled."""
        most_usd = paid = cost_usd(self._price, *most) or 0.0
        try:
            outcome = await self._sent(content)
            if isinstance(outcome, Answer):
                # Where the server counts more than it can have read or was allowed to write, it may charge for it.
                claimed = (outcome.tokens_in, outcome.tokens_out)
                taken = (bound if count is None else count for count, bound in zip(claimed, most, strict=True))
                paid = cost_usd(self._price, *taken) or 0.0
                outcome = self._checked(outcome, most)
            elif outcome.free:
                paid = 0.0
        finally:
            self._budget.book(most_usd, paid)
        if paid > most_usd:
            with suppress(asyncio.CancelledError):  # the answer is here, and the end settles what is left
                await self._budget.settle()
        return outcome

    def _checked(self, answer: Answer, most: Allowed) -> Answer:
        """The answer with those of its counts that can be true, and log-probabilities of no more tokens than it may."""
        checked = replace(
            answer,
            tokens_in=counted(answer.tokens_in, most.tokens_in),
            tokens_out=counted(answer.tokens_out, most.tokens_out),
            logprobs=answer.logprobs if len(answer.logprobs or ()) <= most.tokens_out else None,
        )
        if self._price and None in (checked.tokens_in, checked.tokens_out) and not self._unsure:
            self._unsure = True
            log.warning(
                "%s: the cost of calls is unknown: the server counts %s input and %s output tokens, where %d and %d "
                "are the most possible; each call counts as the most that it can cost",
                self.name, answer.tokens_in, answer.tokens_out, *most,
            )  # fmt: skip
        return checked

    async def _sent(self, content: bytes) -> Answer | CallError:
        timeout_s = min(self.role.timeout_s, self._ends_at - time.monotonic())
        found = await exchanged(self._transport, content, self._headers, timeout_s, self._secret)
        if isinstance(found, CallError):
            over = found.kind == "timeout" and time.monotonic() >= self._ends_at
            return CallError("call", NO_TIME) if over else found
        return read(found, self._secret)

    def _learn(self, outcome: Answer | CallError, started: float, booked: int) -> None:
        """What an outcome says about the server."""
        if isinstance(outcome, Answer):
            self._waiting.answered()
            used = (outcome.tokens_in or 0) + (outcome.tokens_out or 0)
            self._tokens.correct(used - booked if used else 0)
            self._tokens_out += ((outcome.tokens_out or 0) - self._tokens_out) / 20
        if isinstance(outcome, Answer) or outcome.kind == "call" or outcome.kind == "refused":
            self._breaker.worked()
            self._concurrency.grow()
            return
        if outcome.kind == "busy":
            self._concurrency.shrink(started)
        self._breaker.failed(outcome.kind, outcome.reason, pause_s=outcome.pause_s or 0.0)

    def _refused(self, error: CallError) -> ModelUnavailable:
        what = f"{self.name} {self.model!r} at {self._url}: {error.reason}"
        self._refusal = f"{what}. {remedy(error.status or 0, place_of(self.name))}"
        return ModelUnavailable(self._refusal)

    def _ok(self, answer: Answer, latency_ms: float) -> Reply:
        if answer.served_model not in self._served:
            self._served.add(answer.served_model)
            log.warning("%s: asked for the model %s, served by %s", self.name, self.model, answer.served_model)
        return Reply(
            "ok",
            raw=answer.text,
            requested_model=self.model,
            served_model=answer.served_model,
            finish_reason=answer.finish_reason,
            tokens_in=answer.tokens_in,
            tokens_out=answer.tokens_out,
            cost_usd=cost_usd(self._price, answer.tokens_in, answer.tokens_out),
            latency_ms=latency_ms,
            logprobs=answer.logprobs,
        )

"""Buy replies: try a chat server again until it answers or no try is left.

An attempt takes a slot in the queue, passes the circuit breaker and the rate limits, reserves money, and exchanges one
request. The breaker, the limits and the response format learn from its outcome.
"""

import asyncio
import logging
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TypeVar

import httpx
from sqlalchemy import Engine

from yarus.db.errors import ModelUnavailable
from yarus.db.messages import Words
from yarus.db.stores.server_profiles import load_profile, save_profile
from yarus.tasks.config.settings import Settings
from yarus.tasks.models.call_store import run_in_thread
from yarus.tasks.models.calls import Call, Reply, RoleName, build_request, strip_thinking
from yarus.tasks.models.endpoints import check_role, get_setting_prefix, suggest_fix
from yarus.tasks.models.prices import Budget, TokenLimits, accept_count, bound_tokens, compute_cost_usd, find_price
from yarus.tasks.models.progress import log_failure
from yarus.tasks.models.protocol import Answer, CallError, parse_response, send_request
from yarus.tasks.models.rate_limits import (
    AdaptiveConcurrency,
    CircuitBreaker,
    RateLimiter,
    RetryPolicy,
    WaitReporter,
    may_pass,
)
from yarus.tasks.models.server_errors import SentRequest
from yarus.tasks.models.server_profile import ProfileLearner, Request, ServerProfile, find_guess
from yarus.tasks.models.transport import ACCEPT_HEADERS, JSON_HEADERS, Transport

log = logging.getLogger("yarus")
NO_MONEY = Words("the budget (YARUS_BUDGET_USD) does not allow another call")
NO_TIME = Words("the evaluation's time (YARUS_EVALUATION_TIMEOUT_S) is over")
HARMLESS_TEXT = "2 + 2 = 4"
"""Replaces all texts of a probe call, which shows whether a refusal concerns every call."""
MAX_ENDLESS_CALLS = 2
"""Calls that may think until the extended limit; after them no call gets a higher limit."""
N = TypeVar("N", int, float)
OUTAGE_KINDS = ("unreachable", "timeout")
"""Kinds of errors that may pass and that the request does not cause."""


@dataclass(frozen=True, slots=True)
class EvaluationLimits:
    """Budget and end time that all roles of an evaluation share."""

    budget: Budget
    ends_at: float


class Attempts:
    """Sender of the calls of one role, with retries."""

    def __init__(
        self,
        name: RoleName,
        settings: Settings,
        limits: EvaluationLimits,
        retries: RetryPolicy,
        unsaved: asyncio.Semaphore | None,
        engine: Engine | None,
    ) -> None:
        """Make a client that has sent nothing yet.

        Args:
            name: the role.
            settings: its address, limits and prices.
            limits: what it shares with the other roles.
            retries: how long to wait for a failing server.
            unsaved: acquired for every answer while its call holds a slot; the code that stores the answer releases it.
            engine: of Yarus's database, which stores the learnt profile.

        Raises:
            InputError: settings that cannot work.
        """
        self.name = name
        self.role = settings.get_role(name)
        self.model, url, self._credentials = check_role(self.role, get_setting_prefix(name))
        self._url = url
        self._price = find_price(self.model, settings)
        self._budget, self._ends_at = limits.budget, limits.ends_at
        self._retries = retries
        self._concurrency = AdaptiveConcurrency(self.role.concurrency)
        self._breaker = CircuitBreaker(retries)
        self._wait_reporter = WaitReporter(f"{name} {self.model!r} at {url}", self._breaker, self.role.timeout_s)
        self._calls, self._tokens = RateLimiter(self.role.rpm), RateLimiter(self.role.tpm)
        self._tokens_out = 0.0  # running mean, for tokens that are booked before they are counted
        self._engine = engine
        self._learner = ProfileLearner()
        self._first_call_lock, self._probe_lock = asyncio.Lock(), asyncio.Lock()
        self._failure_streak = FailureStreak()
        self._n_endless = 0  # calls whose thinking did not end with any room
        self._known_models: set[str | None] = {self.model}
        self._has_warned_of_cost = False  # that costs are unknown
        self._refusal: str = ""  # why no further call is sent
        self._unsaved = unsaved
        self._own_headers: dict[str, str] = {}
        self._headers = httpx.Headers()
        self._transport = Transport(url, self.role.ca_file)

    @property
    def profile(self) -> ServerProfile:
        """Return the parameters that the server is known to take."""
        return self._learner.current

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    async def reply(self, call: Call, request: Request) -> Reply:
        """Try until there is an answer, or neither the call nor the evaluation has a try left.

        Args:
            call: the question.
            request: the call as it is sent to a server that takes everything.

        Raises:
            ModelUnavailable: the server would refuse every call.
        """
        with self._wait_reporter:
            if not self._learner.has_met:
                async with self._first_call_lock:  # the other calls profit from what the first one learns
                    if not self._learner.has_met:
                        await self._load_profile()
                    if not self._learner.has_met:
                        try:
                            return await self._reply(call, request)
                        finally:
                            self._learner.has_met = True
            return await self._reply(call, request)

    async def _reply(self, call: Call, request: Request) -> Reply:
        tries = _Tries([self._learner.current])
        while True:
            # A call that was sent before goes ahead of those that were not, unless the server fails them all.
            first = tries.sent > 0 and not self._breaker.is_open
            tries.token = self._credentials.token
            outcome, latency_ms = await self._attempt(request, tries.profiles[-1], first=first)
            tries.sent += 1
            reply = (
                await self._accept(outcome, latency_ms, request, tries)
                if isinstance(outcome, Answer)
                else await self._handle_error(outcome, call, request, tries)
            )
            if reply is not None:
                return reply

    async def _accept(self, answer: Answer, latency_ms: float, request: Request, tries: "_Tries") -> Reply | None:
        """Return the reply of an answer; None if the model needs more room for thinking: ask again."""
        if is_only_thinking(answer, tries.profiles[-1].get_limit(request)):
            roomier = tries.profiles[-1].extend_thinking(request)
            if roomier and self._n_endless < MAX_ENDLESS_CALLS:
                self._drop(answer, tries)
                tries.profiles.append(roomier)
                return None
            self._n_endless += 1
            return self._build_reply(answer, latency_ms, tries)
        if tries.is_guess and len(tries.profiles) > 1:  # the fault may have passed: try once more as intended
            profiles, tries.profiles, tries.is_guess = tries.profiles, tries.profiles[:1], False
            self._release_unsaved()
            again, its_latency_ms = await self._attempt(request, profiles[0], first=True)
            if isinstance(again, Answer):
                tries.dropped.append(answer)
                answer, latency_ms = again, its_latency_ms
            else:
                tries.profiles = profiles
                await self._take_unsaved()
        if self._learner.record_success(tries.profiles[-1], request):
            await self._save_profile()
        self._failure_streak.reset()
        return self._build_reply(answer, latency_ms, tries)

    def _drop(self, answer: Answer, tries: "_Tries") -> None:
        """Count an answer that is paid for and not returned."""
        tries.dropped.append(answer)
        self._release_unsaved()

    def _release_unsaved(self) -> None:
        """Release the slot of an answer that is not stored."""
        if self._unsaved:
            self._unsaved.release()

    async def _take_unsaved(self) -> None:
        """Wait until another answer may wait to be stored, so that a kill loses few answers."""
        if self._unsaved:
            with suppress(asyncio.CancelledError):  # received answers are stored even if nobody waits for them
                await self._unsaved.acquire()

    async def _handle_error(self, error: CallError, call: Call, request: Request, tries: "_Tries") -> Reply | None:
        """Return the reply of a call that has failed for good; None to send the call again.

        Raises:
            ModelUnavailable: every call would fail like this.
        """
        if error.reason == NO_MONEY:
            paid = _sum_known(self._cost_usd(answer) for answer in tries.dropped)
            return Reply("skipped_budget", NO_MONEY, requested_model=self.model, cost_usd=paid)
        tries.are_free = tries.are_free and error.free
        is_key = error.status == 401 or (error.cause is not None and error.cause.kind == "key")
        if is_key and self._credentials.is_renewable and not tries.has_renewed:
            tries.has_renewed = True
            await self._credentials.renew(tries.token)
            return None
        if (error.pause_s or 0) > self._retries.busy_s or error.is_redirect:
            raise self._build_refusal(error)
        if (
            self._change_profile(error, request, tries)
            or await self._wait(error, tries)
            or await self._investigate(error, call, request, tries)
        ):
            return None
        return await self._build_failure(call, error if error.kind == "call" else tries.refusal or error, tries)

    def _change_profile(self, error: CallError, request: Request, tries: "_Tries") -> bool:
        """Return whether the error asks for another profile; the call is sent with it next."""
        if error.cause is None:
            return False
        profile = self._learner.find_next_profile(error.cause, error.text, request, tries.profiles)
        may_refuse = error.status == 500 and tries.faults > 0  # some servers answer so to an unknown parameter
        if profile is None and may_refuse and not self._learner.has_worked(tries.profiles[0], request):
            profile, tries.is_guess = find_guess(request, tries.profiles), True
        return self._use_profile(profile, error, tries)

    def _use_profile(self, profile: ServerProfile | None, error: CallError, tries: "_Tries") -> bool:
        if profile is None:
            return False
        tries.refusal = tries.refusal or error
        tries.profiles.append(profile)
        return True

    async def _investigate(self, error: CallError, call: Call, request: Request, tries: "_Tries") -> bool:
        """Find out whether a refusal concerns every call; return whether to send the call again.

        Raises:
            ModelUnavailable: it concerns every call.
        """
        if error.kind not in ("refused", "parameter", "unclear") or tries.is_cleared:
            return False
        is_room = error.cause is not None and error.cause.kind == "room"
        is_unexplained = error.kind != "refused" and not is_room and error.status in (400, 403, 404, 422, 500)
        can_guess = is_unexplained and not self._learner.has_worked(tries.profiles[0], request)
        if can_guess and self._use_profile(find_guess(request, tries.profiles), error, tries):
            return True
        async with self._probe_lock:
            if self._refusal:
                raise ModelUnavailable(self._refusal)
            outcome = await self._probe(call, tries)
            if isinstance(outcome, CallError) and not may_pass(outcome.kind) and outcome.kind != "blocked":
                raise self._build_refusal(tries.refusal or error)
        tries.is_cleared = True
        if isinstance(outcome, Answer):
            self._learner.record_success(tries.profiles[0], request)
        return error.kind == "refused"  # the cause may have passed: try once more

    async def _probe(self, call: Call, tries: "_Tries") -> Answer | CallError:
        """Send the same prompt with harmless texts."""
        request = build_request(call.with_texts(HARMLESS_TEXT), self.role)
        outcome, _ = await self._attempt(request, tries.profiles[0], is_probe=True)
        if isinstance(outcome, Answer):
            self._drop(outcome, tries)
        return outcome

    async def _wait(self, error: CallError, tries: "_Tries") -> bool:
        """Return, after the pause, whether the error may pass and the call has tries left."""
        if not may_pass(error.kind):
            return False
        tries.faults += 1
        log_failure(f"{self.name}: try {tries.sent} failed", error.reason)
        wait_s = self._retries.wait_s(error.kind, tries.faults, self._breaker)
        tries.waited_s += max(wait_s, error.pause_s or 0.0)
        if self._retries.gives_up(error.kind, tries.faults, tries.waited_s, self._breaker):
            return False
        await asyncio.sleep(min(wait_s, max(0.0, self._ends_at - time.monotonic())))
        return True

    async def _build_failure(self, call: Call, error: CallError, tries: "_Tries") -> Reply:
        """Return the reply of a call that has failed.

        Raises:
            ModelUnavailable: so many calls have failed in a row that the calls are not the cause.
        """
        failure = self._breaker if error.kind == "blocked" else error
        if failure.kind not in OUTAGE_KINDS and error.reason != NO_TIME:
            signature = failure.reason if may_pass(failure.kind) else ""  # a refusal may name the case
            if self._failure_streak.should_stop(signature, call) and await self._concerns_all(error, call, tries):
                raise self._build_refusal(error, is_repeated=True)
        costs = [0.0 if tries.are_free else None, *(self._cost_usd(answer) for answer in tries.dropped)]
        return Reply("error", error.reason, requested_model=self.model, cost_usd=_sum_known(costs))

    async def _concerns_all(self, error: CallError, call: Call, tries: "_Tries") -> bool:
        """Return whether harmless texts are refused like those of the calls before, or only shorter ones would help."""
        if error.cause is not None and error.cause.kind == "long":
            return True
        async with self._probe_lock:
            if self._refusal:
                raise ModelUnavailable(self._refusal)
            if isinstance(await self._probe(call, tries), CallError):
                return True
        self._failure_streak.reset()
        return False

    def _cost_usd(self, answer: Answer) -> float | None:
        return compute_cost_usd(self._price, answer.tokens_in, answer.tokens_out)

    async def _attempt(
        self, request: Request, profile: ServerProfile, *, first: bool = False, is_probe: bool = False
    ) -> tuple[Answer | CallError, float]:
        """Try once; return the outcome and its milliseconds."""
        if not is_probe:
            await self._take_slot(first=first)
        try:
            if blocked := await self._breaker.wait_until_ready(self._ends_at):
                return CallError("blocked", blocked, free=True), 0.0
            if time.monotonic() >= self._ends_at:
                return CallError("blocked", NO_TIME, free=True), 0.0
            if self._refusal:
                raise ModelUnavailable(self._refusal)
            content, sent = profile.encode(request)
            headers = await self._build_headers()
            token_limits = bound_tokens(content, sent.parameters[profile.limit])
            booked_tokens = int(len(content) / 4 + self._tokens_out)
            if (wait_s := max(self._calls.wait_s(1), self._tokens.wait_s(booked_tokens))) > 0:
                await asyncio.sleep(wait_s)
            if not await self._budget.reserve(compute_cost_usd(self._price, *token_limits) or 0.0):
                self._breaker.release_probe()
                return CallError("blocked", NO_MONEY, free=True), 0.0
            started = time.monotonic()
            outcome = await self._pay_and_send(content, headers, sent, token_limits)
            latency_ms = (time.monotonic() - started) * 1000
            self._learn(outcome, started, booked_tokens)
            if isinstance(outcome, Answer):
                await self._take_unsaved()
            return outcome, latency_ms
        except BaseException:
            self._breaker.release_probe()
            raise
        finally:
            if not is_probe:
                self._concurrency.release()

    async def _build_headers(self) -> httpx.Headers:
        own = await self._credentials.build_headers()
        if own is not self._own_headers:
            self._own_headers, self._headers = own, httpx.Headers(ACCEPT_HEADERS | JSON_HEADERS | own)
        return self._headers

    async def _take_slot(self, *, first: bool) -> None:
        """Wait for a slot among the calls in flight, and for the result of a running probe."""
        await self._concurrency.acquire(first=first)
        if not self._probe_lock.locked():
            return
        try:
            async with self._probe_lock:
                pass
        except asyncio.CancelledError:
            self._concurrency.release()
            raise

    async def _pay_and_send(
        self, content: bytes, headers: httpx.Headers, sent: SentRequest, token_limits: TokenLimits
    ) -> Answer | CallError:
        """Exchange one request and charge what it can have cost, even if it is cancelled."""
        reserved_usd = charged_usd = compute_cost_usd(self._price, *token_limits) or 0.0
        try:
            outcome = await self._send(content, headers, sent)
            if isinstance(outcome, Answer):
                # A server that counts more than it can have read or written may charge for it.
                claimed = (outcome.tokens_in, outcome.tokens_out)
                counts = (bound if count is None else count for count, bound in zip(claimed, token_limits, strict=True))
                charged_usd = compute_cost_usd(self._price, *counts) or 0.0
                outcome = self._drop_false_counts(outcome, token_limits)
            elif outcome.free:
                charged_usd = 0.0
        finally:
            self._budget.charge(reserved_usd, charged_usd)
        if charged_usd > reserved_usd:
            with suppress(asyncio.CancelledError):  # the answer is here; the end of the evaluation settles the rest
                await self._budget.settle()
        return outcome

    def _drop_false_counts(self, answer: Answer, token_limits: TokenLimits) -> Answer:
        """Return the answer without impossible token counts and without surplus log-probabilities."""
        checked = replace(
            answer,
            tokens_in=accept_count(answer.tokens_in, token_limits.tokens_in),
            tokens_out=accept_count(answer.tokens_out, token_limits.tokens_out),
            logprobs=answer.logprobs if len(answer.logprobs or ()) <= token_limits.tokens_out else None,
        )
        if self._price and None in (checked.tokens_in, checked.tokens_out) and not self._has_warned_of_cost:
            self._has_warned_of_cost = True
            log.warning(
                "%s: the cost of calls is unknown: the server counts %s input and %s output tokens, where %d and %d "
                "are the most possible; each call counts as the most that it can cost",
                self.name, answer.tokens_in, answer.tokens_out, *token_limits,
            )  # fmt: skip
        return checked

    async def _send(self, content: bytes, headers: httpx.Headers, sent: SentRequest) -> Answer | CallError:
        timeout_s = min(self.role.timeout_s, self._ends_at - time.monotonic())
        secrets = self._credentials.secrets
        response = await send_request(self._transport, content, headers, timeout_s, secrets)
        if isinstance(response, CallError):
            is_evaluation_over = response.kind == "timeout" and time.monotonic() >= self._ends_at
            return CallError("blocked", NO_TIME) if is_evaluation_over else response
        return parse_response(response, sent, secrets)

    def _learn(self, outcome: Answer | CallError, started_at: float, booked_tokens: int) -> None:
        """Update breaker, limits and concurrency from an outcome."""
        if isinstance(outcome, Answer):
            self._wait_reporter.record_reply()
            used_tokens = (outcome.tokens_in or 0) + (outcome.tokens_out or 0)
            self._tokens.correct(used_tokens - booked_tokens if used_tokens else 0)
            self._tokens_out += ((outcome.tokens_out or 0) - self._tokens_out) / 20
        if isinstance(outcome, Answer) or not may_pass(outcome.kind):
            self._breaker.record_success()
            self._concurrency.grow()
            return
        if outcome.kind == "busy":
            self._concurrency.shrink(started_at)
        self._breaker.record_failure(outcome.kind, outcome.reason, pause_s=outcome.pause_s or 0.0)

    async def _load_profile(self) -> None:
        """Load the profile that earlier evaluations have learnt."""
        if self._engine is None:
            return
        stored = await run_in_thread(partial(load_profile, self._engine, self._url, self.model))
        if profile := ServerProfile.from_stored(stored):
            self._learner = ProfileLearner(profile)

    async def _save_profile(self) -> None:
        """Log and store the changed profile after the server has answered with it."""
        learnt = self._learner.current
        log.info("%s %r does not take every parameter; from now on: %s", self.name, self.model, learnt.summary)
        if self._engine is not None:
            await run_in_thread(partial(save_profile, self._engine, self._url, self.model, asdict(learnt)))

    def _build_refusal(self, error: CallError, *, is_repeated: bool = False) -> ModelUnavailable:
        reason: str = error.reason
        if is_repeated:
            reason = Words(
                "{reason}. {n} different questions in a row failed with these words: the questions are not the cause",
                reason=reason,
                n=FailureStreak.CASES,
            )
        self._refusal = Words(
            "{role} {model!r} at {url}: {reason}. {help}",
            role=self.name, model=self.model, url=self._url, reason=reason,
            help=suggest_fix(error, get_setting_prefix(self.name)),
        )  # fmt: skip
        return ModelUnavailable(self._refusal)

    def _build_reply(self, answer: Answer, latency_ms: float, tries: "_Tries") -> Reply:
        if answer.served_model not in self._known_models:
            self._known_models.add(answer.served_model)
            log.warning("%s: asked for the model %s, served by %s", self.name, self.model, answer.served_model)
        reply = Reply(
            "ok",
            raw=answer.text,
            requested_model=self.model,
            served_model=answer.served_model,
            finish_reason=answer.finish_reason,
            tokens_in=answer.tokens_in,
            tokens_out=answer.tokens_out,
            cost_usd=self._cost_usd(answer),
            latency_ms=latency_ms,
            logprobs=answer.logprobs,
        )
        if not tries.dropped:
            return reply
        answers = [*tries.dropped, answer]
        return replace(
            reply,
            tokens_in=_sum_known(paid.tokens_in for paid in answers),
            tokens_out=_sum_known(paid.tokens_out for paid in answers),
            cost_usd=_sum_known(self._cost_usd(paid) for paid in answers),
        )


@dataclass(slots=True)
class _Tries:
    """The tries of one call so far."""

    profiles: list[ServerProfile]
    """Profiles that the call was sent with; the last one is used next."""
    sent: int = 0
    faults: int = 0
    """Failures that may pass; refusals that change the profile do not count."""
    waited_s: float = 0.0
    are_free: bool = True
    """Whether the server cannot have charged for any of them."""
    dropped: list[Answer] = field(default_factory=list)
    """Answers that are paid for but not returned."""
    token: str = ""
    """Token of the last try."""
    has_renewed: bool = False
    is_guess: bool = False
    """Whether the profile was changed for an error that names no parameter and may have been a fault."""
    refusal: CallError | None = None
    """The first error that changed the profile."""
    is_cleared: bool = False
    """Whether the server answers a harmless question, so that the refusal concerns this call alone."""


class FailureStreak:
    """Counter of different cases that fail one after another without an answer between them."""

    CASES = 5

    def __init__(self) -> None:
        self._signature = ""
        self._cases: set[str] = set()

    def should_stop(self, signature: str, call: Call) -> bool:
        """Return whether CASES cases have now failed with the same words."""
        signature = re.sub(r"\S*\d\S*", "0", signature)  # numbers and ids differ
        if signature != self._signature:
            self._signature, self._cases = signature, set()
        self._cases.add(call.case_key)
        return len(self._cases) >= self.CASES

    def reset(self) -> None:
        """Start again after an answer."""
        self._cases.clear()


def is_only_thinking(answer: Answer, limit: int) -> bool:
    """Return whether the model spent its token limit on thinking alone."""
    is_spent = answer.tokens_out is not None and answer.tokens_out >= limit - 1
    return (answer.finish_reason == "length" or is_spent) and not strip_thinking(answer.text)


def _sum_known(values: Iterable[N | None]) -> N | None:
    """Return the sum; None if one of the values is not known."""
    total: N | None = None
    for value in values:
        if value is None:
            return None
        total = value if total is None else total + value
    return total

"""Systems under test that are not ours: a service that answers over HTTP, or a Python callable."""

import asyncio
import inspect
import time
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, cast

import jmespath

from db.errors import InputError
from tasks.cases.dialogs import spoken
from tasks.cases.refusals import HIDDEN
from tasks.config.secrets import redact_within
from tasks.config.settings import SystemService
from tasks.systems.external import Service, attempt, from_callable, require_storable, short

Answer = Mapping[str, Any]
Message = Mapping[str, str]
"""A turn of a dialog as OpenAI's protocol has it: `role` (`user`, `assistant`) and `content`."""
Ask = Callable[[str, Sequence[Message]], Answer]
"""A question, and what was said in its dialog before it; systems that take no history are given none."""
LONGEST_MS = 24 * 3_600_000
PARTS = ("answer", "urls", "contexts", "path", "latency_ms")
BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Answered:
    """What a system said to one question; a failure is not an answer."""

    text: str | None = None
    urls: list[str] | None = None
    """The pages that it used, best first; None where it does not say."""
    contexts: list[str] | None = None
    path: str | None = None
    """What it did in its own words, such as `cache`; `hidden` is known to us."""
    latency_ms: float | None = None
    first_token_ms: float | None = None
    """Until the first part of a streamed answer came; None where it came as a whole."""
    error: str | None = None
    history: tuple[Message, ...] = ()
    """What it was told had been said before the question."""


class System:
    """A system under test, asked by as many threads as it takes questions at once."""

    def __init__(self, ask: Ask, concurrency: int, secrets: Sequence[str] = (), *, takes_history: bool = False) -> None:
        self._ask, self._secrets, self.takes_history = ask, secrets, takes_history
        self._threads = ThreadPoolExecutor(concurrency, thread_name_prefix="sut")
        weakref.finalize(self, self._threads.shutdown, wait=False)

    async def answers(self, questions: Sequence[str], dialogs: Sequence[Hashable] = ()) -> list[Answered]:
        """What it says to each question, in their order.

        Dialogs are asked side by side, the questions of one after another, each with what was said before it: the
        questions as they were asked here, and the system's own answers (`tasks.cases.dialogs.spoken`).

        Args:
            questions: those of a dialog in the order of its turns.
            dialogs: of each question, None where it stands alone; none for a system that takes no history.
        """
        places: dict[Hashable, list[int]] = {}
        for row, dialog in enumerate(dialogs if self.takes_history and dialogs else [None] * len(questions)):
            places.setdefault(("alone", row) if dialog is None else ("dialog", dialog), []).append(row)
        told: dict[int, Answered] = {}

        async def in_turn(rows: Sequence[int]) -> None:
            history: tuple[Message, ...] = ()
            for row in rows:
                said = await self._soon(questions[row], history)
                told[row] = replace(said, history=history)
                history += spoken(questions[row], said.text, said.path)

        await asyncio.gather(*map(in_turn, places.values()))
        return [told[row] for row in range(len(questions))]

    async def _soon(self, question: str, history: Sequence[Message]) -> Answered:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._one, question, history)

    def _one(self, question: str, history: Sequence[Message]) -> Answered:
        start = time.perf_counter()

        def answered() -> Answered:
            found = self._ask(question, [dict(message) for message in history])  # its own: it may change them
            return checked(found, (time.perf_counter() - start) * 1_000)

        said, why = attempt(answered, self._secrets)
        return Answered(error=why) if said is None else said


def system(name: str, service: SystemService) -> System:
    """The system of that name; a callable is asked one question at a time, with the history if it takes one.

    Args:
        name: an http(s) URL, or `module:function`.
        service: how to ask the URL.

    Raises:
        InputError: no such callable, or settings of the service that cannot work.
    """
    if name.startswith(("http://", "https://")):
        return _service(name, service)
    if ":" not in name:
        raise InputError(f"no system under test {name!r}; expected 'local', an http(s) URL or module:function")
    function = cast(Callable[..., Answer], from_callable(name, "YARUS_SUT"))
    if takes_history(function):
        return System(function, 1, takes_history=True)
    return System(lambda question, history: function(question), 1)


def takes_history(function: Callable[..., Any]) -> bool:
    """Whether a function has a second place that must be filled, or that is named `history`."""
    try:
        places = [one for one in inspect.signature(function).parameters.values() if one.kind in BY_PLACE]
    except (TypeError, ValueError):  # what is built in need not tell
        return False
    return any(one.default is one.empty or one.name == "history" for one in places[1:2])


def checked(found: Answer, elapsed_ms: float) -> Answered:
    """What the system said, if it is of the right shape.

    Args:
        found: `answer` (text; may be missing where `path` is `hidden`), and where the system tells them `urls`,
            `contexts` (lists of texts), `path` (text), `latency_ms`.
        elapsed_ms: measured here; the system's own figure comes first.

    Raises:
        ValueError: it is not of that shape, or too long; the message says what was found.
    """
    if not isinstance(found, Mapping):
        raise ValueError(f"expected {{'answer', 'urls', 'contexts'}}, got {type(found).__name__}")
    answer, path, own_ms = found.get("answer"), found.get("path"), found.get("latency_ms")
    if answer is None and path == HIDDEN:
        answer = ""
    if not isinstance(answer, str):
        raise ValueError(f"'answer' is {short(answer)}, not a text")
    if path is not None and not isinstance(path, str):
        raise ValueError(f"'path' is {short(path)}, not a text")
    if own_ms is not None and not _is_time(own_ms):
        raise ValueError(f"'latency_ms' is {short(own_ms)}, not a number of milliseconds from 0 to a day")
    latency_ms = elapsed_ms if own_ms is None else float(own_ms)
    urls, contexts = _texts(found, "urls"), _texts(found, "contexts")
    require_storable((answer, path or "", *(urls or ()), *(contexts or ())), "the answer with its urls and contexts")
    return Answered(answer, urls, contexts, path, latency_ms)


def _is_time(value: Any) -> bool:
    """Whether it can be how long an answer took: more than a day is another unit, or no measurement."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LONGEST_MS


def _texts(found: Answer, name: str) -> list[str] | None:
    value = found.get(name)
    if value is not None and not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
        raise ValueError(f"{name!r} is {short(value)}, not a list of texts")
    return value


def _service(url: str, service: SystemService) -> System:
    """Asks a service by POST; what to send and where the answer stands is set by `YARUS_SUT_SERVICE__…`."""
    place = "YARUS_SUT_SERVICE"
    try:
        # `path` and `latency_ms` are read under these names where the settings have no path of their own for them.
        paths = {name: jmespath.compile(getattr(service, name, name)) for name in PARTS}
    except jmespath.exceptions.JMESPathError as error:
        raise InputError(f"{place}: {error}") from None
    remote = Service(url, service, place)

    def ask(question: str, history: Sequence[Message]) -> Answer:
        reply = redact_within(remote.reply({"$question": question, "$history": history}), remote.echoes)
        return {name: path.search(reply) for name, path in paths.items()}

    return System(ask, service.concurrency, remote.secrets, takes_history=remote.asks_for("$history"))

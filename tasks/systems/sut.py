"""Systems under test that are not ours: services that answer over HTTP, or a Python callable."""

import asyncio
import time
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from yarus.db.errors import InputError
from yarus.tasks.cases.dialogs import spoken
from yarus.tasks.cases.outcomes import HIDDEN
from yarus.tasks.config.services import OPENAI, is_address, is_function
from yarus.tasks.config.settings import Settings
from yarus.tasks.models.progress import tick
from yarus.tasks.models.protocol import count
from yarus.tasks.systems.external import attempt, require_storable, short
from yarus.tasks.systems.service import HttpSystem, over_http, over_openai
from yarus.tasks.systems.user_code import UserCodes

Answer = Mapping[str, Any]
Message = Mapping[str, str]
"""A turn of a dialog as OpenAI's protocol has it: `role` (`user`, `assistant`) and `content`."""
Ask = Callable[[str, Sequence[Message]], Answer]
"""A question, and what was said in its dialog before it; systems that take no history are given none."""
LONGEST_MS = 24 * 3_600_000


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
    tokens_in: int | None = None
    """As the system counts them; None where it does not say."""
    tokens_out: int | None = None
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
        questions as they were asked here, and the system's own answers (`yarus.tasks.cases.dialogs.spoken`).

        Args:
            questions: those of a dialog in the order of its turns.
            dialogs: of each question, None where it stands alone; none for a system that takes no history.
        """
        places: dict[Hashable, list[int]] = {}
        for row, dialog in enumerate(dialogs if self.takes_history and dialogs else [None] * len(questions)):
            places.setdefault(("alone", row) if dialog is None else ("dialog", dialog), []).append(row)
        told: dict[int, Answered] = {}
        loop = asyncio.get_running_loop()

        async def in_turn(rows: Sequence[int]) -> None:
            history: tuple[Message, ...] = ()
            for row in rows:
                said = await loop.run_in_executor(self._threads, self._one, questions[row], history)
                told[row] = replace(said, history=history)
                tick("answer", said.error)
                history += spoken(questions[row], said.text, said.path)

        await asyncio.gather(*map(in_turn, places.values()))
        return [told[row] for row in range(len(questions))]

    def _one(self, question: str, history: Sequence[Message]) -> Answered:
        start = time.perf_counter()

        def answered() -> Answered:
            found = self._ask(question, [dict(message) for message in history])  # its own: it may change them
            return checked(found, (time.perf_counter() - start) * 1_000)

        said, why = attempt(answered, self._secrets)
        return Answered(error=why) if said is None else said


def check_system(name: str, settings: Settings) -> None:
    """Finds what of a system's name and settings cannot work; a function is not looked for yet.

    Raises:
        InputError: as `system`.
    """
    if not is_function(name):
        system(name, settings, UserCodes())


def system(name: str, settings: Settings, codes: UserCodes) -> System:
    """The system of that name.

    Args:
        name: an http(s) URL, one after `openai:`, or `module:function`.
        settings: how to ask it.
        codes: by which a function is opened, and closed.

    Raises:
        InputError: no such callable, or settings of the service that cannot work.
    """
    if name.startswith(OPENAI):
        return _remote(over_openai(name, settings))
    if is_address(name):
        return _remote(over_http(name, settings))
    if ":" not in name:
        raise InputError(
            "no system under test {name!r}; expected 'local', an http(s) URL, openai:URL or module:function", name=name
        )
    return _callable(name, codes)


def _callable(name: str, codes: UserCodes) -> System:
    """Asks a function of the user's in its own processes; the time is that of the function alone."""
    code = codes.get(name, "YARUS_SUT", "answer")

    def ask(question: str, history: Sequence[Message]) -> Answer:
        said, elapsed_ms = code.call(question, list(history)) if code.takes_history else code.call(question)
        return {"latency_ms": elapsed_ms, **{name: value for name, value in said.items() if value is not None}}

    return System(ask, code.concurrency, takes_history=code.takes_history)


def _remote(found: HttpSystem) -> System:
    return System(found, found.concurrency, found.secrets, takes_history=found.takes_history)


def checked(found: Answer, elapsed_ms: float) -> Answered:
    """What the system said, if it is of the right shape.

    Args:
        found: `answer` (text; may be missing where `path` is `hidden`), and where the system tells them `urls`,
            `contexts` (lists of texts), `path` (text), `latency_ms`, `first_token_ms`, `tokens_in`, `tokens_out`.
        elapsed_ms: measured here; the system's own figure comes first.

    Raises:
        ValueError: it is not of that shape, or too long; the message says what was found.
    """
    if not isinstance(found, Mapping):
        raise ValueError(f"expected {{'answer', 'urls', 'contexts'}}, got {type(found).__name__}")
    answer, path = found.get("answer"), found.get("path")
    if answer is None and path == HIDDEN:
        answer = ""
    if not isinstance(answer, str):
        raise ValueError(f"'answer' is {short(answer)}, not a text")
    if path is not None and not isinstance(path, str):
        raise ValueError(f"'path' is {short(path)}, not a text")
    own_ms = _time(found, "latency_ms")
    urls, contexts = _texts(found, "urls"), _texts(found, "contexts")
    require_storable((answer, path or "", *(urls or ()), *(contexts or ())), "the answer with its urls and contexts")
    return Answered(
        answer,
        urls,
        contexts,
        path,
        latency_ms=elapsed_ms if own_ms is None else own_ms,
        first_token_ms=_time(found, "first_token_ms"),
        tokens_in=count(found.get("tokens_in")),
        tokens_out=count(found.get("tokens_out")),
    )


def _time(found: Answer, name: str) -> float | None:
    """How long something took: more than a day is another unit, or no measurement."""
    value = found.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= LONGEST_MS:
        raise ValueError(f"{name!r} is {short(value)}, not a number of milliseconds from 0 to a day")
    return float(value)


def _texts(found: Answer, name: str) -> list[str] | None:
    value = found.get(name)
    if value is not None and not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
        raise ValueError(f"{name!r} is {short(value)}, not a list of texts")
    return value

"""Foreign systems under test: services that answer over HTTP, or a Python callable."""

import asyncio
import time
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from yarus.db.errors import InputError
from yarus.tasks.cases.dialogs import history_messages
from yarus.tasks.cases.outcomes import HIDDEN_PATH
from yarus.tasks.config.services import OPENAI_PREFIX, is_function_path, is_http_url
from yarus.tasks.config.settings import Settings
from yarus.tasks.models.progress import count_step
from yarus.tasks.models.protocol import parse_count
from yarus.tasks.systems.external import call_safely, require_storable, shorten_value
from yarus.tasks.systems.service import HttpSystem, open_http_system, open_openai_system
from yarus.tasks.systems.user_code import UserFunctions

RawAnswer = Mapping[str, Any]
Message = Mapping[str, str]
"""A turn of a dialog as OpenAI's protocol has it: `role` (`user`, `assistant`) and `content`."""
AskFunction = Callable[[str, Sequence[Message]], RawAnswer]
"""Function of a question and the earlier turns of its dialog; systems without history get no turns."""
LONGEST_MS = 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class SystemAnswer:
    """Answer of a system to one question; a failure is not an answer."""

    text: str | None = None
    urls: list[str] | None = None
    """Pages that it used, best first; None if it does not return them."""
    contexts: list[str] | None = None
    path: str | None = None
    """Path of the answer in the system's words, such as `cache`; Yarus knows `hidden`."""
    latency_ms: float | None = None
    first_token_ms: float | None = None
    """Time until the first part of a streamed answer; None if it was not streamed."""
    tokens_in: int | None = None
    """Count of the system; None if it does not return one."""
    tokens_out: int | None = None
    error: str | None = None
    history: tuple[Message, ...] = ()
    """Earlier turns of the dialog that the system received."""


class System:
    """System under test, called by as many threads as it takes questions at once."""

    def __init__(
        self, ask: AskFunction, concurrency: int, secrets: Sequence[str] = (), *, takes_history: bool = False
    ) -> None:
        self._ask, self._secrets, self.takes_history = ask, secrets, takes_history
        self._threads = ThreadPoolExecutor(concurrency, thread_name_prefix="sut")
        weakref.finalize(self, self._threads.shutdown, wait=False)

    async def answers(self, questions: Sequence[str], dialogs: Sequence[Hashable] = ()) -> list[SystemAnswer]:
        """Return the answer to each question, in their order.

        Dialogs run in parallel; the questions of one dialog run one after another. Each gets the earlier turns: the
        original questions and the system's own answers (`yarus.tasks.cases.dialogs.history_messages`).

        Args:
            questions: those of a dialog in the order of its turns.
            dialogs: dialog of each question, None for a question without one; empty for a system without history.
        """
        rows_by_dialog: dict[Hashable, list[int]] = {}
        for row, dialog in enumerate(dialogs if self.takes_history and dialogs else [None] * len(questions)):
            rows_by_dialog.setdefault(("alone", row) if dialog is None else ("dialog", dialog), []).append(row)
        answers: dict[int, SystemAnswer] = {}
        loop = asyncio.get_running_loop()

        async def answer_in_order(rows: Sequence[int]) -> None:
            history: tuple[Message, ...] = ()
            for row in rows:
                answer = await loop.run_in_executor(self._threads, self._answer_question, questions[row], history)
                answers[row] = replace(answer, history=history)
                count_step("answer", answer.error)
                history += history_messages(questions[row], answer.text, answer.path)

        await asyncio.gather(*map(answer_in_order, rows_by_dialog.values()))
        return [answers[row] for row in range(len(questions))]

    def _answer_question(self, question: str, history: Sequence[Message]) -> SystemAnswer:
        started_at = time.perf_counter()

        def call_system() -> SystemAnswer:
            # Copies, because the system may change them.
            raw_answer = self._ask(question, [dict(message) for message in history])
            return validate_answer(raw_answer, (time.perf_counter() - started_at) * 1_000)

        answer, reason = call_safely(call_system, self._secrets)
        return SystemAnswer(error=reason) if answer is None else answer


def check_system(name: str, settings: Settings) -> None:
    """Check the name and the settings of a system; a function is not imported yet.

    Raises:
        InputError: as for `create_system`.
    """
    if not is_function_path(name):
        create_system(name, settings, UserFunctions())


def create_system(name: str, settings: Settings, codes: UserFunctions) -> System:
    """Return the system of that name.

    Args:
        name: an http(s) URL, one after `openai:`, or `module:function`.
        settings: of its requests.
        codes: opens and closes functions.

    Raises:
        InputError: the callable does not exist, or settings of the service cannot work.
    """
    if name.startswith(OPENAI_PREFIX):
        return _build_system(open_openai_system(name, settings))
    if is_http_url(name):
        return _build_system(open_http_system(name, settings))
    if ":" not in name:
        raise InputError(
            "no system under test {name!r}; expected 'local', an http(s) URL, openai:URL or module:function", name=name
        )
    return _open_function(name, codes)


def _open_function(name: str, codes: UserFunctions) -> System:
    """Return a system that calls a user's function in its own processes; the time is that of the function alone."""
    code = codes.get(name, "YARUS_SUT", "answer")

    def ask(question: str, history: Sequence[Message]) -> RawAnswer:
        answer, elapsed_ms = code.call(question, list(history)) if code.takes_history else code.call(question)
        return {"latency_ms": elapsed_ms, **{name: value for name, value in answer.items() if value is not None}}

    return System(ask, code.concurrency, takes_history=code.takes_history)


def _build_system(http_system: HttpSystem) -> System:
    return System(http_system, http_system.concurrency, http_system.secrets, takes_history=http_system.takes_history)


def validate_answer(raw_answer: RawAnswer, elapsed_ms: float) -> SystemAnswer:
    """Return the answer of a system, if it has the right form.

    Args:
        raw_answer: `answer` (text; optional if `path` is `hidden`), and optionally `urls`, `contexts` (lists of texts),
            `path` (text), `latency_ms`, `first_token_ms`, `tokens_in`, `tokens_out`.
        elapsed_ms: measured here; the system's own `latency_ms` has priority.

    Raises:
        ValueError: it has another form, or is too long.
    """
    if not isinstance(raw_answer, Mapping):
        raise ValueError(f"expected {{'answer', 'urls', 'contexts'}}, got {type(raw_answer).__name__}")
    answer, path = raw_answer.get("answer"), raw_answer.get("path")
    if answer is None and path == HIDDEN_PATH:
        answer = ""
    if not isinstance(answer, str):
        raise ValueError(f"'answer' is {shorten_value(answer)}, not a text")
    if path is not None and not isinstance(path, str):
        raise ValueError(f"'path' is {shorten_value(path)}, not a text")
    own_ms = _get_duration_ms(raw_answer, "latency_ms")
    urls, contexts = _get_texts(raw_answer, "urls"), _get_texts(raw_answer, "contexts")
    require_storable((answer, path or "", *(urls or ()), *(contexts or ())), "the answer with its urls and contexts")
    return SystemAnswer(
        answer,
        urls,
        contexts,
        path,
        latency_ms=elapsed_ms if own_ms is None else own_ms,
        first_token_ms=_get_duration_ms(raw_answer, "first_token_ms"),
        tokens_in=parse_count(raw_answer.get("tokens_in")),
        tokens_out=parse_count(raw_answer.get("tokens_out")),
    )


def _get_duration_ms(raw_answer: RawAnswer, name: str) -> float | None:
    """Return a duration in milliseconds; more than a day is an error, because it is another unit."""
    value = raw_answer.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= LONGEST_MS:
        raise ValueError(f"{name!r} is {shorten_value(value)}, not a number of milliseconds from 0 to a day")
    return float(value)


def _get_texts(raw_answer: RawAnswer, name: str) -> list[str] | None:
    value = raw_answer.get(name)
    if value is not None and not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
        raise ValueError(f"{name!r} is {shorten_value(value)}, not a list of texts")
    return value

"""Systems under test that are not ours: a service that answers over HTTP, or a Python callable."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import httpx
import jmespath

from db.errors import InputError
from tasks.retrievers.outside import filled, from_callable
from tasks.settings import SystemService

Answer = Mapping[str, Any]
Ask = Callable[[str], Answer]


@dataclass(frozen=True, slots=True)
class Answered:
    """What a system said to one question; a failure is not an answer."""

    text: str | None
    urls: list[str]
    contexts: list[str]
    latency_ms: float
    error: str | None = None


def asker(name: str, service: SystemService) -> tuple[Ask, int]:
    """The function that asks the system, and how many questions it takes at once.

    Raises:
        InputError: no such callable, or settings of the service that cannot work.
    """
    if name.startswith(("http://", "https://")):
        return _service(name, service), service.concurrency
    return cast(Ask, from_callable(name)), 1


def checked(found: Answer) -> tuple[str, list[str], list[str]]:
    """Answer, URLs and contexts, if they are of the right shape.

    Raises:
        ValueError: they are not; the message says what was found.
    """
    if not isinstance(found, Mapping):
        raise ValueError(f"expected {{'answer', 'urls', 'contexts'}}, got {type(found).__name__}")
    answer = found.get("answer")
    if not isinstance(answer, str):
        raise ValueError(f"'answer' is {answer!r:.80}, not a text")
    lists = []
    for name in ("urls", "contexts"):
        value = found.get(name) or []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ValueError(f"{name!r} is {value!r:.80}, not a list of texts")
        lists.append(value)
    return answer, lists[0], lists[1]


def _service(url: str, service: SystemService) -> Ask:
    try:
        template = json.loads(service.request)
        paths = {name: jmespath.compile(getattr(service, name)) for name in ("answer", "urls", "contexts")}
    except (json.JSONDecodeError, jmespath.exceptions.ParseError) as error:
        raise InputError(f"YARUS_SUT_SERVICE: {error}") from None
    headers = {name: value.get_secret_value() for name, value in service.headers.items()}
    client = httpx.Client(timeout=service.timeout_s, headers=headers)

    def ask(question: str) -> Answer:
        response = client.post(url, json=filled(template, {"$question": question}))
        response.raise_for_status()
        reply = response.json()
        return {name: path.search(reply) for name, path in paths.items()}

    return ask

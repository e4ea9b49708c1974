"""The function that the user has named: found in the user's folder, and checked before it is called."""

from __future__ import annotations

import importlib
import inspect
import sys
from typing import Any, Callable, Mapping, NamedTuple  # noqa: UP035 - Python 3.7 has them here

ARGUMENTS = {"answer": 1, "ranking": 2, "scores": 2}
"""What the function gives -> how many arguments it is called with."""


class Unfit(Exception):
    """What was named cannot be called as it would be."""


class Function(NamedTuple):
    """What is called, and how."""

    call: Callable[..., Any]
    is_async: bool
    takes_history: bool


def found(task: Mapping[str, Any]) -> Function:
    """The function that is named `module:function`, or an object that is asked by `invoke` or `ainvoke`, or its maker.

    Raises:
        Unfit: it is none, or does not take what it will be given.
        BaseException: whatever the module raises.
    """
    sys.path.insert(0, task["folder"])
    module, _, attribute = task["name"].partition(":")
    sys.argv = [module]
    owner: Any = None
    target: Any = importlib.import_module(module)
    for part in attribute.split("."):
        owner, target = target, getattr(target, part)
    if inspect.isclass(owner) and inspect.isfunction(inspect.getattr_static(owner, attribute.split(".")[-1], None)):
        raise Unfit("is a method without its object; name an object, as in bot:helper.answer, or the class alone")
    makes = inspect.isroutine(target) or inspect.isclass(target)
    if makes and takes(target, 0) and not takes(target, ARGUMENTS[task["gives"]]):
        target = target()  # a class, or a function that makes what is asked
        if asked_by(target) is None and not callable(target):
            raise Unfit(
                f"takes no arguments and makes a {type(target).__name__}, which can neither be called nor invoked"
            )
    if inspect.isclass(target):
        raise Unfit(f"is a class that takes {signature(target)}; name an object, or a function that makes one")
    call: Any = asked_by(target) or target
    if not callable(call):
        raise Unfit(f"is no function but {type(target).__name__}")
    is_answer = task["gives"] == "answer"
    history = is_answer and takes_history(call)
    if not takes(call, ARGUMENTS[task["gives"]] + history):
        raise Unfit(f"takes {signature(call)}; expected {task['expected']}")
    if is_answer and (inspect.isgeneratorfunction(call) or inspect.isasyncgenfunction(call)):
        raise Unfit("is a generator; return the whole answer")
    of_class = getattr(call, "__call__", None)  # noqa: B004 - of an object that is called like a function
    return Function(call, inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(of_class), history)


def asked_by(target: Any) -> Any:
    """The method that asks an object which is no function, as LangChain's are; None where it has none."""
    if inspect.isroutine(target) or inspect.isclass(target):
        return None
    return getattr(target, "ainvoke", None) or getattr(target, "invoke", None)


def takes(call: Callable[..., Any], n: int) -> bool:
    """Whether it can be called with so many arguments; what does not tell is let be."""
    try:
        inspect.signature(call).bind(*range(n))
    except TypeError:
        return False
    except ValueError:
        return n > 0
    return True


def takes_history(call: Callable[..., Any]) -> bool:
    """Whether its second argument is the history of the dialog: it must be given, or is called so."""
    try:
        parameters = list(inspect.signature(call).parameters.values())
    except (TypeError, ValueError):
        return False
    places = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    return len(places) > 1 and (places[1].name == "history" or places[1].default is places[1].empty)


def signature(call: Callable[..., Any]) -> str:
    """Its arguments as they are written."""
    try:
        return str(inspect.signature(call))
    except (TypeError, ValueError):
        return "other arguments"

"""The function that the user has named: imported from the user's folder, and checked before its first call."""

from __future__ import annotations

import importlib
import inspect
import sys
from typing import Any, Callable, Mapping, NamedTuple  # noqa: UP035 - Python 3.7 has them here

ARGUMENTS = {"answer": 1, "ranking": 2, "scores": 2}
"""Kind of result -> number of arguments of a call."""


class InvalidFunction(Exception):
    """Error of a named object that cannot be called as required."""


class Function(NamedTuple):
    """Function and the form of its calls."""

    call: Callable[..., Any]
    is_async: bool
    takes_history: bool


def load_function(task: Mapping[str, Any]) -> Function:
    """Return the function of the name `module:function`, or the method of an object that it names or makes.

    The name may be a function, an object with `invoke` or `ainvoke`, or a factory of either.

    Raises:
        InvalidFunction: the object cannot be called, or takes other arguments.
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
        raise InvalidFunction(
            "is a method without its object; name an object, as in bot:helper.answer, or the class alone"
        )
    may_be_factory = inspect.isroutine(target) or inspect.isclass(target)
    if may_be_factory and accepts_count(target, 0) and not accepts_count(target, ARGUMENTS[task["gives"]]):
        target = target()  # a class, or a function that makes the object
        if find_invoke_method(target) is None and not callable(target):
            raise InvalidFunction(
                f"takes no arguments and makes a {type(target).__name__}, which can neither be called nor invoked"
            )
    if inspect.isclass(target):
        raise InvalidFunction(
            f"is a class that takes {format_signature(target)}; name an object, or a function that makes one"
        )
    call: Any = find_invoke_method(target) or target
    if not callable(call):
        raise InvalidFunction(f"is no function but {type(target).__name__}")
    is_answer = task["gives"] == "answer"
    has_history = is_answer and accepts_history(call)
    if not accepts_count(call, ARGUMENTS[task["gives"]] + has_history):
        raise InvalidFunction(f"takes {format_signature(call)}; expected {task['expected']}")
    if is_answer and (inspect.isgeneratorfunction(call) or inspect.isasyncgenfunction(call)):
        raise InvalidFunction("is a generator; return the whole answer")
    class_call = getattr(call, "__call__", None)  # noqa: B004 - an object may be called like a function
    return Function(call, inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(class_call), has_history)


def find_invoke_method(target: Any) -> Any:
    """Return the method that calls an object such as LangChain's; None if it has none."""
    if inspect.isroutine(target) or inspect.isclass(target):
        return None
    return getattr(target, "ainvoke", None) or getattr(target, "invoke", None)


def accepts_count(call: Callable[..., Any], n: int) -> bool:
    """Return whether a callable takes `n` positional arguments; if its signature is unknown, any but none."""
    try:
        inspect.signature(call).bind(*range(n))
    except TypeError:
        return False
    except ValueError:
        return n > 0
    return True


def accepts_history(call: Callable[..., Any]) -> bool:
    """Return whether its second argument is the history of the dialog: it is required, or named so."""
    try:
        parameters = list(inspect.signature(call).parameters.values())
    except (TypeError, ValueError):
        return False
    positional = [
        parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    return len(positional) > 1 and (positional[1].name == "history" or positional[1].default is positional[1].empty)


def format_signature(call: Callable[..., Any]) -> str:
    """Return its arguments as they are written."""
    try:
        return str(inspect.signature(call))
    except (TypeError, ValueError):
        return "other arguments"

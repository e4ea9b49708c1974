"""Messages that keep their template and values."""

import pickle

import cloudpickle
import pytest

from yarus.db.errors import (
    DatabaseUnavailable,
    InputError,
    ModelUnavailable,
    ResultsUnavailable,
    SourceChanged,
    unknown,
)
from yarus.db.messages import Words, join_messages
from yarus.deployments.prefect.server_process import ServerUnavailable

KINDS = (InputError, DatabaseUnavailable, ModelUnavailable, ResultsUnavailable, SourceChanged, ServerUnavailable)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("library", [pickle, cloudpickle])
def test_pickled_error_keeps_template_and_values(kind: type[Exception], library: object) -> None:
    error = kind("no source {name!r}: {why}", name="a{b}", why=InputError("{n:,} rows", n=1200))
    unpickled = library.loads(library.dumps(error))
    assert type(unpickled) is kind
    assert str(unpickled) == str(error) == "no source 'a{b}': 1,200 rows"
    message = unpickled.args[0]
    assert (message.template, message.values["name"]) == ("no source {name!r}: {why}", "a{b}")
    assert message.values["why"].template == "{n:,} rows"


def test_words_without_values_keep_braces() -> None:
    assert str(InputError('expected {"nugget": text}')) == 'expected {"nugget": text}'
    assert str(InputError(Words("{a} {{b}}", a="{x}"))) == "{x} {b}"


def test_foreign_error_value_becomes_its_message() -> None:
    class Local(ValueError):
        pass  # pickle cannot find it

    error = InputError("line 3: {error}", error=Local("bad"))
    unpickled = pickle.loads(pickle.dumps(error))  # noqa: S301 - pickled by this test
    assert str(unpickled) == "line 3: bad"


def test_join_messages_keeps_the_parts() -> None:
    parts = join_messages((Words("a {x}", x=1), "b"), " and ")
    assert parts == "a 1 and b"
    assert parts.values["part0"].template == "a {x}"


def test_unknown_keeps_template_and_hint() -> None:
    message = unknown(Words("column of {kind}:", kind="chunk"), "txt", ["text", "id"], "Map it").args[0]
    assert message == "no column of chunk: 'txt'; did you mean 'text'? Map it"
    first, hint = message.values.values()
    assert (first.values["what"].template, hint.template) == ("no column of {kind}:", "Map it")

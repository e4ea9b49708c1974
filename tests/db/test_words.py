"""Messages that are kept apart from the values in them."""

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
from yarus.db.words import Words, joined
from yarus.deployments.prefect.server_process import ServerUnavailable

KINDS = (InputError, DatabaseUnavailable, ModelUnavailable, ResultsUnavailable, SourceChanged, ServerUnavailable)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("library", [pickle, cloudpickle])
def test_an_error_crosses_a_process_with_its_template_and_values(kind: type[Exception], library: object) -> None:
    error = kind("no source {name!r}: {why}", name="a{b}", why=InputError("{n:,} rows", n=1200))
    back = library.loads(library.dumps(error))
    assert type(back) is kind
    assert str(back) == str(error) == "no source 'a{b}': 1,200 rows"
    said = back.args[0]
    assert (said.template, said.values["name"]) == ("no source {name!r}: {why}", "a{b}")
    assert said.values["why"].template == "{n:,} rows"


def test_braces_stay_as_they_are_where_there_are_no_values() -> None:
    assert str(InputError('expected {"nugget": text}')) == 'expected {"nugget": text}'
    assert str(InputError(Words("{a} {{b}}", a="{x}"))) == "{x} {b}"


def test_an_error_of_somebody_elses_is_kept_as_its_words() -> None:
    class Local(ValueError):
        pass  # pickle cannot find it

    error = InputError("line 3: {error}", error=Local("bad"))
    back = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert str(back) == "line 3: bad"


def test_words_that_are_joined_keep_their_parts() -> None:
    parts = joined((Words("a {x}", x=1), "b"), " and ")
    assert parts == "a 1 and b"
    assert parts.values["part0"].template == "a {x}"


def test_an_unknown_name_keeps_what_it_is_no_name_of() -> None:
    said = unknown(Words("column of {kind}:", kind="chunk"), "txt", ["text", "id"], "Map it").args[0]
    assert said == "no column of chunk: 'txt'; did you mean 'text'? Map it"
    first, hint = said.values.values()
    assert (first.values["what"].template, hint.template) == ("no column of {kind}:", "Map it")

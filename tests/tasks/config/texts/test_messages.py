"""Every message, help text, form and line of the log is told in Russian too, with the same values."""

from functools import cache

import pytest

from tests.support.texts import messages
from tests.support.texts.messages import Said, placeholders, wordless
from yarus.db.errors import InputError, unknown
from yarus.db.words import Words, joined
from yarus.metrics.table import metric
from yarus.tasks.config.texts.messages import catalogue, told

SOURCES = {
    "messages": messages.in_code,
    "help": messages.of_help,
    "parameters": messages.of_parameters,
    "forms": messages.of_forms,
    "metrics": messages.of_metrics,
}


@cache
def said_by(source: str) -> list[Said]:
    """All that a source says; reading the code takes seconds."""
    return [*SOURCES[source]()]


@pytest.mark.parametrize("source", SOURCES)
def test_everything_that_is_said_is_said_in_russian(source: str) -> None:
    known = catalogue("ru")
    missing = [f"{place}: {text!r}" for text, place in said_by(source) if text not in known and not wordless(text)]
    assert not missing, "no Russian in tasks/config/texts/messages.ru.toml:\n" + "\n".join(missing)


@pytest.mark.parametrize("source", SOURCES)
def test_the_values_are_the_same(source: str) -> None:
    known = catalogue("ru")
    pairs = {text: known[text] for text, _ in said_by(source) if text in known}
    assert pairs
    other = {text: russian for text, russian in pairs.items() if placeholders(text) != placeholders(russian)}
    assert not other


def test_no_translation_is_left_of_what_is_said_no_more() -> None:
    said = {text for source in SOURCES for text, _ in said_by(source)}
    ours = messages.section("messages", "help", "parameters", "metrics")
    assert not sorted(ours - said)


def test_no_message_is_put_together_of_texts() -> None:
    assert not [*messages.put_together()], "a message has a template and values: InputError('no {name!r}', name=name)"


def test_a_message_is_told_with_its_values_in_either_language() -> None:
    error = InputError("source {source!r} has no {what}; load some: yarus load … --into {source}", source="a{b}",
                       what=Words("chunks"))  # fmt: skip
    assert told(error, "en") == "source 'a{b}' has no chunks; load some: yarus load … --into a{b}"
    assert told(error, "ru") == "в источнике 'a{b}' нет нужного: фрагменты; загрузите: yarus load … --into a{b}"


def test_an_error_within_an_error_is_told_too() -> None:
    inner = unknown("tier", "tier11", ["tier1"])
    error = InputError("gate file {path}: [baseline]: {error}", path="g.toml", error=inner)
    assert told(error, "ru") == "файл проверки g.toml: [baseline]: нет уровня 'tier11'; возможно, это 'tier1'?"


def test_a_library_that_knows_no_languages_is_recognised() -> None:
    with pytest.raises(ValueError, match="no metric") as error:
        metric("NDCG")
    assert told(error.value, "ru") == "нет метрики 'NDCG'; возможно, это 'ndcg@10'?"


def test_what_was_stored_as_a_text_is_recognised() -> None:
    stored = str(InputError("evaluation {id} is {state}: it cannot be a baseline", id="t-1", state="failed"))
    assert told(stored, "en") == stored
    assert told(stored, "ru") == "прогон t-1: сбой, базовым он быть не может"


def test_words_of_others_stay_as_they_are() -> None:
    for text in ("boom: {no} such thing", "", "a" * 5_000, "source"):
        assert told(ValueError(text), "en") == text
    assert told("boom: {no} such thing", "ru") == "boom: {no} such thing"


def test_joined_words_and_what_the_system_says() -> None:
    parts = joined((Words("chunks"), Words("questions")), " + ")
    error = InputError("{path}: {reason}; nothing was loaded", path=parts, reason="Permission denied")
    assert told(error, "ru") == "фрагменты + вопросы: нет прав; ничего не загружено"

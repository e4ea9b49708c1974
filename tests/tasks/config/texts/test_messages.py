"""Every message, help text, form and log line has a Russian translation with the same values."""

from functools import cache

import pytest

from tests.support.texts import messages
from tests.support.texts.messages import MessageText, has_no_words, list_placeholders
from yarus.db.errors import InputError, unknown
from yarus.db.messages import Words, join_messages
from yarus.metrics.table import get_metric
from yarus.tasks.config.texts.messages import message_catalogue, told

SOURCES = {
    "messages": messages.find_code_messages,
    "help": messages.find_help_texts,
    "parameters": messages.find_parameter_texts,
    "forms": messages.find_form_texts,
    "metrics": messages.find_metric_texts,
}


@cache
def texts_of(source: str) -> list[MessageText]:
    """Return all texts of a source; cached, because reading the code takes seconds."""
    return [*SOURCES[source]()]


@pytest.mark.parametrize("source", SOURCES)
def test_every_text_has_a_russian_translation(source: str) -> None:
    translations = message_catalogue("ru")
    missing = [
        f"{place}: {text!r}" for text, place in texts_of(source) if text not in translations and not has_no_words(text)
    ]
    assert not missing, "no Russian in tasks/config/texts/messages.ru.toml:\n" + "\n".join(missing)


@pytest.mark.parametrize("source", SOURCES)
def test_translations_have_the_same_placeholders(source: str) -> None:
    translations = message_catalogue("ru")
    pairs = {text: translations[text] for text, _ in texts_of(source) if text in translations}
    assert pairs
    wrong = {text: russian for text, russian in pairs.items() if list_placeholders(text) != list_placeholders(russian)}
    assert not wrong


def test_every_translation_is_used() -> None:
    used = {text for source in SOURCES for text, _ in texts_of(source)}
    translated = messages.read_catalogue_texts("messages", "help", "parameters", "metrics")
    assert not sorted(translated - used)


def test_every_translated_call_exists() -> None:
    assert not sorted({*messages.TRANSLATED_CALLS} - messages.find_callees())


def test_no_message_is_concatenated() -> None:
    assert not [*messages.find_assembled_messages()], (
        "a message has a template and values: InputError('no {name!r}', name=name)"
    )


def test_told_fills_values_in_both_languages() -> None:
    error = InputError("source {source!r} has no {what}; load some: yarus load … --into {source}", source="a{b}",
                       what=Words("chunks"))  # fmt: skip
    assert told(error, "en") == "source 'a{b}' has no chunks; load some: yarus load … --into a{b}"
    assert told(error, "ru") == "в источнике 'a{b}' нет нужного: фрагменты; загрузите: yarus load … --into a{b}"


def test_told_translates_a_nested_error() -> None:
    inner = unknown("tier", "tier11", ["tier1"])
    error = InputError("gate file {path}: [baseline]: {error}", path="g.toml", error=inner)
    assert told(error, "ru") == "файл проверки g.toml: [baseline]: нет уровня 'tier11'; возможно, это 'tier1'?"


def test_told_recognises_library_errors() -> None:
    with pytest.raises(ValueError, match="no metric") as error:
        get_metric("NDCG")
    assert told(error.value, "ru") == "нет метрики 'NDCG'; возможно, это 'ndcg@10'?"


def test_told_recognises_stored_texts() -> None:
    stored = str(InputError("evaluation {id} is {state}: it cannot be a baseline", id="t-1", state="failed"))
    assert told(stored, "en") == stored
    assert told(stored, "ru") == "прогон t-1: сбой, базовым он быть не может"


def test_told_leaves_foreign_texts_unchanged() -> None:
    for text in ("boom: {no} such thing", "", "a" * 5_000, "source"):
        assert told(ValueError(text), "en") == text
    assert told("boom: {no} such thing", "ru") == "boom: {no} such thing"


def test_told_translates_joined_words_and_system_errors() -> None:
    parts = join_messages((Words("chunks"), Words("questions")), " + ")
    error = InputError("{path}: {reason}; nothing was loaded", path=parts, reason="Permission denied")
    assert told(error, "ru") == "фрагменты + вопросы: нет прав; ничего не загружено"

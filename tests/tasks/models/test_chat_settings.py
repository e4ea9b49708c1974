"""Settings of a role: an address as people write it, none at all, and what cannot work, told without secrets."""

import pytest

from tests.support.llm_clients import PROMPTS
from yarus.db.errors import InputError
from yarus.tasks.config.settings import Role, Settings
from yarus.tasks.models.calls import Call
from yarus.tasks.models.chat import chat
from yarus.tasks.models.endpoints import checked
from yarus.tasks.models.stand_ins import Offline
from yarus.tasks.models.verdicts import ask_for_yes_no


@pytest.mark.parametrize(
    ("role", "message"),
    [
        ({"base_url": "http://h/v1"}, "YARUS_JUDGE__MODEL"),
        ({"base_url": "api.example.org/v1", "model": "m"}, "YARUS_JUDGE__BASE_URL: expected an address"),
        ({"base_url": "ftp://h/v1", "model": "m"}, "YARUS_JUDGE__BASE_URL: expected an address"),
        ({"base_url": "http://user:geheim@h/v1", "model": "m"}, "without user name"),
        ({"base_url": "http://h:port/v1", "model": "m"}, "YARUS_JUDGE__BASE_URL"),
        ({"base_url": "http://h/v1", "model": "m", "api_key": "ключ geheim"}, "YARUS_JUDGE__API_KEY"),
        ({"base_url": "http://h/v1", "model": "m", "api_key": "geheim\nX-Header: 1"}, "YARUS_JUDGE__API_KEY"),
    ],
)
def test_settings_that_cannot_work_say_so_without_secrets(role, message):
    with pytest.raises(InputError, match=message) as raised:
        checked(Role(**role), "YARUS_JUDGE")
    assert "geheim" not in str(raised.value)


def test_an_address_is_taken_as_people_write_it():
    for base in ("http://h/v1", "http://h/v1/", " http://h/v1 ", "http://h/v1/chat/completions"):
        assert checked(Role(base_url=base, model="m"), "YARUS_JUDGE")[1] == "http://h/v1/chat/completions"


async def test_without_an_address_the_stand_in_serves():
    asked = {"question": "?", "context": "да", "answer": "собака"}
    async with chat("gate", Settings(_env_file=None)) as gate:
        assert isinstance(gate, Offline)
        found = await ask_for_yes_no(gate, Call(PROMPTS["gate"], asked))
    assert (found.status, found.value) == ("ok", 0.0)

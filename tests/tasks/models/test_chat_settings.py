"""Settings of a role: forms of an address, no address, and unusable settings, reported without secrets."""

import pytest

from tests.support.llm_clients import PROMPTS
from yarus.db.errors import InputError
from yarus.tasks.config.settings import ModelRole, Settings
from yarus.tasks.models.calls import Call
from yarus.tasks.models.chat import open_chat
from yarus.tasks.models.endpoints import check_role
from yarus.tasks.models.stand_ins import OfflineModel
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
def test_unusable_settings_are_rejected_without_secrets(role, message):
    with pytest.raises(InputError, match=message) as raised:
        check_role(ModelRole(**role), "YARUS_JUDGE")
    assert "geheim" not in str(raised.value)


def test_all_forms_of_an_address_are_accepted():
    for base in ("http://h/v1", "http://h/v1/", " http://h/v1 ", "http://h/v1/chat/completions"):
        assert check_role(ModelRole(base_url=base, model="m"), "YARUS_JUDGE")[1] == "http://h/v1/chat/completions"


async def test_stand_in_serves_without_an_address():
    texts = {"question": "?", "context": "да", "answer": "собака"}
    async with open_chat("gate", Settings(_env_file=None)) as gate:
        assert isinstance(gate, OfflineModel)
        decision = await ask_for_yes_no(gate, Call(PROMPTS["gate"], texts))
    assert (decision.status, decision.value) == ("ok", 0.0)

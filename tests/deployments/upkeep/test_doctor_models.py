"""The doctor on models: one question to each, with its server's format and its answer."""

from pathlib import Path

import pytest

from tests.support.evaluations import set_variables
from tests.support.llm_server import JSON_HEADER, FakeLLMServer, make_completion, make_response, make_score_completion
from yarus.deployments.upkeep.doctor import examine
from yarus.deployments.upkeep.doctor_sources import Check
from yarus.tasks.models.endpoints import get_setting_prefix


def models(monkeypatch: pytest.MonkeyPatch, url: str, *roles: str) -> dict[str, Check]:
    variables = {f"{get_setting_prefix(role)}__BASE_URL": url for role in roles}
    variables |= {f"{get_setting_prefix(role)}__MODEL": f"small-{url[-4:]}" for role in roles}
    set_variables(monkeypatch, {"YARUS_LANGUAGE": "en", **variables})
    return {check.check_name: check for check in examine() if check.check_name.startswith("model")}


@pytest.mark.usefixtures("at_own_home")
def test_doctor_asks_each_model_and_shows_its_answer(
    llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def script(number: int, request: dict[str, object]) -> bytes:
        if "temperature" in request:
            return make_response(
                400, '{"error": {"message": "`temperature` is deprecated for this model."}}', JSON_HEADER
            )
        return make_score_completion(1) if "response_format" in request else make_completion("Yes, building 7.")

    llm_server.script = script
    checks = models(monkeypatch, llm_server.url, "generator", "judge", "gate")
    assert {name: check.exit_code for name, check in checks.items()} == {
        "model generator": 0, "model judge": 0, "model gate": 0
    }  # fmt: skip
    assert "without temperature" in checks["model judge"].check_result
    assert '"score": 1' in checks["model judge"].check_result
    assert "it answers 'Yes, building 7.'" in checks["model generator"].check_result


@pytest.mark.usefixtures("at_own_home")
def test_doctor_reports_a_judge_that_answers_in_prose(
    llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm_server.script = lambda number, request: make_completion("The answer is good, 8 of 10.")
    check = models(monkeypatch, llm_server.url, "judge")["model judge"]
    assert (check.exit_code, "8 of 10" in check.check_result) == (3, True)
    assert "not one JSON object" in check.recommended_action


@pytest.mark.usefixtures("at_own_home")
def test_doctor_names_the_setting_of_a_refused_key(llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch) -> None:
    llm_server.script = lambda number, request: make_response(
        401, '{"error": {"message": "Incorrect API key"}}', JSON_HEADER
    )
    check = models(monkeypatch, llm_server.url, "judge")["model judge"]
    assert check.exit_code == 3
    assert "YARUS_JUDGE__API_KEY" in check.check_result


def test_doctor_asks_nothing_without_models(at_own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_variables(monkeypatch, {"YARUS_LANGUAGE": "en"})
    assert not [check for check in examine() if check.check_name.startswith("model ")]

"""A user's own prompt for one evaluation: it is used, recorded, and must not change meanwhile."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.evaluations import (
    answer_steadily,
    evaluate,
    get_requested_metric,
    load,
    make_passages,
    make_role_variables,
    question,
    read_rows,
    set_variables,
)
from tests.support.llm_server import FakeLLMServer, make_completion
from yarus.db.errors import InputError
from yarus.tasks.config.parameters import Tier2
from yarus.tasks.evaluation.identity import prompt_identity


@pytest.fixture
def served(at_home: Path, llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch) -> FakeLLMServer:
    def script(number: int, request: dict[str, Any]) -> Any:
        prompt_text = request["messages"][0]["content"]
        return (
            make_completion(prompt_text.split()[0])
            if get_requested_metric(request) == "generation"
            else answer_steadily(number, request)
        )

    llm_server.script = script
    set_variables(monkeypatch, make_role_variables(llm_server.url, "generator", "judge"))
    return llm_server


@pytest.mark.parametrize("tier", ["tier2", "tier3"])
def test_generator_prompt_is_used_and_recorded(served: FakeLLMServer, tmp_path: Path, tier: str) -> None:
    source = load(tmp_path, f"prompted_{tier}", [question(number) for number in range(3)], make_passages(3))
    prompt = tmp_path / "blunt.txt"
    prompt.write_text("Коротко: $question $context", encoding="utf-8")
    summary = evaluate(tier, source=source, generator_prompt=str(prompt))
    assert {row["answer"] for row in read_rows(summary)} == {"Коротко:"}
    identity = summary["system"]["generator_prompt"]
    assert identity.startswith("blunt.txt|")
    default_summary = evaluate(tier, source=source)
    assert "generator_prompt" not in default_summary["system"]
    assert default_summary["comparability_key"] == summary["comparability_key"]
    prompt.write_text("Кратко: $question $context", encoding="utf-8")
    assert prompt_identity(Tier2(generator_prompt=str(prompt)), "ru") != identity


def test_prompt_identity_of_settings_and_parameter(
    served: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("settings", "parameter"):
        (tmp_path / f"{name}.txt").write_text(f"{name}: $question", encoding="utf-8")
    monkeypatch.setenv("YARUS_GENERATOR__PROMPT", str(tmp_path / "settings.txt"))
    assert str(prompt_identity(Tier2(), "ru")).startswith("settings.txt|")
    parameters = Tier2(generator_prompt=str(tmp_path / "parameter.txt"))
    assert str(prompt_identity(parameters, "ru")).startswith("parameter.txt|")


def test_generator_prompt_needs_a_model(at_home: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="only a language model reads prompts"):
        evaluate("tier2", generator_prompt=str(tmp_path / "any.txt"))

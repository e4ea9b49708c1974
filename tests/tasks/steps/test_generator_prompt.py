"""A prompt of the user's own for one evaluation: it is used, recorded, and stays while the evaluation lasts."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.evaluations import evaluate, load, metric_of, passages, question, roles, rows_of, steady, use
from tests.support.llm_server import FakeLLMServer, says
from yarus.db.errors import InputError
from yarus.tasks.config.parameters import Tier2
from yarus.tasks.evaluation.identity import prompt_identity


@pytest.fixture
def served(at_home: Path, llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch) -> FakeLLMServer:
    def script(number: int, request: dict[str, Any]) -> Any:
        said = request["messages"][0]["content"]
        return says(said.split()[0]) if metric_of(request) == "generation" else steady(number, request)

    llm_server.script = script
    use(monkeypatch, roles(llm_server.url, "generator", "judge"))
    return llm_server


@pytest.mark.parametrize("tier", ["tier2", "tier3"])
def test_it_asks_the_generator_and_is_recorded(served: FakeLLMServer, tmp_path: Path, tier: str) -> None:
    source = load(tmp_path, f"prompted_{tier}", [question(number) for number in range(3)], passages(3))
    prompt = tmp_path / "blunt.txt"
    prompt.write_text("Коротко: $question $context", encoding="utf-8")
    found = evaluate(tier, source=source, generator_prompt=str(prompt))
    assert {row["answer"] for row in rows_of(found)} == {"Коротко:"}
    identity = found["system"]["generator_prompt"]
    assert identity.startswith("blunt.txt|")
    plain = evaluate(tier, source=source)
    assert "generator_prompt" not in plain["system"]
    assert plain["comparability_key"] == found["comparability_key"]
    prompt.write_text("Кратко: $question $context", encoding="utf-8")
    assert prompt_identity(Tier2(generator_prompt=str(prompt)), "ru") != identity


def test_that_of_the_settings_is_recorded_too(
    served: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("settings", "parameter"):
        (tmp_path / f"{name}.txt").write_text(f"{name}: $question", encoding="utf-8")
    monkeypatch.setenv("YARUS_GENERATOR__PROMPT", str(tmp_path / "settings.txt"))
    assert str(prompt_identity(Tier2(), "ru")).startswith("settings.txt|")
    given = Tier2(generator_prompt=str(tmp_path / "parameter.txt"))
    assert str(prompt_identity(given, "ru")).startswith("parameter.txt|")


def test_without_a_model_nothing_reads_it(at_home: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="only a language model reads prompts"):
        evaluate("tier2", generator_prompt=str(tmp_path / "any.txt"))

"""The first lines of `gate`: the verdict, the rules that decided it, and what to do."""

from typing import Any

import pytest

from yarus.flows.terminal.comparisons.gate import print_gate


def make_rule(metric: str, verdict: str, needs: int | None = None) -> Any:
    figures = dict.fromkeys(("stratum", "ci_low", "ci_high", "baseline", "difference", "p", "p_holm", "reason"))
    rule = {"metric": metric, "rule": "floor", "bound": 0.5, "verdict": verdict, "value": 0.4, "n_cases_needed": needs}
    return figures | rule | {"min_detectable_effect": None}


def make_gate(verdict: str, *rules: Any, **more: Any) -> Any:
    evaluation = {"evaluation_id": "tier1-b", "tier": "tier1", "source": "sample", "state": "completed", "error": None}
    base = {"sut_label": None, "file": "gate.toml", "baseline": "tier1-a", "baseline_kind": "accepted"}
    return evaluation | base | {"verdict": verdict, "rules": list(rules)} | more


PASSED, FAILED = make_rule("ndcg@10", "pass"), make_rule("hit_rate@1", "fail")
VAGUE = make_rule("mrr", "inconclusive", 1200)


@pytest.mark.parametrize(
    ("document", "first", "second"),
    [
        (make_gate("pass", PASSED), "Pass: 1 of 1 rule holds.", "Tier 1: retrieval · sample · tier1-b"),
        (
            make_gate("fail", PASSED, VAGUE, FAILED),
            "Fail: 1 of 3 rules: hit_rate@1: at least 0.5.",
            "See why before you release: yarus explain tier1-a tier1-b",
        ),
        (
            make_gate("inconclusive", PASSED, VAGUE),
            "Cannot tell: 1 of 2 rules could not be decided: mrr: at least 0.5.",
            "To decide all of them, evaluate about 1 200 more cases.",
        ),
        (
            make_gate("invalid", state="invalid", error="only 60% were measured"),
            "Fail, because the evaluation is invalid: only 60% were measured.",
            "Tier 1: retrieval · sample · tier1-b",
        ),
    ],
)
def test_gate_begins_with_its_verdict(
    document: Any, first: str, second: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_gate(document, "en")
    assert capsys.readouterr().out.strip().splitlines()[:2] == [first, second]


@pytest.mark.parametrize("language", ["en", "ru"])
def test_first_screen_has_failed_rules_first(language: str, capsys: pytest.CaptureFixture[str]) -> None:
    document = make_gate("fail", *[PASSED] * 40, FAILED)
    print_gate(document, language)
    lines = capsys.readouterr().out.strip().splitlines()
    assert len(lines) <= 40
    [position] = [
        i for i, line in enumerate(lines) if line.startswith({"en": "fail  ", "ru": "не пройдено  "}[language])
    ]
    assert not any("ndcg@10" in line for line in lines[:position])
    assert lines[-1].endswith("--all")
    print_gate(document, language, show_all=True)
    assert capsys.readouterr().out.count("ndcg@10") == 40

"""The first lines of `gate`: the verdict, the rules that decided it, and what to do."""

from typing import Any

import pytest

from yarus.flows.terminal.comparisons.gate import print_gate


def make_rule(metric: str, verdict: str, needs: int | None = None, **more: Any) -> Any:
    figures = dict.fromkeys(("stratum", "ci_low", "ci_high", "baseline", "difference", "p", "p_holm", "reason"))
    rule = {"metric": metric, "rule": "floor", "bound": 0.5, "verdict": verdict, "value": 0.4, "n_cases_needed": needs}
    return figures | rule | {"min_detectable_effect": None} | more


def make_comparing_rule(metric: str, verdict: str, *, bound: float | None = None, **more: Any) -> Any:
    return make_rule(metric, verdict, **({"rule": "no regression", "bound": bound, "value": None} | more))


def make_gate(verdict: str, *rules: Any, **more: Any) -> Any:
    evaluation = {"evaluation_id": "tier1-b", "tier": "tier1", "source": "sample", "state": "completed", "error": None}
    base = {"sut_label": None, "file": "gate.toml", "baseline": "tier1-a", "baseline_kind": "accepted"}
    return evaluation | base | {"verdict": verdict, "unjudged_metrics": [], "rules": list(rules)} | more


def print_lines(document: Any, language: str, capsys: pytest.CaptureFixture[str], **options: bool) -> list[str]:
    print_gate(document, language, **options)
    return capsys.readouterr().out.strip().splitlines()


PASSED, FAILED = make_rule("ndcg@10", "pass"), make_rule("hit_rate@1", "fail", ci_low=0.35, ci_high=0.45)
VAGUE = make_rule("mrr", "inconclusive", 1200, ci_low=0.38, ci_high=0.52)
CORRECTED = make_rule("avg_faithfulness_corrected", "inconclusive", 18, reason="too few labels of people")
FIGURES = {"value": 0.012, "baseline": 0.624, "difference": -0.612, "ci_low": -0.681, "ci_high": -0.544}
LOST = make_comparing_rule("hit_rate@1", "fail", **FIGURES)
UNCOMPARED = [
    make_comparing_rule(name, "inconclusive", reason="no earlier comparable evaluation") for name in ("mrr", "ndcg@10")
]
TITLE = {"en": "Tier 1: retrieval · sample · tier1-b", "ru": "Уровень 1: поиск · sample · tier1-b"}


@pytest.mark.parametrize(
    ("document", "first", "second"),
    [
        (make_gate("pass", PASSED), "Pass: 1 of 1 rule holds.", TITLE["en"]),
        (
            make_gate("fail", PASSED, VAGUE, FAILED),
            "Fail: hit_rate@1 0.400 is below 0.5 (95 % interval 0.350 … 0.450).",
            "See why before you release: yarus explain tier1-a tier1-b",
        ),
        (
            make_gate("fail", LOST, FAILED, FAILED),
            "Fail: hit_rate@1 0.624 → 0.012 (−0.612; 95 % interval −0.681 … −0.544); 2 more rules fail.",
            "See why before you release: yarus explain tier1-a tier1-b",
        ),
        (
            make_gate("fail", LOST | {"bound": 0.03}),
            "Fail: hit_rate@1 0.624 → 0.012 (−0.612; 95 % interval −0.681 … −0.544; allowed loss 0.03).",
            "See why before you release: yarus explain tier1-a tier1-b",
        ),
        (
            make_gate("fail", FAILED | {"rule": "ceiling", "bound": -0.5, "ci_high": None}, baseline=None),
            "Fail: hit_rate@1 0.400 is above −0.5 (95 % interval 0.350 … ∞).",
            "See why before you release: yarus show tier1-b",
        ),
        (
            make_gate("inconclusive", PASSED, VAGUE),
            "Cannot tell: 1 of 2 rules could not be decided: mrr 0.400 may be below 0.5 (95 % interval 0.380 … 0.520).",
            "To decide all of them, evaluate about 1 200 more cases.",
        ),
        (
            make_gate("inconclusive", CORRECTED),
            "Cannot tell: 1 of 1 rule could not be decided: too few labels of people.",
            "To decide what people must confirm, label about 18 more answers: yarus judge label",
        ),
        (
            make_gate("inconclusive", *UNCOMPARED, baseline=None),
            "Cannot tell: 2 of 2 rules could not be decided: no earlier comparable evaluation.",
            "If this evaluation is good, accept it as the baseline of later ones: yarus gate --accept tier1-b",
        ),
    ],
)
def test_gate_begins_with_its_verdict(
    document: Any, first: str, second: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert print_lines(document, "en", capsys)[:2] == [first, second]


@pytest.mark.parametrize(
    ("document", "first", "second"),
    [
        (
            make_gate("fail", LOST, FAILED),
            "Не пройдено: hit_rate@1 0.624 → 0.012 (−0.612; 95 % интервал −0.681 … −0.544); не пройдено ещё правил: 1.",
            "До выпуска узнайте причину: yarus explain tier1-a tier1-b",
        ),
        (
            make_gate("fail", FAILED, baseline=None),
            "Не пройдено: hit_rate@1 0.400 ниже 0.5 (95 % интервал 0.350 … 0.450).",
            "До выпуска узнайте причину: yarus show tier1-b",
        ),
        (
            make_gate("inconclusive", *UNCOMPARED, baseline=None),
            "Неясно, не решены правила (2 из 2): нет более раннего сравнимого прогона.",
            "Если прогон хорош, примите его за базовый для следующих: yarus gate --accept tier1-b",
        ),
    ],
)
def test_gate_begins_with_its_verdict_in_russian(
    document: Any, first: str, second: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert print_lines(document, "ru", capsys)[:2] == [first, second]


@pytest.mark.parametrize("verdict", ["pass", "fail"])
def test_second_line_names_metrics_that_no_model_judged(verdict: str, capsys: pytest.CaptureFixture[str]) -> None:
    rule = make_comparing_rule("avg_e2e_score", verdict, **FIGURES)
    document = make_gate(verdict, rule, tier="tier3", unjudged_metrics=["avg_e2e_score", "avg_bert_f1"])
    assert print_lines(document, "en", capsys)[1] == (
        "No language model judged avg_e2e_score, avg_bert_f1, so the verdict does not measure quality. "
        "To measure quality, let a language model judge: set YARUS_JUDGE__BASE_URL and YARUS_JUDGE__MODEL."
    )
    second = print_lines(document, "ru", capsys)[1]
    assert second.startswith("Языковая модель не судила avg_e2e_score, avg_bert_f1: вердикт не говорит о качестве.")


def test_invalid_evaluation_has_one_reason_and_action(capsys: pytest.CaptureFixture[str]) -> None:
    error = "only 60.0% of the cases that could be measured were; 95% are needed (YARUS_MIN_COVERAGE)"
    rules = [make_comparing_rule(metric, "invalid") for metric in ("mrr", "ndcg@10")]
    document = make_gate("invalid", *rules, state="invalid", error=error)
    assert print_lines(document, "en", capsys) == [
        f"Fail, because the evaluation is invalid: {error}.",
        "See what was not measured and why: yarus show tier1-b",
        TITLE["en"],
    ]
    assert print_lines(document, "ru", capsys) == [
        "Не пройдено, прогон недействителен: из вопросов, которые можно измерить, измерено 60.0%, а нужно 95% "
        "(YARUS_MIN_COVERAGE).",
        "Посмотрите, что не измерено и почему: yarus show tier1-b",
        TITLE["ru"],
    ]


def test_rules_have_minus_signs(capsys: pytest.CaptureFixture[str]) -> None:
    lines = print_lines(make_gate("fail", LOST), "en", capsys)
    assert "    0.624 → 0.012, difference −0.612 (95 %: −0.681 to −0.544), p —" in lines


@pytest.mark.parametrize("language", ["en", "ru"])
def test_first_screen_has_failed_rules_first(language: str, capsys: pytest.CaptureFixture[str]) -> None:
    document = make_gate("fail", *[PASSED] * 40, FAILED)
    lines = print_lines(document, language, capsys)
    assert len(lines) <= 40
    [position] = [
        i for i, line in enumerate(lines) if line.startswith({"en": "fail  ", "ru": "не пройдено  "}[language])
    ]
    assert not any("ndcg@10" in line for line in lines[:position])
    assert lines[-1].endswith("--all")
    assert sum("ndcg@10" in line for line in print_lines(document, language, capsys, show_all=True)) == 40

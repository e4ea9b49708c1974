"""Sentences of a report: the weakest tier, the results, and the next step."""

from typing import Any

import pytest

from yarus.metrics.table import GOALS, METRICS, grades
from yarus.tasks.config.texts import texts
from yarus.tasks.config.tiers import TIERS, shown_headlines
from yarus.tasks.evaluation.guidance import (
    advise_next_step,
    case_names,
    choose_first_evaluation,
    find_weakest_tier,
    lead_sentence,
    list_goals,
    summary_sentence,
)

Document = dict[str, Any]
OF_ALL = {"statuses": {"ok": 90}, "coverage": 1.0}


def make_summary(tier: str, state: str = "completed", **values: float | None) -> Document:
    metrics = {name: make_metric(name, value, value, value) for name, value in values.items()}
    return {"tier": tier, "evaluation_id": f"{tier}-1", "state": state, "metrics": metrics, "system": {}} | OF_ALL


def make_metric(name: str, value: float | None, low: float | None, high: float | None) -> Document:
    graded = grades(name, value, low, high, 90)
    figures = {"value": value, "ci_low": low, "ci_high": high, "n_scored": 90, "n_total": 90}
    grade = {"grade": graded and graded.low, "grade_high": graded and graded.high, "ungraded": None}
    return {**figures, "judge": None, **grade}


SOUND = [
    make_summary("tier1", **{"hit_rate@1": 0.7, "mrr": 0.9, "ndcg@10": 0.9}),
    make_summary("tier2", avg_faithfulness=0.95),
]
LOWEST = "No graded tier needs attention; the lowest is retrieval: hit_rate@1 0.700 (95 % interval 0.700 – 0.700)."


@pytest.mark.parametrize(
    ("summaries", "tier", "metric"),
    [
        # The worst grade; among equals the furthest below its threshold: 0.3 / 0.6 against 0.6 / 0.7.
        ([*SOUND, make_summary("tier3", avg_e2e_score=0.3)], "tier3", "avg_e2e_score"),
        (
            [make_summary("tier2", avg_faithfulness=0.6), make_summary("tier3", avg_e2e_score=0.3)],
            "tier3",
            "avg_e2e_score",
        ),
        (
            [make_summary("tier2", avg_faithfulness=0.1), make_summary("tier3", avg_e2e_score=0.5)],
            "tier2",
            "avg_faithfulness",
        ),
        # The judge is named only if all tiers that users notice are sound, embeddings only if nothing else is measured.
        (
            [make_summary("tier0", silhouette_score=-0.5), make_summary("tier3", avg_e2e_score=0.5)],
            "tier3",
            "avg_e2e_score",
        ),
        ([*SOUND, make_summary("tier0", silhouette_score=-0.5)], "tier1", "hit_rate@1"),
        ([make_summary("tier0", silhouette_score=-0.5)], "tier0", "silhouette_score"),
        ([*SOUND, make_summary("judge", consistency_score=0.5)], "judge", "consistency_score"),
        # All sound: the lowest grade.
        (SOUND, "tier1", "hit_rate@1"),
        # A tier is as weak as its worst headline metric.
        ([make_summary("tier1", **{"hit_rate@1": 0.9, "mrr": 0.2, "ndcg@10": 0.9})], "tier1", "mrr"),
    ],
)
def test_weakest_finds_the_worst_graded_tier(summaries: list[Document], tier: str, metric: str) -> None:
    result = find_weakest_tier(summaries)
    assert result is not None
    assert (result.tier, result.metric) == (tier, metric)
    assert find_weakest_tier(reversed(summaries)) == result


def test_weakest_is_none_without_grades() -> None:
    nothing = [make_summary("ux", cache_hit_rate=0.1), make_summary("tier3", avg_e2e_score=None)]
    assert find_weakest_tier(nothing) is None
    assert lead_sentence(nothing)["en"] == "No tier that users notice could be graded; the reasons are below."


def test_lead_names_failed_tiers_first() -> None:
    sentence = lead_sentence([make_summary("tier3", avg_e2e_score=0.3), make_summary("tier1", "failed")])
    assert sentence["en"] == "Not measured, because the run failed: retrieval."
    failed_tier: Document = {"tier": "tier1", "state": "failed", "error": "no database"}  # as in a night
    assert lead_sentence([make_summary("tier3", avg_e2e_score=0.3), failed_tier]) == sentence


def test_lead_omits_coverage_when_nothing_was_measurable() -> None:
    nothing = make_summary("tier3", "invalid", avg_e2e_score=0.7) | {"coverage": None, "statuses": {"unlabelled": 9}}
    assert lead_sentence([nothing])["en"].startswith("Too little was measured to decide: the whole system. ")


def test_lead_skips_embeddings_without_labels() -> None:
    """Only geometry is measured for passages without pages, so the night's report is about retrieval."""
    unlabelled = {"coverage": None, "statuses": {"unlabelled": 167}}
    nothing = make_summary("tier0", "invalid", silhouette_score=None, avg_spread=0.5) | unlabelled
    retrieval = make_summary("tier1", **{"hit_rate@1": 0.3, "hit_rate@10": 0.4})
    night = [nothing, retrieval]
    assert lead_sentence(night)["en"].startswith("The weakest is retrieval")
    assert choose_first_evaluation(night) is retrieval
    assert "the geometry of all texts was measured" in advise_next_step(nothing)[0]["en"]


def test_lead_names_low_coverage_before_weakest() -> None:
    """If a third of the questions fail with HTTP 500, coverage matters more than any grade."""
    invalid = make_summary("tier3", "invalid", avg_e2e_score=0.7) | {
        "coverage": 0.723,
        "statuses": {"ok": 65, "sut_error": 25},
    }
    night = [make_summary("tier0", silhouette_score=-0.5), invalid]
    assert lead_sentence(night)["en"] == (
        "Too little was measured to decide: the whole system (72.3%). "
        "The weakest is embeddings: silhouette_score −0.500 (95 % interval −0.500 – −0.500); good starts at 0.25."
    )
    foremost = choose_first_evaluation(night)
    assert foremost is invalid
    advice, condition = advise_next_step(foremost)
    assert "error of the system (25)" in advice["en"] and "ошибка системы (25)" in advice["ru"]
    assert condition == {"status": "sut_error"}
    assert choose_first_evaluation([*night, make_summary("tier1", "failed")]) == make_summary("tier1", "failed")
    assert choose_first_evaluation(SOUND) is SOUND[0]
    assert choose_first_evaluation([make_summary("ux", cache_hit_rate=0.1)]) is None


def test_lead_names_the_weakest_tier() -> None:
    worst = lead_sentence([*SOUND, make_summary("tier3", avg_e2e_score=0.3)])
    assert worst == {
        "ru": "Слабее всего вся система: avg_e2e_score 0.300 (95 % интервал 0.300 – 0.300), порог «хорошо» — 0.6.",
        "en": "The weakest is the whole system: avg_e2e_score 0.300 (95 % interval 0.300 – 0.300); good starts at 0.6.",
    }
    assert lead_sentence(SOUND)["en"] == LOWEST
    assert lead_sentence([*SOUND, make_summary("tier0", silhouette_score=-0.5)])["en"] == (
        "Apart from embeddings (No structure), no graded tier needs attention; "
        "the lowest is retrieval: hit_rate@1 0.700 (95 % interval 0.700 – 0.700)."
    )
    assert lead_sentence([make_summary("tier2", avg_faithfulness=0.95)])["en"].startswith(
        "Every graded tier is excellent."
    )
    reasonable = make_summary("tier0", silhouette_score=0.6)
    assert lead_sentence([make_summary("tier2", avg_faithfulness=0.95), reasonable])["en"] == (
        "No graded tier needs attention; the lowest is generation: "
        "avg_faithfulness 0.950 (95 % interval 0.950 – 0.950)."
    )


def test_lead_puts_users_before_failed_embeddings() -> None:
    failed: Document = {"tier": "tier0", "state": "failed", "error": "no database"}
    assert lead_sentence([failed, *SOUND])["en"] == (f"{LOWEST} Not measured, because the run failed: embeddings.")
    assert lead_sentence([failed])["en"] == "Not measured, because the run failed: embeddings."


def make_stand_in_summary() -> Document:
    values = {"avg_e2e_score": 0.34, "avg_semantic_similarity": 0.2, "refusal_rate": 0.1, "hit_rate@1": 0.183}
    summary = make_summary("tier3", **values) | {"failures": {"counts": {"generation": 9}}}
    summary["metrics"]["avg_e2e_score"] |= {"judge": "stand-in", "grade": None, "grade_high": None}
    return summary


def test_stand_in_judge_gives_no_sentence_on_quality() -> None:
    summary = make_stand_in_summary()
    assert summary_sentence(summary)["en"] == (
        "Quality was not measured: no language model judged. "
        "Measured without a judge: hit_rate@1 0.183 (95 % interval 0.183 – 0.183), avg_semantic_similarity 0.200."
    )
    assert advise_next_step(summary)[0]["en"].startswith("To measure quality, let a language model judge")
    embeddings = make_summary("tier0", silhouette_score=-0.5)
    assert lead_sentence([embeddings, summary]) == summary_sentence(summary), "embeddings do not lead"
    assert lead_sentence([*SOUND, summary])["en"].endswith(
        "No language model judged, so the quality of these tiers is unknown: the whole system."
    )


def test_stand_in_advice_names_failed_retrieval_first() -> None:
    summary = make_stand_in_summary()
    summary["metrics"]["hit_rate@10"] = make_metric("hit_rate@10", 0.3, 0.3, 0.3)
    advice, condition = advise_next_step(summary)
    assert advice["en"].startswith("For 70 % of the questions the right passage is not in the first ten")
    assert "let a language model judge" in advice["en"]
    assert condition == {"metric": "hit_rate@10", "max": 0}
    summary["metrics"]["hit_rate@1"] = make_metric("hit_rate@1", 0.95, 0.9, 0.99)
    assert advise_next_step(summary)[0]["en"].startswith("To measure quality"), "retrieval needs no attention"


def test_summary_has_interval_and_doubtful_judge() -> None:
    summary = make_summary("tier3", avg_e2e_score=0.65, refusal_rate=0.09)
    summary["metrics"]["avg_e2e_score"] |= {"ci_low": 0.55, "ci_high": 0.75, "judge": "failed"}
    assert summary_sentence(summary) == {
        "en": "The answers are 65 % (95 % interval 55 – 75 %) as useful as the references; 9 % of the questions were "
        "refused. Judge failed its exam: do not act on this number yet.",
        "ru": "Полезность ответов — 65 % (95 % интервал 55 – 75 %) от эталонных, отказов — 9 %. "
        "Судья не сдал экзамен: пока не опирайтесь на это число.",
    }


def test_hit_rate_is_shown_with_headlines_of_tier3_if_measured() -> None:
    assert "hit_rate@1" not in TIERS["tier3"].headlines, "the tests of headlines and the default gate stay as they are"
    assert shown_headlines("tier3", make_stand_in_summary()["metrics"])[-1] == "hit_rate@1"
    assert "hit_rate@1" not in shown_headlines("tier3", make_summary("tier3", **{"hit_rate@1": None})["metrics"])


def test_lead_is_cautious_when_interval_spans_grades() -> None:
    uncertain = make_summary("tier3", avg_e2e_score=0.65)
    uncertain["metrics"]["avg_e2e_score"] = make_metric("avg_e2e_score", 0.65, 0.55, 0.75)
    assert lead_sentence([*SOUND, uncertain])["en"] == (
        "It is not clear yet whether the whole system is good: "
        "avg_e2e_score 0.650 (95 % interval 0.550 – 0.750); good starts at 0.6."
    )
    certain = make_summary("tier1", **{"hit_rate@1": 0.2})
    result = find_weakest_tier([uncertain, certain])
    assert result is not None and result.metric == "hit_rate@1", "what surely needs attention comes first"
    nearly_excellent = make_summary("tier2", avg_faithfulness=0.93)
    nearly_excellent["metrics"]["avg_faithfulness"] = make_metric("avg_faithfulness", 0.93, 0.88, 0.97)
    assert lead_sentence([nearly_excellent])["en"] == (
        "No graded tier needs attention; the lowest is generation: "
        "avg_faithfulness 0.930 (95 % interval 0.880 – 0.970)."
    ), "and not: all are excellent"


def make_judge(kappa: float | None, low: float | None, high: float | None, same: float, chance: float) -> Document:
    document = make_summary("judge", consistency_score=same, consistency_score_expected=chance, weighted_kappa=kappa)
    document["metrics"]["weighted_kappa"] |= {"ci_low": low, "ci_high": high}
    return document


@pytest.mark.parametrize(
    ("summary", "begins"),
    [
        (make_judge(1.0, 1.0, 1.0, 1.0, 0.96), "The judge repeats itself better than chance"),  # 98 % good answers
        (make_judge(0.02, -0.1, 0.15, 0.78, 0.77), "The judge does no better than chance"),
        (
            make_judge(0.6, -0.05, 0.95, 0.98, 0.96),
            "It is unclear whether the judge repeats itself better than chance",
        ),
        (make_judge(0.9, None, None, 1.0, 0.9), "It is unclear whether the judge repeats itself better than chance"),
        (make_judge(None, None, None, 1.0, 1.0), "The judge gives all answers the same score"),
    ],
)
def test_says_rates_judge_by_interval_of_kappa(summary: Document, begins: str) -> None:
    assert summary_sentence(summary)["en"].startswith(
        f"The judge was not examined, so its scores are unverified. {begins}"
    )


@pytest.mark.parametrize("tier", list(TIERS))
@pytest.mark.parametrize("is_complete", [True, False])
def test_says_covers_every_tier_in_both_languages(tier: str, is_complete: bool) -> None:
    measured = {name: 0.5 for name, metric in METRICS.items() if tier in metric.tiers}
    values = measured if is_complete else {TIERS[tier].headlines[0]: 0.5}
    for sentence in (summary_sentence(make_summary(tier, **values)), advise_next_step(make_summary(tier, **values))[0]):
        assert set(sentence) == {"ru", "en"}
        assert all(text and "{" not in text for text in sentence.values())
    assert summary_sentence(make_summary(tier, **{TIERS[tier].headlines[0]: None}))
    assert summary_sentence(make_summary(tier, "failed"))["en"] == "The evaluation did not finish, so it has no values."


def test_says_sums_up_numbers() -> None:
    result = summary_sentence(make_summary("tier1", **{"hit_rate@1": 0.624, "hit_rate@10": 0.9}))
    assert result["en"] == (
        "The right passage comes first for 62 % (95 % interval 62 – 62 %) of the questions, "
        "and is in the first ten for 90 %."
    )
    unknown = summary_sentence(make_summary("judge", consistency_score=0.02, consistency_score_expected=None))
    assert "chance" not in unknown["en"]
    assert unknown["en"].startswith("The judge was not examined")


@pytest.mark.parametrize(
    ("values", "begins", "shown"),
    [
        (
            {"hit_rate@1": 0.6, "hit_rate@10": 0.9, "mrr": 0.7},
            "For another 30 %",
            {"metric": "mrr", "min": 0.1, "max": 0.5},
        ),
        ({"hit_rate@1": 0.6, "hit_rate@10": 0.65}, "For 35 %", {"metric": "hit_rate@10", "max": 0}),
    ],
)
def test_next_step_of_retrieval_targets_largest_loss(values: dict[str, float], begins: str, shown: Document) -> None:
    text, condition = advise_next_step(make_summary("tier1", **values))
    assert text["en"].startswith(begins)
    assert condition == shown


def test_next_step_targets_most_frequent_failure() -> None:
    failed = make_summary("tier3", avg_e2e_score=0.3) | {
        "failures": {"counts": {"retrieval": 5, "generation": 7, "gate": 0}}
    }
    text, condition = advise_next_step(failed)
    assert "7 of 12" in text["en"]
    assert condition == {"failure": "generation"}


def test_next_step_of_stopped_evaluation_is_resume() -> None:
    assert "yarus run tier2 --resume tier2-1" in advise_next_step(make_summary("tier2", "cancelled"))[0]["en"]
    assert (
        "See why the other questions were not measured."
        in advise_next_step(make_summary("tier2", "invalid", avg_faithfulness=0.5))[0]["en"]
    )


def test_goals_list_their_metrics() -> None:
    goals = list_goals(
        [make_summary("tier1", mrr=0.7, **{"hit_rate@1": 0.6}), make_summary("tier3", avg_e2e_score=0.3)]
    )
    assert [goal["key"] for goal in goals] == [goal.key for goal in GOALS]
    assert [(row["metric"], row["value"]) for row in goals[0]["metrics"]] == [("hit_rate@1", 0.6), ("mrr", 0.7)]
    assert goals[2]["metrics"][0]["tier"] == "tier3"


def test_texts_cover_tiers_headlines_and_failures() -> None:
    from yarus.tasks.evaluation.findings.failures import FAILURE_STAGES

    for language in ("ru", "en"):
        assert all(texts(f"tiers.{tier}", language)["sentence"] for tier in TIERS)
        assert {name for tier in TIERS.values() for name in tier.headlines} == texts("metric_labels", language).keys()
        assert set(FAILURE_STAGES) == texts("failures", language).keys()


def test_says_reports_unsupported_facts() -> None:
    gate = {"accuracy": 0.9, "false_positives": 1.0, "false_negatives": 0.0}
    text = summary_sentence(make_summary("judge_pipeline", unsupported_fact_rate=0.1, **gate))["en"]
    assert text.endswith("9 of 90 shown answers with facts (numbers, dates, phones and so on) contain a fact "
                         "that is in neither the page nor the question.")  # fmt: skip
    answers = {"avg_e2e_score": 0.5, "refusal_rate": 0.1}
    assert (
        "9 of 90 answers with facts"
        in summary_sentence(make_summary("tier3", unsupported_fact_rate=0.1, **answers))["en"]
    )
    for nothing in ({}, {"unsupported_fact_rate": 0.0}, {"unsupported_fact_rate": None}):
        assert "facts" not in summary_sentence(make_summary("tier3", **answers, **nothing))["en"]


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("value", [0.0, 0.3, 0.7, 1.0, None])
@pytest.mark.parametrize("doubtful", [None, 0, 3])
@pytest.mark.parametrize("statuses", [{"ok": 90}, {"ok": 1, "sut_error": 9}, {"unlabelled": 9}, {"sut_error": 9}])
def test_next_step_condition_matches_cases(
    tier: str, value: float | None, doubtful: int | None, statuses: dict[str, int]
) -> None:
    n = sum(statuses.values()) - statuses.get("unlabelled", 0)
    share = statuses.get("ok", 0) / n if n else None
    names = dict.fromkeys((*TIERS[tier].headlines, "hit_rate@1", "hit_rate@10"), value if share else None)
    document = make_summary(tier, "completed" if share == 1 else "invalid", **names)
    document |= {"statuses": statuses, "coverage": share} | ({"doubtful": doubtful} if doubtful is not None else {})
    text, condition = advise_next_step(document)
    assert all(text.values())
    if "status" in condition:
        assert statuses[condition["status"]] and condition["status"] != "ok"
    elif tier in ("tier1", "real_users") and condition:
        assert value is not None and value < 1
    elif condition:
        assert condition == TIERS[tier].doubtful and doubtful


def test_cases_are_named_by_tier() -> None:
    names = {tier: case_names(make_summary(tier))["en"] for tier in TIERS}
    assert (names["tier0"], names["tier1"], names["judge_pipeline"]) == ("texts", "questions", "answers")

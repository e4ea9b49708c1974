"""What a report says in words: the weakest tier, what changed, what to do next."""

from typing import Any

import pytest

from yarus.metrics.table import GOALS, METRICS, grades
from yarus.tasks.config.texts import texts
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.guidance import cases_are, first, goals, lead, next_step, says, weakest

Document = dict[str, Any]
OF_ALL = {"statuses": {"ok": 90}, "coverage": 1.0}


def summary(tier: str, state: str = "completed", **values: float | None) -> Document:
    metrics = {name: metric(name, value, value, value) for name, value in values.items()}
    return {"tier": tier, "evaluation_id": f"{tier}-1", "state": state, "metrics": metrics, "system": {}} | OF_ALL


def metric(name: str, value: float | None, low: float | None, high: float | None) -> Document:
    found = grades(name, value, low, high, 90)
    figures = {"value": value, "ci_low": low, "ci_high": high, "n_scored": 90, "n_total": 90}
    grade = {"grade": found and found.low, "grade_high": found and found.high, "ungraded": None}
    return {**figures, "judge": None, **grade}


SOUND = [summary("tier1", **{"hit_rate@1": 0.7, "mrr": 0.9, "ndcg@10": 0.9}), summary("tier2", avg_faithfulness=0.95)]


@pytest.mark.parametrize(
    ("summaries", "tier", "metric"),
    [
        # Graded worst; among equals the furthest below its bound: 0.3 / 0.6 against 0.6 / 0.7.
        ([*SOUND, summary("tier3", avg_e2e_score=0.3)], "tier3", "avg_e2e_score"),
        ([summary("tier2", avg_faithfulness=0.6), summary("tier3", avg_e2e_score=0.3)], "tier3", "avg_e2e_score"),
        ([summary("tier2", avg_faithfulness=0.1), summary("tier3", avg_e2e_score=0.5)], "tier2", "avg_faithfulness"),
        # What explains or measures is named only where all that users feel is sound, and then before what is good.
        ([summary("tier0", silhouette_score=-0.5), summary("tier3", avg_e2e_score=0.5)], "tier3", "avg_e2e_score"),
        ([*SOUND, summary("tier0", silhouette_score=-0.5)], "tier0", "silhouette_score"),
        ([*SOUND, summary("judge", consistency_score=0.5)], "judge", "consistency_score"),
        # All sound: the lowest grade.
        (SOUND, "tier1", "hit_rate@1"),
        # A tier is as weak as its worst headline metric.
        ([summary("tier1", **{"hit_rate@1": 0.9, "mrr": 0.2, "ndcg@10": 0.9})], "tier1", "mrr"),
    ],
)
def test_the_weakest_tier(summaries: list[Document], tier: str, metric: str) -> None:
    found = weakest(summaries)
    assert found is not None
    assert (found.tier, found.metric) == (tier, metric)
    assert weakest(reversed(summaries)) == found


def test_nothing_graded_has_no_weakest() -> None:
    nothing = [summary("ux", cache_hit_rate=0.1), summary("tier3", avg_e2e_score=None)]
    assert weakest(nothing) is None
    assert lead(nothing)["en"] == "No tier could be graded; the reasons are below."


def test_what_failed_comes_before_what_is_weak() -> None:
    said = lead([summary("tier3", avg_e2e_score=0.3), summary("tier1", "failed")])
    assert said["en"] == "Not measured, because the run failed: retrieval."
    gone: Document = {"tier": "tier1", "state": "failed", "error": "no database"}  # as a night has it
    assert lead([summary("tier3", avg_e2e_score=0.3), gone]) == said


def test_where_nothing_could_be_measured_no_share_of_it_is_said() -> None:
    nothing = summary("tier3", "invalid", avg_e2e_score=0.7) | {"coverage": None, "statuses": {"unlabelled": 9}}
    assert lead([nothing])["en"].startswith("Too little was measured to go by: the whole system. ")


def test_a_night_does_not_begin_with_pages_that_nobody_named() -> None:
    """Of passages without pages the geometry is measured; what retrieval is worth is what the night is about."""
    unlabelled = {"coverage": None, "statuses": {"unlabelled": 167}}
    nothing = summary("tier0", "invalid", silhouette_score=None, avg_spread=0.5) | unlabelled
    retrieval = summary("tier1", **{"hit_rate@1": 0.3, "hit_rate@10": 0.4})
    night = [nothing, retrieval]
    assert lead(night)["en"].startswith("The weakest is retrieval")
    assert first(night) is retrieval
    assert "the geometry of all texts was measured" in next_step(nothing)[0]["en"]


def test_too_little_measured_comes_before_what_is_weak_and_both_are_said() -> None:
    """Of a bot that answers HTTP 500 to a third of the questions, no other tier's grade is what matters first."""
    invalid = summary("tier3", "invalid", avg_e2e_score=0.7) | {
        "coverage": 0.723,
        "statuses": {"ok": 65, "sut_error": 25},
    }
    night = [summary("tier0", silhouette_score=-0.5), invalid]
    assert lead(night)["en"] == (
        "Too little was measured to go by: the whole system (72.3%). "
        "The weakest is embeddings: separation of pages -0.500; good starts at 0.25."
    )
    foremost = first(night)
    assert foremost is invalid
    advice, kept = next_step(foremost)
    assert "error of the system (25)" in advice["en"] and "ошибка системы (25)" in advice["ru"]
    assert kept == {"status": "sut_error"}
    assert first([*night, summary("tier1", "failed")]) == summary("tier1", "failed")
    assert first(SOUND) is SOUND[0]
    assert first([summary("ux", cache_hit_rate=0.1)]) is None


def test_the_first_sentence() -> None:
    worst = lead([*SOUND, summary("tier3", avg_e2e_score=0.3)])
    assert worst == {
        "ru": "Слабее всего вся система: полезность ответа 0.300, а хорошо начинается с 0.6.",
        "en": "The weakest is the whole system: usefulness of the answer 0.300; good starts at 0.6.",
    }
    assert lead(SOUND)["en"] == "No tier needs attention. The lowest is retrieval: right passage first 0.700."
    assert lead([summary("tier2", avg_faithfulness=0.95)])["en"].startswith("Every graded tier is excellent.")


def test_what_the_interval_leaves_open_is_not_said() -> None:
    unsure = summary("tier3", avg_e2e_score=0.65)
    unsure["metrics"]["avg_e2e_score"] = metric("avg_e2e_score", 0.65, 0.55, 0.75)
    assert lead([*SOUND, unsure])["en"] == (
        "Whether the whole system is good cannot be told yet: usefulness of the answer 0.650; good starts at 0.6."
    )
    surely = summary("tier1", **{"hit_rate@1": 0.2})
    found = weakest([unsure, surely])
    assert found is not None and found.metric == "hit_rate@1", "what surely needs attention comes first"
    almost = summary("tier2", avg_faithfulness=0.93)
    almost["metrics"]["avg_faithfulness"] = metric("avg_faithfulness", 0.93, 0.88, 0.97)
    assert lead([almost])["en"].startswith("No tier needs attention."), "and not: all are excellent"


def judge(kappa: float | None, low: float | None, high: float | None, observed: float, expected: float) -> Document:
    found = summary("judge", consistency_score=observed, consistency_score_expected=expected, weighted_kappa=kappa)
    found["metrics"]["weighted_kappa"] |= {"ci_low": low, "ci_high": high}
    return found


@pytest.mark.parametrize(
    ("found", "begins"),
    [
        (judge(1.0, 1.0, 1.0, 1.0, 0.96), "The judge repeats itself better than chance"),  # 98 % of the answers good
        (judge(0.02, -0.1, 0.15, 0.78, 0.77), "The judge is no better than chance"),
        (judge(0.6, -0.05, 0.95, 0.98, 0.96), "Whether the judge repeats itself better than chance cannot be told"),
        (judge(0.9, None, None, 1.0, 0.9), "Whether the judge repeats itself better than chance cannot be told"),
        (judge(None, None, None, 1.0, 1.0), "The judge gives all answers the same score"),
    ],
)
def test_a_judge_is_praised_and_condemned_by_the_interval_of_kappa(found: Document, begins: str) -> None:
    assert says(found)["en"].startswith(f"No exam was held, so nothing says whether its scores mean anything. {begins}")


@pytest.mark.parametrize("tier", list(TIERS))
@pytest.mark.parametrize("whole", [True, False])
def test_every_tier_is_told_in_both_languages(tier: str, whole: bool) -> None:
    measured = {name: 0.5 for name, metric in METRICS.items() if tier in metric.tiers}
    kept = measured if whole else {TIERS[tier].headlines[0]: 0.5}
    for sentence in (says(summary(tier, **kept)), next_step(summary(tier, **kept))[0]):
        assert set(sentence) == {"ru", "en"}
        assert all(text and "{" not in text for text in sentence.values())
    assert says(summary(tier, **{TIERS[tier].headlines[0]: None}))
    assert says(summary(tier, "failed"))["en"] == "The evaluation did not finish; there are no numbers."


def test_what_the_numbers_say() -> None:
    found = says(summary("tier1", **{"hit_rate@1": 0.624, "hit_rate@10": 0.9}))
    assert found["en"] == "The right passage comes first for 62 % of the questions, and is in the first ten for 90 %."
    unknown = says(summary("judge", consistency_score=0.02, consistency_score_expected=None))
    assert "chance" not in unknown["en"]
    assert unknown["en"].startswith("No exam was held")


@pytest.mark.parametrize(
    ("values", "begins", "shown"),
    [
        ({"hit_rate@1": 0.6, "hit_rate@10": 0.9}, "For another 30 %", {"metric": "hit_rate@1", "max": 0}),
        ({"hit_rate@1": 0.6, "hit_rate@10": 0.65}, "For 35 %", {"metric": "hit_rate@10", "max": 0}),
    ],
)
def test_retrieval_is_mended_where_most_is_lost(values: dict[str, float], begins: str, shown: Document) -> None:
    text, kept = next_step(summary("tier1", **values))
    assert text["en"].startswith(begins)
    assert kept == shown


def test_the_next_step_begins_where_most_answers_fail() -> None:
    failed = summary("tier3", avg_e2e_score=0.3) | {
        "failures": {"counts": {"retrieval": 5, "generation": 7, "gate": 0}}
    }
    text, kept = next_step(failed)
    assert "7 of 12" in text["en"]
    assert kept == {"failure": "generation"}


def test_a_stopped_evaluation_says_how_to_go_on() -> None:
    assert "yarus run tier2 --resume tier2-1" in next_step(summary("tier2", "cancelled"))[0]["en"]
    assert "invalid" in next_step(summary("tier2", "invalid", avg_faithfulness=0.5))[0]["en"]


def test_goals_name_the_metrics_that_answer_them() -> None:
    found = goals([summary("tier1", mrr=0.7, **{"hit_rate@1": 0.6}), summary("tier3", avg_e2e_score=0.3)])
    assert [goal["key"] for goal in found] == [goal.key for goal in GOALS]
    assert [(one["metric"], one["value"]) for one in found[0]["metrics"]] == [("hit_rate@1", 0.6), ("mrr", 0.7)]
    assert found[2]["metrics"][0]["tier"] == "tier3"


def test_every_tier_headline_and_failure_has_its_words() -> None:
    from yarus.tasks.evaluation.findings.failures import FAILURES

    for language in ("ru", "en"):
        assert all(texts(f"tiers.{tier}", language)["sentence"] for tier in TIERS)
        assert {name for tier in TIERS.values() for name in tier.headlines} == texts("metric_labels", language).keys()
        assert set(FAILURES) == texts("failures", language).keys()


def test_made_up_facts_are_said_where_there_are_any() -> None:
    gate = {"accuracy": 0.9, "false_positives": 1.0, "false_negatives": 0.0}
    said = says(summary("judge_pipeline", unsupported_fact_rate=0.1, **gate))["en"]
    assert said.endswith("Of 90 shown answers with facts (numbers, dates, phones and so on) 9 state one that neither "
                         "page nor question has.")  # fmt: skip
    answers = {"avg_e2e_score": 0.5, "refusal_rate": 0.1}
    assert "Of 90 answers with facts" in says(summary("tier3", unsupported_fact_rate=0.1, **answers))["en"]
    for nothing in ({}, {"unsupported_fact_rate": 0.0}, {"unsupported_fact_rate": None}):
        assert "facts" not in says(summary("tier3", **answers, **nothing))["en"]


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("value", [0.0, 0.3, 0.7, 1.0, None])
@pytest.mark.parametrize("doubtful", [None, 0, 3])
@pytest.mark.parametrize("statuses", [{"ok": 90}, {"ok": 1, "sut_error": 9}, {"unlabelled": 9}, {"sut_error": 9}])
def test_no_advice_opens_an_empty_list(
    tier: str, value: float | None, doubtful: int | None, statuses: dict[str, int]
) -> None:
    n = sum(statuses.values()) - statuses.get("unlabelled", 0)
    share = statuses.get("ok", 0) / n if n else None
    names = dict.fromkeys((*TIERS[tier].headlines, "hit_rate@1", "hit_rate@10"), value if share else None)
    found = summary(tier, "completed" if share == 1 else "invalid", **names)
    found |= {"statuses": statuses, "coverage": share} | ({"doubtful": doubtful} if doubtful is not None else {})
    text, kept = next_step(found)
    assert all(text.values())
    if "status" in kept:
        assert statuses[kept["status"]] and kept["status"] != "ok"
    elif tier in ("tier1", "real_users") and kept:
        assert value is not None and value < 1
    elif kept:
        assert kept == TIERS[tier].doubtful and doubtful


def test_cases_are_called_what_they_are() -> None:
    named = {tier: cases_are(summary(tier))["en"] for tier in TIERS}
    assert (named["tier0"], named["tier1"], named["judge_pipeline"]) == ("texts", "questions", "answers")

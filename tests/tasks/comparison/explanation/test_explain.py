"""Explanations: planted changes of pages, questions and labels are found, through real evaluations."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text, update

from tests.support.evaluations import evaluate, load
from tests.tasks.comparison.conftest import N, Plant
from tests.tasks.dataset.labelling.labelled import fix_evaluation_ids
from yarus.db.errors import InputError
from yarus.db.tables import evaluation
from yarus.metrics.table import METRICS
from yarus.tasks.comparison.explanation.explain import explain
from yarus.tasks.comparison.explanation.largest_changes import explanation_sentences
from yarus.tasks.models.stand_ins import JUDGE_NAME

TOPICS = ("общежитие", "стипендия", "библиотека", "расписание", "спортзал", "столовая")
PAGES, ASKED = 8, 3
URL = "https://wiki.example/pages/viewpage.action?pageId={}"
WORDS = ("справка", "договор", "заявка", "пропуск", "квитанция", "график", "анкета", "льгота")
Row = dict[str, Any]
pytestmark = pytest.mark.usefixtures("at_home")
BREADTH = pytest.mark.slow("breadth: other changes")


def pages() -> list[Row]:
    return [
        {
            "id": f"c{t}{p}",
            "confluence_url": URL.format(f"{t}{p}"),
            "text": f"{word}: {topic}, окно {t}{p}, корпус {topic}{p}.",
        }
        for t, topic in enumerate(TOPICS)
        for p, word in enumerate(WORDS)
    ]


def questions(topics: range = range(len(TOPICS)), per_page: int = ASKED) -> list[Row]:
    return [
        {
            "id": f"{t}-{p}-{n}",
            "question": f"{TOPICS[t]}, {word}, вариант {n}?",
            "relevant_urls": [URL.format(f"{t}{p}")],
            "ground_truth_answer": f"{TOPICS[t]}, окно {t}{p}, корпус {TOPICS[t]}{p}.",
            "cluster": TOPICS[t],
            "answerable": True,
            "origin": "manual",
        }
        for t in topics
        for p, word in enumerate(WORDS)
        for n in range(per_page)
    ]


def edited(engine: Engine, source: str) -> None:
    """Remove from the pages of the second topic the texts that they are found by."""
    _execute(engine, f"UPDATE source_{source}.chunk SET text = 'Раздел переехал.' WHERE id LIKE 'c1%'")


def removed(engine: Engine, source: str) -> None:
    _execute(engine, f"DELETE FROM source_{source}.chunk WHERE id LIKE 'c1%'")


def duplicated(engine: Engine, source: str) -> None:
    """Add copies of the pages under other addresses, which rank first."""
    _execute(
        engine,
        f"INSERT INTO source_{source}.chunk (id, confluence_url, text) "
        f"SELECT 'a' || id, confluence_url || '000', text FROM source_{source}.chunk WHERE id LIKE 'c1%'",
    )


def _execute(engine: Engine, statement: str) -> None:
    with engine.begin() as connection:
        connection.execute(text(statement))


def evaluate_source(source: str, night: str, tier: str = "tier1", **more: Any) -> str:
    """Return the id of an evaluation of a source as it is now."""
    with fix_evaluation_ids(f"{source}_{night}"):
        return str(evaluate(tier, source=source, **more)["evaluation_id"])


@pytest.mark.parametrize(
    ("change", "tier", "more"),
    [
        (edited, "tier1", {}),
        pytest.param(duplicated, "tier1", {"merge_duplicates": False}, marks=BREADTH),
        pytest.param(removed, "tier3", {"unit": "page"}, marks=BREADTH),
    ],
)
def test_explain_names_changed_pages_as_cause(
    tmp_path: Path, engine: Engine, change: Callable[[Engine, str], None], tier: str, more: Row
) -> None:
    source = f"moved_{change.__name__}"
    load(tmp_path, source, questions(), pages())
    before = evaluate_source(source, "a", tier, **more)
    change(engine, source)
    after = evaluate_source(source, "b", tier, **more)
    explanation = explain(engine, before, after)
    metric = {"tier1": "hit_rate@1", "tier3": "avg_e2e_score"}[tier]
    explained = explanation["metrics"][metric]
    assert explained["difference"] < -0.03
    assert explained["questions"]["value"] == pytest.approx(0, abs=1e-9)
    assert explained["answers"] is not None and explained["answers"]["ci_high"] < 0
    assert explained["page_changes"] is not None
    fate = explained["page_changes"][change.__name__]  # type: ignore[index]
    assert fate["ci_high"] < 0 and fate["pages"] == PAGES and fate["topics"] == ["стипендия"]
    assert fate["value"] == pytest.approx(explained["answers"]["value"], abs=0.03)
    assert {page["page_change"] for page in explained["pages"]} == {change.__name__}
    assert all(case["case_id"].startswith(f"{source}:1-") for case in explained["cases"])
    assert explanation["corpus"] is not None and explanation["corpus"][change.__name__] == PAGES  # type: ignore[index]
    text_of_sentences = " ".join(explanation_sentences(explanation, "ru"))
    assert {"edited": "изменены", "duplicated": "повторены", "removed": "удалены"}[change.__name__] in text_of_sentences
    assert "стипендия" in text_of_sentences


@BREADTH
def test_explain_lists_lost_questions_of_removed_pages(tmp_path: Path, engine: Engine) -> None:
    source = load(tmp_path, "moved_stale", questions(), pages())
    before = evaluate_source(source, "a")
    removed(engine, source)
    after = evaluate_source(source, "b")
    explanation = explain(engine, before, after)
    assert [
        (lost["status"], lost["page_change"], lost["n"], lost["topics"]) for lost in explanation["no_longer_measured"]
    ] == [("stale_label", "removed", PAGES * ASKED, ["стипендия"])]
    assert "Больше не измерить вопросов: 24" in " ".join(explanation_sentences(explanation, "ru"))


@BREADTH
def test_stages_add_up_to_the_change_of_answers(tmp_path: Path, engine: Engine) -> None:
    source = load(tmp_path, "moved_stages", questions(), pages())
    before = evaluate_source(source, "a", "tier3")
    edited(engine, source)
    after = evaluate_source(source, "b", "tier3")
    explained = explain(engine, before, after)["metrics"]["avg_e2e_score"]
    assert explained["stages"] is not None and explained["answers"] is not None
    assert sum(part["value"] for part in explained["stages"].values()) == pytest.approx(explained["answers"]["value"])
    assert explained["stages"]["retrieval"]["ci_high"] < 0


@BREADTH
def test_explain_names_other_questions_and_unserved_topic(tmp_path: Path, engine: Engine) -> None:
    source = load(tmp_path, "moved_mix", questions(range(3)), pages()[: 5 * PAGES])
    before = evaluate_source(source, "a")
    load(tmp_path, source, questions(range(5, 6)), pages()[: 5 * PAGES])  # a topic without pages
    for page in range(PAGES):  # their labels are pages of another topic
        _execute(
            engine,
            f"UPDATE source_{source}.annotation SET relevant_urls = '[\"{URL.format(f'0{page}')}\"]' "
            f"WHERE question_id LIKE '5-{page}-%'",
        )
    after = evaluate_source(source, "b")
    explanation = explain(engine, before, after)
    explained = explanation["metrics"]["hit_rate@1"]
    assert explained["difference"] < -0.1
    assert explained["answers"] is not None and explained["answers"]["value"] == 0
    assert explained["questions"]["ci_high"] < 0
    assert explained["topics"][0]["topic"] == "столовая"
    assert [topic["topic"] for topic in explanation["new_topics"]] == ["столовая"]
    assert "другие вопросы" in next(explanation_sentences(explanation, "ru"))


@pytest.mark.parametrize(
    ("model", "columns", "topics"),
    [
        ("gpt", {}, ["pool"]),
        (JUDGE_NAME, {}, []),
        (JUDGE_NAME, {"hit_rate@1": [1.0] * N}, []),
        (JUDGE_NAME, {"hit_rate@1": [0.0] * N}, ["pool"]),
    ],
)
def test_new_topics_ignore_stand_in_metrics(
    engine: Engine, plant: Plant, model: str, columns: Row, topics: list[str]
) -> None:
    scores = {"e2e_score": [0.0] * N, "semantic_similarity": [0.9] * N} | columns
    a = plant("tier3", cluster=["library"] * N, **scores)
    cases = {"case_id": [f"planted:new{i}" for i in range(N)], "cluster": ["pool"] * N}
    b = plant("tier3", comparability={"cases": {"sha256": "d"}}, **cases, **scores)
    judge = {"model": model, "prompts": {METRICS["avg_e2e_score"].opinion: "hash"}}
    with engine.begin() as connection:
        connection.execute(update(evaluation).where(evaluation.c.id.in_([a, b])).values(resolved={"judge": judge}))
    assert [topic["topic"] for topic in explain(engine, a, b)["new_topics"]] == topics


@BREADTH
def test_relabelled_questions_count_as_other_questions(tmp_path: Path, engine: Engine) -> None:
    source = load(tmp_path, "moved_labels", questions(), pages())
    before = evaluate_source(source, "a")
    _execute(
        engine,
        f"UPDATE source_{source}.annotation SET relevant_urls = '[\"{URL.format('00')}\"]' "
        f"WHERE question_id LIKE '2-%'",
    )
    after = evaluate_source(source, "b")
    explanation = explain(engine, before, after)
    assert explanation["n_relabelled"] == PAGES * ASKED
    assert explanation["metrics"]["hit_rate@1"]["n_common"] == len(questions()) - PAGES * ASKED


def test_explain_rejects_other_differences_unless_forced(tmp_path: Path, engine: Engine) -> None:
    source = load(tmp_path, "moved_units", questions(), pages())
    before = evaluate_source(source, "a")
    after = evaluate_source(source, "b", k=20)
    with pytest.raises(InputError, match="differ in more than their questions"):
        explain(engine, before, after)
    explanation = explain(engine, before, after, force=True)
    assert [part["part"] for part in explanation["key_differences"]] and json.dumps(explanation)
    with pytest.raises(InputError, match="one of tier1's headline metrics"):
        explain(engine, before, after, force=True, only=["hit_rate@7"])


def test_answers_and_stages_are_null_without_common_kinds(tmp_path: Path, engine: Engine) -> None:
    """Explain a change of all questions and topics: JSON has null, not a number."""
    source = load(tmp_path, "moved_all", questions(range(2)), pages())
    before = evaluate_source(source, "a", "tier3")
    _execute(engine, f"DELETE FROM source_{source}.annotation")
    _execute(engine, f"DELETE FROM source_{source}.question_answer")
    load(tmp_path, source, questions(range(3, 6)), pages())
    after = evaluate_source(source, "b", "tier3")
    explanation = explain(engine, before, after)
    metric = explanation["metrics"]["avg_e2e_score"]
    assert (metric["n_common"], metric["answers"], metric["stages"], metric["page_changes"]) == (0, None, None, None)
    assert metric["questions"]["value"] == pytest.approx(metric["difference"])
    assert json.dumps(explanation, allow_nan=False)
    assert "ни одного вида вопросов" in next(explanation_sentences(explanation, "ru"))


@BREADTH
def test_topics_come_from_words_without_annotations(tmp_path: Path, engine: Engine) -> None:
    unannotated = [{name: value for name, value in row.items() if name != "cluster"} for row in questions()]
    source = load(tmp_path, "moved_words", unannotated, pages())
    before = evaluate_source(source, "a")
    edited(engine, source)
    after = evaluate_source(source, "b")
    explanation = explain(engine, before, after)
    assert explanation["topic_source"] == "page"
    load(tmp_path, source, [unannotated[0] | {"id": "new", "question": "Стипендия, справка, вариант нов?"}], [])
    after = evaluate_source(source, "c")
    explanation = explain(engine, before, after)
    assert explanation["topic_source"] == "words"
    fates = explanation["metrics"]["hit_rate@1"]["page_changes"]
    assert fates is not None and fates["edited"]["ci_high"] < 0 and len(fates["edited"]["topics"]) == 3

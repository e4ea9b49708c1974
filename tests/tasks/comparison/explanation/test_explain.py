"""What moved: planted changes of pages, of questions and of labels are named, through evaluations as they are made."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from tests.support.evaluations import evaluate, load
from tests.tasks.dataset.labelling.labelled import named
from yarus.db.errors import InputError
from yarus.tasks.comparison.explanation.explain import explain
from yarus.tasks.comparison.explanation.largest import sentences

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


def questions(topics: range = range(len(TOPICS)), asked: int = ASKED) -> list[Row]:
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
        for n in range(asked)
    ]


def edited(engine: Engine, source: str) -> None:
    """The pages of the second topic lose what they are found by."""
    _run(engine, f"UPDATE source_{source}.chunk SET text = 'Раздел переехал.' WHERE id LIKE 'c1%'")


def removed(engine: Engine, source: str) -> None:
    _run(engine, f"DELETE FROM source_{source}.chunk WHERE id LIKE 'c1%'")


def duplicated(engine: Engine, source: str) -> None:
    """They stand under other addresses too, which come first."""
    _run(
        engine,
        f"INSERT INTO source_{source}.chunk (id, confluence_url, text) "
        f"SELECT 'a' || id, confluence_url || '000', text FROM source_{source}.chunk WHERE id LIKE 'c1%'",
    )


def _run(engine: Engine, statement: str) -> None:
    with engine.begin() as connection:
        connection.execute(text(statement))


def measured(source: str, night: str, tier: str = "tier1", **more: Any) -> str:
    """The id of an evaluation of a source as it is now."""
    with named(f"{source}_{night}"):
        return str(evaluate(tier, source=source, **more)["evaluation_id"])


@pytest.mark.parametrize(
    ("change", "tier", "more"),
    [
        (edited, "tier1", {}),
        pytest.param(duplicated, "tier1", {"twins": False}, marks=BREADTH),
        pytest.param(removed, "tier3", {"unit": "page"}, marks=BREADTH),
    ],
)
def test_what_was_done_to_the_pages_of_a_topic_is_named_as_the_cause(
    tmp_path: Path, engine: Engine, change: Callable[[Engine, str], None], tier: str, more: Row
) -> None:
    source = f"moved_{change.__name__}"
    load(tmp_path, source, questions(), pages())
    before = measured(source, "a", tier, **more)
    change(engine, source)
    after = measured(source, "b", tier, **more)
    found = explain(engine, before, after)
    metric = {"tier1": "hit_rate@1", "tier3": "avg_e2e_score"}[tier]
    one = found["metrics"][metric]
    assert one["difference"] < -0.03
    assert one["questions"]["value"] == pytest.approx(0, abs=1e-9)
    assert one["answers"] is not None and one["answers"]["ci_high"] < 0
    assert one["fates"] is not None
    fate = one["fates"][change.__name__]  # type: ignore[index]
    assert fate["ci_high"] < 0 and fate["pages"] == PAGES and fate["topics"] == ["стипендия"]
    assert fate["value"] == pytest.approx(one["answers"]["value"], abs=0.03)
    assert {page["fate"] for page in one["pages"]} == {change.__name__}
    assert all(case["case_id"].startswith(f"{source}:1-") for case in one["cases"])
    assert found["corpus"] is not None and found["corpus"][change.__name__] == PAGES  # type: ignore[index]
    said = " ".join(sentences(found, "ru"))
    assert {"edited": "изменены", "duplicated": "повторены", "removed": "удалены"}[change.__name__] in said
    assert "стипендия" in said


@BREADTH
def test_questions_whose_pages_are_gone_are_named_though_no_number_fell(tmp_path: Path, engine: Engine) -> None:
    source = load(tmp_path, "moved_stale", questions(), pages())
    before = measured(source, "a")
    removed(engine, source)
    after = measured(source, "b")
    found = explain(engine, before, after)
    assert [(one["status"], one["fate"], one["n"], one["topics"]) for one in found["lost"]] == [
        ("stale_label", "removed", PAGES * ASKED, ["стипендия"])
    ]
    assert "Больше не измерить вопросов: 24" in " ".join(sentences(found, "ru"))


@BREADTH
def test_stages_add_up_to_what_the_answers_changed(tmp_path: Path, engine: Engine) -> None:
    source = load(tmp_path, "moved_stages", questions(), pages())
    before = measured(source, "a", "tier3")
    edited(engine, source)
    after = measured(source, "b", "tier3")
    one = explain(engine, before, after)["metrics"]["avg_e2e_score"]
    assert one["stages"] is not None and one["answers"] is not None
    assert sum(part["value"] for part in one["stages"].values()) == pytest.approx(one["answers"]["value"])
    assert one["stages"]["retrieval"]["ci_high"] < 0


@BREADTH
def test_a_log_of_other_questions_is_told_apart_and_a_new_topic_that_nothing_serves_is_named(
    tmp_path: Path, engine: Engine
) -> None:
    source = load(tmp_path, "moved_mix", questions(range(3)), pages()[: 5 * PAGES])
    before = measured(source, "a")
    load(tmp_path, source, questions(range(5, 6)), pages()[: 5 * PAGES])  # a topic that no page is about
    for page in range(PAGES):  # what they are labelled with says nothing of it
        _run(
            engine,
            f"UPDATE source_{source}.annotation SET relevant_urls = '[\"{URL.format(f'0{page}')}\"]' "
            f"WHERE question_id LIKE '5-{page}-%'",
        )
    after = measured(source, "b")
    found = explain(engine, before, after)
    one = found["metrics"]["hit_rate@1"]
    assert one["difference"] < -0.1
    assert one["answers"] is not None and one["answers"]["value"] == 0
    assert one["questions"]["ci_high"] < 0
    assert one["topics"][0]["topic"] == "столовая"
    assert [topic["topic"] for topic in found["new_topics"]] == ["столовая"]
    assert "другие вопросы" in next(sentences(found, "ru"))


@BREADTH
def test_other_labels_make_it_another_question(tmp_path: Path, engine: Engine) -> None:
    source = load(tmp_path, "moved_labels", questions(), pages())
    before = measured(source, "a")
    _run(
        engine,
        f"UPDATE source_{source}.annotation SET relevant_urls = '[\"{URL.format('00')}\"]' "
        f"WHERE question_id LIKE '2-%'",
    )
    after = measured(source, "b")
    found = explain(engine, before, after)
    assert found["n_relabelled"] == PAGES * ASKED
    assert found["metrics"]["hit_rate@1"]["n_common"] == len(questions()) - PAGES * ASKED


def test_what_differs_in_more_than_its_questions_is_refused(tmp_path: Path, engine: Engine) -> None:
    source = load(tmp_path, "moved_units", questions(), pages())
    before = measured(source, "a")
    after = measured(source, "b", k=20)
    with pytest.raises(InputError, match="differ in more than their questions"):
        explain(engine, before, after)
    found = explain(engine, before, after, force=True)
    assert [part["part"] for part in found["differs"]] and json.dumps(found)
    with pytest.raises(InputError, match="one of tier1's headline metrics"):
        explain(engine, before, after, force=True, only=["hit_rate@7"])


def test_no_kind_in_common_leaves_answers_and_stages_untold(tmp_path: Path, engine: Engine) -> None:
    """Every question is new, and so is every topic: JSON has null, no number."""
    source = load(tmp_path, "moved_all", questions(range(2)), pages())
    before = measured(source, "a", "tier3")
    _run(engine, f"DELETE FROM source_{source}.annotation")
    _run(engine, f"DELETE FROM source_{source}.question_answer")
    load(tmp_path, source, questions(range(3, 6)), pages())
    after = measured(source, "b", "tier3")
    found = explain(engine, before, after)
    one = found["metrics"]["avg_e2e_score"]
    assert (one["n_common"], one["answers"], one["stages"], one["fates"]) == (0, None, None, None)
    assert one["questions"]["value"] == pytest.approx(one["difference"])
    assert json.dumps(found, allow_nan=False)
    assert "ни одного вида вопросов" in next(sentences(found, "ru"))


@BREADTH
def test_questions_without_topics_are_grouped_by_their_words(tmp_path: Path, engine: Engine) -> None:
    plain = [{name: value for name, value in row.items() if name != "cluster"} for row in questions()]
    source = load(tmp_path, "moved_words", plain, pages())
    before = measured(source, "a")
    edited(engine, source)
    after = measured(source, "b")
    found = explain(engine, before, after)
    assert found["topics_by"] == "page"
    load(tmp_path, source, [plain[0] | {"id": "new", "question": "Стипендия, справка, вариант нов?"}], [])
    after = measured(source, "c")
    found = explain(engine, before, after)
    assert found["topics_by"] == "words"
    fates = found["metrics"]["hit_rate@1"]["fates"]
    assert fates is not None and fates["edited"]["ci_high"] < 0 and len(fates["edited"]["topics"]) == 3

"""What labels do: corrected means beside judged ones, in every place where a metric is named."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.evaluations import Document, evaluate, rows_of, use
from tests.tasks.dataset.labelling.labelled import (
    RATE,
    SENSITIVITY,
    SPECIFICITY,
    evaluated,
    good,
    label,
    models,
    source_of,
)
from yarus.db.errors import InputError
from yarus.flows.terminal.differences.gate import print_gate
from yarus.flows.terminal.summary import print_summary
from yarus.tasks.comparison.compare import compare
from yarus.tasks.comparison.gate import gate
from yarus.tasks.comparison.gate_rules import Policy, Rule
from yarus.tasks.comparison.trend import trend
from yarus.tasks.config.connections import database
from yarus.tasks.dataset.labelling.plan import plan
from yarus.tasks.evaluation.export import export
from yarus.tasks.evaluation.summary import summary

NAME = "avg_faithfulness_corrected"


@pytest.fixture
def night(at_home: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Document]:
    with models():
        yield evaluated(tmp_path, source_of(request))


def again(night: Document) -> Document:
    return evaluate("tier2", source=night["source"])


def test_a_corrected_mean_stands_beside_the_judges(night: Document, capsys: pytest.CaptureFixture[str]) -> None:
    label(night["evaluation_id"], 120)
    found = summary(database(), night["evaluation_id"])["metrics"]
    names = list(found)
    assert names.index(NAME) == names.index("avg_faithfulness") + 1
    assert [name for name in names if name.endswith("_corrected")] == [NAME]
    one = found[NAME]
    assert (one["n_labels"], one["n_scored"], one["judge"]) == (120, 120, None)
    assert one["ci_low"] < one["value"] < one["ci_high"]
    assert one["value"] == pytest.approx(RATE, abs=0.15)  # who is drawn goes by the evaluation's id: four deviations
    assert found["avg_faithfulness"]["judge"] == "missing" and found["avg_faithfulness"]["grade"] is None
    assert one["grade"] in ("attention", "good")  # of people's word, with its interval
    said = one["labels"]
    assert said["shares"]["sensitivity"] == pytest.approx(SENSITIVITY, abs=0.1)
    assert said["shares"]["specificity"] == pytest.approx(SPECIFICITY, abs=0.2)
    print_summary(summary(database(), night["evaluation_id"]), "en")
    shown = " ".join(capsys.readouterr().out.split())
    assert "corrected by labels of 120 answers; on average the judge differs from people by +0" in " ".join(
        shown.split()
    )


@pytest.mark.slow("breadth: another effect of labels")
def test_labels_of_a_night_correct_the_next_and_a_new_judge_voids_them(
    night: Document, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    label(night["evaluation_id"], 60)
    second = again(night)
    one = second["metrics"][NAME]
    assert (one["n_labels"], one["labels"]["n_others"], one["labels"]["acted_on"]) == (60, 60, False)
    assert one["value"] == pytest.approx(RATE, abs=0.2)
    assert one["grade"] is None  # nobody has looked at these answers
    target = tmp_path / "metrics.jsonl"
    export(database(), second["evaluation_id"], target, metrics=True)
    rows = [json.loads(line) for line in target.read_text().splitlines()]
    assert next(row for row in rows if row["metric"] == NAME)["value"] == one["value"]
    use(monkeypatch, {"YARUS_JUDGE__TEMPERATURE": "0.3"})
    assert NAME not in again(night)["metrics"]


@pytest.mark.slow("breadth: another effect of labels")
def test_its_own_labels_take_the_place_of_others_when_there_are_enough(night: Document) -> None:
    label(night["evaluation_id"], 60)
    second = again(night)["evaluation_id"]

    def labels() -> tuple[int, int, bool]:
        one = summary(database(), second)["metrics"][NAME]
        of = one["labels"]
        # By which answers were drawn, 30 decide a grade or are too few for any; what is not acted on has neither.
        assert of["acted_on"] == (one["grade"] is not None or one["ungraded"] == "too few")
        return of["n_labels"], of["n_own"], of["acted_on"]

    session = label(second, 29)
    assert labels() == (60, 29, False)  # the value is still that of the others'
    assert session.progress("anna")["estimate"]["n_labels"] == 29  # the page tells of these answers alone
    label(second, 1)
    assert labels() == (30, 30, True)
    label(second, 90)
    assert summary(database(), second)["metrics"][NAME]["grade"] is not None


def test_the_last_label_taken_back_takes_the_value_with_it(night: Document) -> None:
    session = label(night["evaluation_id"], 2)
    assert summary(database(), night["evaluation_id"])["metrics"][NAME]["n_labels"] == 2
    session.undo("anna")
    one = summary(database(), night["evaluation_id"])["metrics"][NAME]
    assert (one["value"], one["reason"], one["n_labels"]) == (None, "1 label; two are needed", 1)
    session.undo("anna")
    assert NAME not in summary(database(), night["evaluation_id"])["metrics"]


@pytest.mark.slow("breadth: another effect of labels")
def test_a_gate_waits_for_labels(night: Document, capsys: pytest.CaptureFixture[str]) -> None:
    rules = (Rule(NAME, "floor", 0.4), Rule(NAME, "floor", 0.95), Rule(NAME, "no regression"))
    policy = Policy("gate.toml", {}, rules)
    second = again(night)

    def verdicts() -> list[tuple[str, int | None]]:
        found = gate(database(), second["evaluation_id"], policy, baseline=night["evaluation_id"])
        print_gate(found, "en")
        return [(rule["verdict"], rule["needs"]) for rule in found["rules"]]

    label(night["evaluation_id"], 100)  # of other answers, which say nothing of a difference
    assert verdicts() == [("inconclusive", 30), ("inconclusive", 30), ("inconclusive", 30)]
    label(second["evaluation_id"], 12)
    assert verdicts()[0] == ("inconclusive", 18)
    assert "too few labels of people; needs about 18 more labels" in " ".join(capsys.readouterr().out.split())
    label(second["evaluation_id"], 100)
    assert [verdict for verdict, _ in verdicts()][:2] == ["pass", "fail"]
    assert gate(database(), second["evaluation_id"], policy)["rules"][2]["reason"] is None


@pytest.mark.slow("breadth: another effect of labels")
def test_a_comparison_names_it(night: Document) -> None:
    second = again(night)
    ids = night["evaluation_id"], second["evaluation_id"]
    none = compare(database(), *ids, only=[NAME])["metrics"]
    assert list(none) == ["avg_faithfulness", NAME]
    assert (none[NAME]["verdict"], none[NAME]["reason"]) == ("inconclusive", "too few labels of people")
    label(ids[0], 60)
    assert compare(database(), *ids, only=[NAME])["metrics"][NAME]["reason"] == "too few labels of people"
    label(ids[1], 60)
    one = compare(database(), *ids, only=[NAME])["metrics"][NAME]
    assert one["ci_low"] < one["difference"] < one["ci_high"] and abs(one["difference"]) < 0.25
    assert (one["n"], one["reason"]) == (60, None)
    assert NAME not in compare(database(), *ids)["metrics"]
    with pytest.raises(InputError, match="no metric 'avg_bleu_corrected'"):
        compare(database(), *ids, only=["avg_bleu_corrected"])


@pytest.mark.slow("breadth: another effect of labels")
def test_its_history_is_by_the_labels_that_there_are_now(night: Document) -> None:
    second = again(night)
    label(second["evaluation_id"], 40)
    nights = trend(database(), NAME, source=night["source"])["nights"]
    assert [one["evaluation_id"] for one in nights] == [night["evaluation_id"], second["evaluation_id"]]
    assert {one["n_scored"] for one in nights} == {40}


@pytest.mark.slow("breadth: another effect of labels")
def test_a_plan_of_labels_by_what_is_known_of_the_judge(night: Document) -> None:
    blind = plan(database(), night["evaluation_id"], "avg_faithfulness", 0.2)
    assert (blind["basis"], blind["n_own"], blind["correlation"], blind["width_now"]) == ("nothing", 0, 0, None)
    assert blind["needed"] == blind["needed_alone"]
    label(night["evaluation_id"], 100)
    known = plan(database(), night["evaluation_id"], "avg_faithfulness", 0.2)
    assert known["basis"] == "labels" and 0.1 < known["correlation"] < 0.9
    assert known["needed"] is not None and known["needed_alone"] is not None
    assert known["needed"] <= known["needed_alone"]
    assert known["missing"] == max(0, known["needed"] - 100)
    with pytest.raises(ValueError, match="a width lies above 0 and below 1, got 1"):
        plan(database(), night["evaluation_id"], None, 1.5)


def test_people_label_the_truth(night: Document) -> None:
    """What the other tests stand on: seven of ten answers are good, and the judge is off."""
    asked = [row["question"] for row in rows_of(night)]
    assert sum(map(good, asked)) / len(asked) == pytest.approx(RATE, abs=0.08)
    assert night["metrics"]["avg_faithfulness"]["value"] != pytest.approx(RATE, abs=0.05)

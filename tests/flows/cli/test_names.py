"""Check names and tags of evaluations: set with the run or later, searched for, and shown as plain text."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from tests.support.command_line import ENGLISH, CommandLine, assert_refused, run_here
from tests.support.evaluation_history import make_source_name, write_evaluation_with_cases, write_evaluations
from tests.support.evaluations import evaluate
from tests.support.json_schemas import check_json
from yarus.db import journal
from yarus.db.errors import InputError
from yarus.tasks.config.flow_parameters import NightlyParameters
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.repeats import resolve_repeated_parameters
from yarus.tasks.report.write import write_index, write_report

EVIL = "[red]<img src=x onerror='window.planted=1'>"


def write_evaluation(engine: Engine, folder: Path, source: str, night: int = 0, **labels: Any) -> str:
    return write_evaluation_with_cases(
        engine, folder, source, {"mrr": [1.0, 0.5]}, night=night, statuses={"ok": 2}, **labels
    )


def test_name_and_tags_are_stored_and_do_not_change_key(yarus: CommandLine, engine: Engine, at_home: Path) -> None:
    unnamed = evaluate("tier1", limit=20)
    arguments = ("run", "tier1", "--limit", "20", "--json")
    summary = yarus(*arguments, "--name", " Перед выпуском 2.1 ", "--tag", "ночь", "--tag", "b", "--tag", "b").json
    assert (unnamed["name"], unnamed["tags"]) == (None, [])
    assert (summary["name"], summary["tags"]) == ("Перед выпуском 2.1", ["ночь", "b"])
    assert summary["comparability_key"] == unnamed["comparability_key"]
    with engine.connect() as connection:
        query = "SELECT DISTINCT name, tags FROM yarus.{} WHERE evaluation_id = :id AND 'ночь' = ANY(tags)"
        for view in ("latest", "trend"):
            rows = connection.execute(text(query.format(view)), {"id": summary["evaluation_id"]}).all()
            assert [tuple(row) for row in rows] == [("Перед выпуском 2.1", ["ночь", "b"])], view
    assert run_here("show", "Перед выпуском 2.1", "--json").json["evaluation_id"] == summary["evaluation_id"]
    repeated, _ = resolve_repeated_parameters(engine, TIERS["tier1"].parameters(name="другое"))
    assert repeated.name == "другое"


def test_nightly_passes_name_and_tags_to_tiers() -> None:
    night = NightlyParameters(name="ночь", tags="a, b")  # type: ignore[arg-type]  # as the command line and --set give them
    for tier in night.tiers:
        assert (night.of(tier).name, night.of(tier).tags) == ("ночь", ["a", "b"]), tier


def test_name_is_found_after_ids_and_before_parts_of_ids(engine: Engine, tmp_path: Path) -> None:
    source = make_source_name()
    first = write_evaluation(engine, tmp_path, source, name=f"named {source}")
    part = first[-12:]
    second = write_evaluation(engine, tmp_path, source, 1, name=part)
    third = write_evaluation(engine, tmp_path, source, 2, name=first)
    assert journal.find_evaluation(engine, f"named {source}")["id"] == first
    assert journal.find_evaluation(engine, part)["id"] == second
    assert journal.find_evaluation(engine, first)["id"] == first
    fourth = write_evaluation(engine, tmp_path, source, 3, name=f"named {source}")
    with pytest.raises(InputError, match=f"several evaluations are called 'named {source}'.*{fourth}, {first}"):
        journal.find_evaluation(engine, f"named {source}")
    assert third != first


def test_runs_and_trend_filter_by_name_and_tag(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    source, tag = make_source_name(), make_source_name()
    ids = [write_evaluation(engine, tmp_path, source, night, tags=[tag] * (night % 2)) for night in range(4)]
    name = f"name of {source}"
    journal.update_evaluation(engine, ids[2], name=name)
    assert {row["evaluation_id"] for row in run_here("runs", "--tag", tag, "--json").json} == {ids[1], ids[3]}
    assert run_here("runs", "--tag", tag, "--tag", "other", "--json").json == []
    assert [row["evaluation_id"] for row in run_here("runs", "--name", name, "--json").json] == [ids[2]]
    assert name in " ".join(run_here("runs", "--name", name).out.split())
    trend = run_here("trend", "mrr", "--source", source, "--tag", tag, "--json").json
    assert [(night["evaluation_id"], night["tags"]) for night in trend["nights"]] == [(ids[1], [tag]), (ids[3], [tag])]
    old, other = write_evaluations(engine, source, [0.5], tier="tier3", metric="avg_e2e_score", name="до правки"), name
    write_evaluations(
        engine, source, [0.5], tier="tier3", metric="avg_e2e_score", first_night=1, key="another key", name=other
    )
    output = run_here("trend", "avg_e2e_score", "--source", source).out
    assert f"до правки ({old[0]})" in output


def test_tag_changes_only_name_and_tags(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    evaluation_id = write_evaluation(engine, tmp_path, make_source_name(), tags=["old"])
    before = dict(journal.find_evaluation(engine, evaluation_id))
    tagged = run_here(
        "admin", "tag", evaluation_id, "--name", "После", "--tag", "new", "--tag", "new", "--untag", "old", "--json"
    )
    document = check_json("admin tag", tagged.out)
    assert document == {"evaluation_id": evaluation_id, "name": "После", "tags": ["new"]}
    after = dict(journal.find_evaluation(engine, evaluation_id))
    assert {name for name in before if before[name] != after[name]} == {"name", "tags"}
    assert run_here("admin", "tag", evaluation_id).out.strip() == f"{evaluation_id} · После #new"
    assert run_here("admin", "tag", evaluation_id, "--name", "", "--json").json["name"] is None
    assert_refused(run_here("admin", "tag", evaluation_id, "--untag", "old", env=ENGLISH), 2, ("--untag 'old'", "new"))
    assert_refused(
        run_here("admin", "tag", evaluation_id, *[word for n in range(20) for word in ("--tag", f"t{n}")], env=ENGLISH),
        2,
        ("21 tags",),
    )


@pytest.mark.parametrize(
    ("words", "messages"),
    [
        (("--name", "x" * 81), ("name", "1 to 80 characters", "this has 81")),
        (("--name", "a\nb"), ("name", "one line of printable characters")),
        (("--name", "\u202eabc"), ("name", "one line of printable characters")),
        (("--name", "last"), ("name", "'last'")),
        (("--tag", " "), ("tags", "1 to 40 characters")),
        (("--tag", "a,b"), ("tags", "a comma separates tags")),
        (tuple(word for n in range(21) for word in ("--tag", str(n))), ("tags", "20")),
        (("--resume", "x", "--name", "y"), ("--resume", "name")),
    ],
)
def test_invalid_names_and_tags_are_refused(at_home: Path, words: tuple[str, ...], messages: tuple[str, ...]) -> None:
    assert_refused(run_here("run", "tier1", *words, env=ENGLISH), 2, messages)


def test_names_and_tags_are_escaped(
    engine: Engine, at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluation_id = write_evaluation(engine, tmp_path, make_source_name(), name=EVIL, tags=["<b>tag</b>"])
    assert EVIL in run_here("show", evaluation_id).out
    page = write_report(engine, [evaluation_id], tmp_path / "page.html").path.read_text(encoding="utf-8")
    write_index(engine, tmp_path)
    index_html = "".join(part.read_text(encoding="utf-8") for part in tmp_path.glob("index*.html"))
    for html in (page, index_html):
        assert "&lt;img src=x onerror=" in html
        assert "<img src=x" not in html.replace(json.dumps(EVIL), "")
        assert "&lt;b&gt;tag&lt;/b&gt;" in html

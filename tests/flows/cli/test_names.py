"""Names and tags of evaluations: given with the run or later, found by, shown as the words that they are."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from tests.support.command_line import ENGLISH, CommandLine, here, refused
from tests.support.evaluation_history import source_name, with_cases, write
from tests.support.evaluations import evaluate
from yarus.db import journal
from yarus.db.errors import InputError
from yarus.tasks.config.flow_parameters import Nightly
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.repeats import parameters_of_repeated
from yarus.tasks.report.write import index, report

EVIL = "[red]<img src=x onerror='window.planted=1'>"


def planted(engine: Engine, folder: Path, source: str, night: int = 0, **called: Any) -> str:
    return with_cases(engine, folder, source, {"mrr": [1.0, 0.5]}, night=night, statuses={"ok": 2}, **called)


def test_a_run_has_its_name_and_tags_everywhere_and_the_same_key(
    yarus: CommandLine, engine: Engine, at_home: Path
) -> None:
    plain = evaluate("tier1", limit=20)
    asked = ("run", "tier1", "--limit", "20", "--json")
    named = yarus(*asked, "--name", " Перед выпуском 2.1 ", "--tag", "ночь", "--tag", "b", "--tag", "b").json
    assert (plain["name"], plain["tags"]) == (None, [])
    assert (named["name"], named["tags"]) == ("Перед выпуском 2.1", ["ночь", "b"])
    assert named["comparability_key"] == plain["comparability_key"]
    with engine.connect() as connection:
        of_view = "SELECT DISTINCT name, tags FROM yarus.{} WHERE evaluation_id = :id AND 'ночь' = ANY(tags)"
        for view in ("latest", "trend"):
            rows = connection.execute(text(of_view.format(view)), {"id": named["evaluation_id"]}).all()
            assert [tuple(row) for row in rows] == [("Перед выпуском 2.1", ["ночь", "b"])], view
    assert here("show", "Перед выпуском 2.1", "--json").json["evaluation_id"] == named["evaluation_id"]
    repeated, _ = parameters_of_repeated(engine, TIERS["tier1"].parameters(name="другое"))
    assert repeated.name == "другое"


def test_a_night_a_sweep_and_the_probes_give_theirs_to_each_evaluation() -> None:
    night = Nightly(name="ночь", tags="a, b")  # type: ignore[arg-type]  # as the command line and --set give them
    for tier in night.tiers:
        assert (night.of(tier).name, night.of(tier).tags) == ("ночь", ["a", "b"]), tier


def test_a_name_finds_what_it_names_after_ids_and_before_parts_of_ids(engine: Engine, tmp_path: Path) -> None:
    source = source_name()
    first = planted(engine, tmp_path, source, name=f"named {source}")
    part = first[-12:]
    second = planted(engine, tmp_path, source, 1, name=part)
    third = planted(engine, tmp_path, source, 2, name=first)
    assert journal.find(engine, f"named {source}")["id"] == first
    assert journal.find(engine, part)["id"] == second
    assert journal.find(engine, first)["id"] == first
    fourth = planted(engine, tmp_path, source, 3, name=f"named {source}")
    with pytest.raises(InputError, match=f"several evaluations are called 'named {source}'.*{fourth}, {first}"):
        journal.find(engine, f"named {source}")
    assert third != first


def test_runs_and_trend_are_filtered_by_them(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    source, tag = source_name(), source_name()
    ids = [planted(engine, tmp_path, source, night, tags=[tag] * (night % 2)) for night in range(4)]
    name = f"name of {source}"
    journal.describe(engine, ids[2], name=name)
    assert {row["evaluation_id"] for row in here("runs", "--tag", tag, "--json").json} == {ids[1], ids[3]}
    assert here("runs", "--tag", tag, "--tag", "other", "--json").json == []
    assert [row["evaluation_id"] for row in here("runs", "--name", name, "--json").json] == [ids[2]]
    assert name in " ".join(here("runs", "--name", name).out.split())
    shown = here("trend", "mrr", "--source", source, "--tag", tag, "--json").json
    assert [(night["evaluation_id"], night["tags"]) for night in shown["nights"]] == [(ids[1], [tag]), (ids[3], [tag])]
    first, other = write(engine, source, [0.5], tier="tier3", metric="avg_e2e_score", name="до правки"), name
    write(engine, source, [0.5], tier="tier3", metric="avg_e2e_score", first_night=1, key="another key", name=other)
    said = here("trend", "avg_e2e_score", "--source", source).out
    assert f"до правки ({first[0]})" in said


def test_they_are_changed_later_and_no_result_is(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    one = planted(engine, tmp_path, source_name(), tags=["old"])
    before = dict(journal.find(engine, one))
    said = here("tag", one, "--name", "После", "--tag", "new", "--tag", "new", "--remove", "old", "--json").json
    assert said == {"evaluation_id": one, "name": "После", "tags": ["new"]}
    after = dict(journal.find(engine, one))
    assert {name for name in before if before[name] != after[name]} == {"name", "tags"}
    assert here("tag", one).out.strip() == f"{one} · После #new"
    assert here("tag", one, "--name", "", "--json").json["name"] is None
    refused(here("tag", one, "--remove", "old", env=ENGLISH), 2, ("--remove 'old'", "new"))
    refused(here("tag", one, *[word for n in range(20) for word in ("--tag", f"t{n}")], env=ENGLISH), 2, ("21 tags",))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--name", "x" * 81), ("name", "1 to 80 characters", "this has 81")),
        (("--name", "a\nb"), ("name", "one line of characters")),
        (("--name", "\u202eabc"), ("name", "one line of characters")),
        (("--name", "last"), ("name", "'last'")),
        (("--tag", " "), ("tags", "1 to 40 characters")),
        (("--tag", "a,b"), ("tags", "a comma parts tags")),
        (tuple(word for n in range(21) for word in ("--tag", str(n))), ("tags", "20")),
        (("--resume", "x", "--name", "y"), ("--resume", "name")),
    ],
)
def test_what_cannot_be_one_is_refused(at_home: Path, words: tuple[str, ...], said: tuple[str, ...]) -> None:
    refused(here("run", "tier1", *words, env=ENGLISH), 2, said)


def test_they_are_shown_as_text(engine: Engine, at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = planted(engine, tmp_path, source_name(), name=EVIL, tags=["<b>tag</b>"])
    assert EVIL in here("show", one).out
    page = report(engine, [one], tmp_path / "page.html").read_text(encoding="utf-8")
    index(engine, tmp_path)
    listed = "".join(part.read_text(encoding="utf-8") for part in tmp_path.glob("index*.html"))
    for html in (page, listed):
        assert "&lt;img src=x onerror=" in html
        assert "<img src=x" not in html.replace(json.dumps(EVIL), "")
        assert "&lt;b&gt;tag&lt;/b&gt;" in html

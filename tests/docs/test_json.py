"""Check that docs/schemas matches the declared types, and that commands print documents of their schemas."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import click
import pytest
from jsonschema import Draft202012Validator, ValidationError

from tests.support.command_line import CommandLine, run_here
from tests.support.evaluations import evaluate
from tests.support.json_schemas import DOCS, GENERATOR, check_json
from tests.support.texts.docs_pages import read_blocks
from yarus.__main__ import cli
from yarus.db.former_keys import FORMER_ANALYSIS_KEYS, FORMER_KEYS
from yarus.flows.cli import format_json
from yarus.flows.cli.framework.command_schema import DOCUMENTS
from yarus.tasks.config.flow_parameters import RobustnessParameters, SweepParameters
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.summary import combine_summaries


def commands(group: click.Group, before: str = "") -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")
        elif command and any("--json" in parameter.opts for parameter in command.params):
            yield f"{before}{name}"


def test_schemas_and_page_are_current() -> None:
    schemas = {path.name: path.read_text(encoding="utf-8") for path in (DOCS / "schemas").iterdir()}
    assert schemas == GENERATOR.render_schemas(), "docs/schemas is out of date: run python docs/generate.py"
    page = (DOCS / "json.md").read_text(encoding="utf-8")
    assert page == GENERATOR.render_page(), "docs/json.md is out of date, too"


def test_schemas_are_valid_and_describe_documents() -> None:
    for schema in map(json.loads, GENERATOR.render_schemas().values()):
        Draft202012Validator.check_schema(schema)
        assert schema["description"]


def test_page_example_is_valid_and_validates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example, script = read_blocks(DOCS / "json.md")
    printed = example.text.partition("\n")[2]
    check_json("gate", printed)
    (tmp_path / "docs").symlink_to(DOCS)
    (tmp_path / "gate.json").write_text(printed, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(script.text, {})  # noqa: S102 - our own page
    (tmp_path / "gate.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ValidationError):
        exec(script.text, {})  # noqa: S102


def test_every_document_prints_former_keys_beside_new_ones() -> None:
    for schema in (schema for document in DOCUMENTS.values() for schema in GENERATOR.declared(document)):
        keys = get_type_hints(schema)
        printed = json.loads(format_json({key: key for key in keys}))
        former_keys = {former: key for key, former in FORMER_KEYS.items() if key in keys}
        assert not keys.keys() & former_keys.keys(), schema.__name__
        assert printed == {key: key for key in keys} | former_keys


def test_schemas_mark_former_keys_as_deprecated() -> None:
    schemas = [json.loads(schema) for schema in GENERATOR.render_schemas().values()]
    objects = [part for schema in schemas for part in (schema, *schema.get("$defs", {}).values())]
    for key, former in FORMER_KEYS.items():
        described = [part["properties"] for part in objects if key in part.get("properties", {})]
        assert described and all(properties[former]["deprecated"] for properties in described), key


def test_stored_analyses_have_no_former_keys() -> None:
    schemas = [
        schema for command in ("corpus", "sweep", "robustness") for schema in GENERATOR.declared(DOCUMENTS[command])
    ]
    for schema in (*schemas, SweepParameters, RobustnessParameters):
        assert not get_type_hints(schema).keys() & set(FORMER_ANALYSIS_KEYS.values())


def test_commands_with_json_have_document() -> None:
    documented = {name.split(" -")[0].removesuffix(" nightly").removesuffix(" TIER") for name in DOCUMENTS}
    with_json = {"load" if name.startswith("load ") else name for name in commands(cli)}
    assert documented == with_json


def test_types_have_unique_names() -> None:
    types = list(dict.fromkeys(schema for document in DOCUMENTS.values() for schema in GENERATOR.declared(document)))
    assert len({schema.__name__ for schema in types}) == len(types)


def test_check_finds_extra_and_missing_keys() -> None:
    check_json("report", '{"report": "x.html"}')
    for wrong in ("{}", '{"report": "x.html", "more": 1}', '{"report": 1}'):
        with pytest.raises(ValidationError):
            check_json("report", wrong)
    with pytest.raises(ValidationError):
        check_json("load", '{"source": "x", "questions": {"read": 1, "more": 2}}')
    check_json("export --to", '{"evaluation_id": "x", "file": "x.csv", "rows": 1}')
    with pytest.raises(ValidationError, match="not of type 'integer'"):
        check_json("export --to", '{"evaluation_id": "x", "file": "x.csv", "rows": 1.0}')


@pytest.fixture(scope="module")
def ids(at_home_for_module: Path) -> dict[str, str]:
    """Evaluate every tier on the bundled sample, check the night's document, and return the ids by tier."""
    summaries: list[Any] = [evaluate(tier, source="sample") for tier in TIERS]
    failed = {"tier": "tier1", "state": "failed", "error": "the generator does not answer"}
    check_json("run nightly", format_json({**combine_summaries([*summaries, failed]), "report": "night.html"}))
    return {evaluation["tier"]: evaluation["evaluation_id"] for evaluation in summaries}


@pytest.mark.slow("breadth: every tier and command")
def test_night_commands_print_declared_documents(ids: dict[str, str]) -> None:
    again = check_json("run", format_json(evaluate("tier1", source="sample")))["evaluation_id"]
    for evaluation in ids.values():
        check_json("show", run_here("show", evaluation, "--json").out)
        check_json("cases", run_here("cases", evaluation, "--json", "--limit", "3").out)
        check_json("gate", run_here("gate", evaluation, "--json").out)
    check_json("runs", run_here("runs", "--json").out)
    check_json("trend", run_here("trend", "hit_rate@1", "--json").out)
    # By id: evaluations of other tests in this database may have a later start date.
    compared = check_json("compare", run_here("compare", "previous", again, "--json").out)
    assert compared["slices"]
    check_json("explain", run_here("explain", "previous", again, "--json").out)
    check_json("corpus", run_here("corpus", "--json").out)
    check_json("report", run_here("report", "--json").out)
    check_json("alerts list", run_here("alerts", "list", "--json").out)
    check_json("alerts budget", run_here("alerts", "budget", "--json").out)
    check_json("doctor", run_here("doctor", "--json").out)
    check_json("admin prune", run_here("admin", "prune", "--older-than", "1h", "--dry-run", "--json").out)
    for tier in ("tier1", "tier2", "tier3", "nightly"):
        check_json("run TIER --dry-run", run_here("run", tier, "--dry-run", "--json").out)


@pytest.mark.slow("prefect: two commands of several runs")
def test_sweep_and_robustness_print_declared_documents(yarus: CommandLine) -> None:
    options = ("--limit", "20", "--json")
    check_json("sweep", yarus("sweep", "--retrievers", "dense,fulltext", "--tier", "tier1", *options).out)
    check_json(
        "robustness", yarus("robustness", "--perturbations", "lower,paraphrase", "--tiers", "tier1", *options).out
    )


@pytest.mark.slow("breadth: every tier and command")
def test_dataset_commands_print_declared_documents(ids: dict[str, str], tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    row_values = [
        {
            "id": str(i),
            "question": f"Где выдают справку {i}?",
            "answer": "В деканате.",
            "created_at": f"2026-01-0{i + 1}",
        }
        for i in range(4)
    ]
    rows.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in row_values), encoding="utf-8")
    check_json("load", run_here("load", "table", str(rows), "--into", "json_docs", "--json").out)
    check_json("dataset freeze", run_here("dataset", "freeze", "json_docs_a", "--source", "json_docs", "--json").out)
    check_json("load", run_here("load", "table", str(rows), "--into", "json_docs", "--json").out)
    check_json(
        "dataset freeze",
        run_here("dataset", "freeze", "json_docs_b", "--source", "json_docs", "--limit", "2", "--json").out,
    )
    check_json("dataset diff", run_here("dataset", "diff", "json_docs_a", "json_docs_b", "--json").out)
    split = (
        "dataset",
        "split",
        "json_docs_a",
        "--from-date",
        "2026-01-03",
        "--into",
        "json_docs_c",
        "json_docs_d",
        "--json",
    )
    check_json("dataset split", run_here(*split).out)
    check_json("dataset list", run_here("dataset", "list", "--json").out)
    check_json("dataset audit", run_here("dataset", "audit", "--json").out)
    check_json("dataset audit", run_here("dataset", "audit", "--evaluation", ids["tier1"], "--json").out)
    labels = str(tmp_path / "labels.csv")
    check_json(
        "dataset export-annotation",
        run_here("dataset", "export-annotation", labels, "--source", "json_docs", "--json").out,
    )
    imported = run_here("dataset", "import-annotation", labels, "--annotator", "anna", "--json")
    check_json("dataset import-annotation", imported.out)
    check_json("export --to", run_here("export", ids["tier1"], "--to", str(tmp_path / "cases.csv"), "--json").out)
    erased = run_here("admin", "prune", "--user", "nobody", "--source", "json_docs", "--dry-run", "--json")
    check_json("admin prune --user", erased.out)

"""docs/json.md is what the types of the documents say, and so is what commands print: no key more, none less."""

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from tests.support.command_line import CommandLine, here
from tests.support.evaluations import evaluate
from yarus.__main__ import cli
from yarus.flows.cli.shell.documents import DOCUMENTS
from yarus.tasks.config.tiers import TIERS
from yarus.tasks.evaluation.summary import as_json, together

Document = dict[str, Any]
DOCS = Path(__file__).parents[2] / "docs"


def module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate_json", DOCS / "generate_json.py")
    assert spec and spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


GENERATOR = module()


def check(command: str, printed: str) -> Any:
    """The document that was printed, which is of the type that is declared, without a key that is not."""
    for one in GENERATOR.declared(DOCUMENTS[command]):
        if not issubclass(one, tuple | BaseModel):  # a model forbids them itself
            one.__pydantic_config__ = ConfigDict(extra="forbid")
    TypeAdapter(DOCUMENTS[command]).validate_json(printed, strict=True)
    return json.loads(printed)


def commands(group: click.Group, before: str = "") -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")
        elif command and any("--json" in parameter.opts for parameter in command.params):
            yield f"{before}{name}"


def test_the_page_is_current() -> None:
    written = (DOCS / "json.md").read_text(encoding="utf-8")
    assert written == GENERATOR.render(), "docs/json.md is out of date: run python docs/generate.py"


def test_every_command_with_json_has_its_document() -> None:
    named = {name.split(" -")[0].removesuffix(" nightly").removesuffix(" TIER") for name in DOCUMENTS}
    with_json = {"load" if name.startswith("load ") else name for name in commands(cli)}
    assert named == with_json


def test_no_two_types_have_one_name() -> None:
    types = list(dict.fromkeys(one for document in DOCUMENTS.values() for one in GENERATOR.declared(document)))
    assert len({one.__name__ for one in types}) == len(types)


def test_the_check_finds_a_key_too_many_and_one_that_is_missing() -> None:
    check("report", '{"report": "x.html"}')
    for wrong in ("{}", '{"report": "x.html", "more": 1}', '{"report": 1}'):
        with pytest.raises(ValidationError):
            check("report", wrong)
    with pytest.raises(ValidationError):
        check("load", '{"source": "x", "questions": {"read": 1, "more": 2}}')


@pytest.fixture(scope="module")
def ids(at_home_for_module: Path) -> dict[str, str]:
    """Every tier on the bundled sample, by tier; a night of them is of the type that is declared."""
    found: list[Any] = [evaluate(tier, source="sample") for tier in TIERS]
    failed = {"tier": "tier1", "state": "failed", "error": "the generator does not answer"}
    check("run nightly", as_json({**together([*found, failed]), "report": "night.html"}))
    return {evaluation["tier"]: evaluation["evaluation_id"] for evaluation in found}


@pytest.mark.slow("breadth: every tier and command")
def test_a_night_and_what_is_read_of_it(ids: dict[str, str]) -> None:
    again = check("run", as_json(evaluate("tier1", source="sample")))["evaluation_id"]
    for evaluation in ids.values():
        check("show", here("show", evaluation, "--json").out)
        check("cases", here("cases", evaluation, "--json", "--limit", "3").out)
        check("gate", here("gate", evaluation, "--json").out)
    check("runs", here("runs", "--json").out)
    check("trend", here("trend", "hit_rate@1", "--json").out)
    # By its name: what other tests left in this database may have been begun at a later date.
    compared = check("compare", here("compare", "previous", again, "--json").out)
    assert compared["slices"]
    check("corpus", here("corpus", "--json").out)
    check("report", here("report", "--json").out)
    check("alerts list", here("alerts", "list", "--json").out)
    check("doctor", here("doctor", "--json").out)
    check("prune", here("prune", "--older-than", "1h", "--dry-run", "--json").out)
    for tier in ("tier1", "tier2", "tier3", "nightly"):
        check("run TIER --dry-run", here("run", tier, "--dry-run", "--json").out)


@pytest.mark.slow("prefect: two commands of several runs")
def test_sweeps_and_probes(yarus: CommandLine) -> None:
    some = ("--limit", "20", "--json")
    check("sweep", yarus("sweep", "--retrievers", "dense,fulltext", "--tier", "tier1", *some).out)
    check("robustness", yarus("robustness", "--kinds", "lower,paraphrase", "--tiers", "tier1", *some).out)


@pytest.mark.slow("breadth: every tier and command")
def test_data_sets(ids: dict[str, str], tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    said = [
        {
            "id": str(i),
            "question": f"Где выдают справку {i}?",
            "answer": "В деканате.",
            "created_at": f"2026-01-0{i + 1}",
        }
        for i in range(4)
    ]
    rows.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in said), encoding="utf-8")
    check("load", here("load", "table", str(rows), "--into", "json_docs", "--json").out)
    check("dataset freeze", here("dataset", "freeze", "json_docs_a", "--source", "json_docs", "--json").out)
    check("load", here("load", "table", str(rows), "--into", "json_docs", "--json").out)
    check(
        "dataset freeze",
        here("dataset", "freeze", "json_docs_b", "--source", "json_docs", "--limit", "2", "--json").out,
    )
    check("dataset diff", here("dataset", "diff", "json_docs_a", "json_docs_b", "--json").out)
    split = ("dataset", "split", "json_docs_a", "--at", "2026-01-03", "--into", "json_docs_c", "json_docs_d", "--json")
    check("dataset split", here(*split).out)
    check("dataset list", here("dataset", "list", "--json").out)
    check("dataset audit", here("dataset", "audit", "--json").out)
    check("dataset audit", here("dataset", "audit", "--evaluation", ids["tier1"], "--json").out)
    labels = str(tmp_path / "labels.csv")
    check(
        "dataset export-annotation", here("dataset", "export-annotation", labels, "--source", "json_docs", "--json").out
    )
    taken = here("dataset", "import-annotation", labels, "--annotator", "anna", "--json")
    check("dataset import-annotation", taken.out)
    check("export --to", here("export", ids["tier1"], "--to", str(tmp_path / "cases.csv"), "--json").out)
    erased = here("prune", "--user", "nobody", "--source", "json_docs", "--dry-run", "--json")
    check("prune --user", erased.out)

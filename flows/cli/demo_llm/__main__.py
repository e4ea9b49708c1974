"""Evaluate a few English questions with a small real model as generator and judge; see `make demo-llm`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import click

from yarus.db.errors import InputError, ModelUnavailable
from yarus.db.messages import Words
from yarus.flows.cli.demo_llm.server import MODEL, PROMPTS, open_server
from yarus.flows.cli.framework.language import translate
from yarus.tasks.evaluation.findings_schema import Exam

SOURCE = "demo_llm"
QUESTIONS = Path(__file__).parent / "english.json"
RUNS = (
    ("tier2", "--limit", "6"),
    ("tier3", "--limit", "6"),
    ("judge", "--exam", "3", "--bias-probes", "false"),  # about 150 calls
)
LIMITS = {"MODEL": MODEL, "MAX_TOKENS": "48", "CONCURRENCY": "8", "TIMEOUT_S": "300"}


def build_settings(url: str) -> dict[str, str]:
    """Return the settings with which the model at an address generates and judges."""
    settings = {
        f"YARUS_{role}__{name}": value
        for role in ("GENERATOR", "JUDGE")
        for name, value in ({"BASE_URL": url} | LIMITS).items()
    }
    return settings | {"YARUS_JUDGE__PROMPT": str(PROMPTS), "HF_HUB_OFFLINE": "1"}


def describe_exam(exam: Exam) -> Words:
    """Return a line with the outcomes of an exam, and whether to trust its judge."""
    outcomes = {name: result["outcome"] for name, result in exam.items() if name != "gate"}  # the gate is a stand-in
    text = ", ".join(f"{name}: {outcome}" for name, outcome in outcomes.items())
    if set(outcomes.values()) == {"sound"}:
        return Words("This judge passed its exam: {outcomes}", outcomes=text)
    return Words("Do not believe this judge: its exam found {outcomes}", outcomes=text)


def main() -> int:
    """Run the demo and return its exit code: the first of a command that did not work, or 0."""
    click.echo(
        translate(Words("Yarus demo: {model} answers and judges on this CPU, offline, in some minutes", model=MODEL)),
        err=True,
    )
    try:
        with open_server() as url:
            return _evaluate(os.environ | build_settings(url))
    except (InputError, ModelUnavailable) as error:
        click.echo(f"yarus: {translate(error)}", err=True)
        return 3


def _evaluate(environment: dict[str, str]) -> int:
    yarus = [sys.executable, "-m", "yarus"]
    load = ("load", "squad", str(QUESTIONS), "--into", SOURCE, "--language", "en")
    for arguments in (load, *(("run", *arguments, "--source", SOURCE) for arguments in RUNS)):
        code = subprocess.run([*yarus, *arguments], env=environment, check=False).returncode
        if code > 1:  # 1: too many of the judge's replies were unreadable, which is a result here
            return code
    summary = subprocess.run([*yarus, "show", "last", "--json"], env=environment, stdout=subprocess.PIPE, check=True)
    click.echo(translate(describe_exam(json.loads(summary.stdout)["exam"])))
    return subprocess.run([*yarus, "report"], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

"""Check that the YAML, the script and the comments of docs/ci.md work as written, and `assert_gate`."""

import json
import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import yaml

from tests.support.command_line import in_shell, make_environment
from tests.support.forked import CommandResult, ForkedCommand
from tests.support.texts.docs_pages import ROOT, read_blocks

PAGE = ROOT / "docs" / "ci.md"
TEXTS = {kind: [block.text for block in read_blocks(PAGE) if block.kind == kind] for kind in ("bash", "yaml", "python")}
GITHUB, GITLAB = (yaml.safe_load(text) for text in TEXTS["yaml"])
[SCRIPT], [TEST] = TEXTS["bash"], TEXTS["python"]
NOTHING = "def retrieve(question, k):\n    return []\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Make a repository with the questions and pages of the sample, and the script of the page."""
    (tmp_path / "eval").mkdir()
    for file_name, table_name in (("questions", "question_answer"), ("pages", "chunk")):
        lines = (ROOT / "db" / "sample" / f"{table_name}.jsonl").read_text(encoding="utf-8").splitlines()
        (tmp_path / "eval" / f"{file_name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "eval" / "ci.sh").write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "finds_nothing.py").write_text(NOTHING, encoding="utf-8")
    (tmp_path / "test_gate.py").write_text(TEST, encoding="utf-8")
    return tmp_path


def test_ci_workflow_and_job_run_script_and_keep_home() -> None:
    steps = GITHUB["jobs"]["evaluate"]["steps"]
    commands = [step["run"] for step in steps if "run" in step]
    assert 'pip install "$EVALUATOR"' in commands and 'pip install "$EVALUATOR"' in GITLAB["evaluate"]["before_script"]
    assert "bash eval/ci.sh" in commands and "yarus admin stop" in commands
    caches = [step["with"] for step in steps if step.get("uses", "").startswith("actions/cache")]
    assert [cache["path"] for cache in caches] == [GITHUB["jobs"]["evaluate"]["env"]["YARUS_HOME"]] * 2
    assert [cache["key"].startswith(caches[0]["restore-keys"]) for cache in caches] == [True, True]
    assert GITHUB["permissions"] == {"contents": "read", "pull-requests": "write"}
    assert GITLAB["evaluate"]["script"] == ["bash eval/ci.sh"]
    assert GITLAB["evaluate"]["cache"]["paths"] == [
        GITLAB["evaluate"]["variables"]["YARUS_HOME"].removeprefix("$CI_PROJECT_DIR/") + "/"
    ]
    assert [rule["variables"]["CACHE_POLICY"] for rule in GITLAB["evaluate"]["rules"]] == ["pull", "pull-push"]


@pytest.mark.slow("process: it is run as it stands, three times")
def test_ci_script_accepts_first_run_and_stops_regression(
    repository: Path, home: Path, prefect_server: dict[str, str]
) -> None:
    """Run the script unchanged: first, then with a retriever that finds nothing; then the page's pytest test."""
    variables = make_environment(home) | prefect_server | {"YARUS_LANGUAGE": "en", "PYTHONPATH": str(repository)}
    variables["PYTEST_ADDOPTS"] = ""  # the options of this suite must not reach the page's test
    nothing = {"YARUS_RETRIEVER": "finds_nothing:retrieve"}

    def script(**changes: str) -> CommandResult:
        return in_shell("bash", "eval/ci.sh", env=variables | changes, folder=repository)

    def run_page_test() -> CommandResult:
        words = ("-q", "-p", "no:cacheprovider", "test_gate.py")
        return ForkedCommand(words, variables, repository, "import pytest, sys; sys.exit(pytest.main())").ran()

    first = script()
    assert first.code == 0, first.out + first.err
    comment = repository / "comparison.md"
    assert comment.read_text(encoding="utf-8") == "Nothing to compare with yet.\n"
    second = script(**nothing)
    assert second.code == 1, second.out + second.err
    comment_text = comment.read_text(encoding="utf-8")
    assert "**Worse: hit\\_rate@1 0." in comment_text
    assert "Changed: search (retriever): dense → finds\\_nothing:retrieve" in comment_text
    assert "<summary>Questions that broke: " in comment_text
    assert "<failure" in (repository / "gate.xml").read_text(encoding="utf-8")
    stopped = run_page_test()
    assert stopped.code == 1, stopped.out + stopped.err
    assert "AssertionError" in stopped.out and "hit_rate@1" in stopped.out
    accepted = ForkedCommand(("gate", "--accept", "last"), variables, repository).ran()
    assert accepted.code == 0, accepted.err
    third = script(**nothing)
    assert third.code == 0, third.out + third.err
    assert run_page_test().code == 0


def test_ci_comment_is_posted_whole(tmp_path: Path) -> None:
    """Post GitLab's comment to a fake server, and GitHub's through a fake `gh` that prints its arguments."""
    received: list[tuple[str, str, str]] = []

    class Notes(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            received.append((self.path, self.headers["PRIVATE-TOKEN"], parse_qs(body)["body"][0]))
            self.send_response(201)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    text = "## Поиск\n\n| `a & b` | +1 % |\n"
    (tmp_path / "comparison.md").write_text(text, encoding="utf-8")
    server = HTTPServer(("127.0.0.1", 0), Notes)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    variables = {"CI_API_V4_URL": f"http://127.0.0.1:{server.server_port}", "CI_PROJECT_ID": "7", "GITLAB_TOKEN": "t"}
    commands = [command for command in GITLAB["evaluate"]["after_script"] if "curl" in command]
    try:
        for command in commands:
            for more in ({}, {"CI_MERGE_REQUEST_IID": "3"}):  # on the main branch there is no merge request
                subprocess.run(
                    ["bash", "-euc", command], env=dict(os.environ) | variables | more, cwd=tmp_path, check=True
                )
    finally:
        server.shutdown()
        server.server_close()
    assert received == [("/projects/7/merge_requests/3/notes", "t", text)]
    (tmp_path / "gh").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', encoding="utf-8")
    (tmp_path / "gh").chmod(0o755)
    [command] = [step["run"] for step in GITHUB["jobs"]["evaluate"]["steps"] if "gh " in step.get("run", "")]
    path = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "NUMBER": "5"}
    gh_run = subprocess.run(
        ["bash", "-euc", command], env=path, cwd=tmp_path, text=True, capture_output=True, check=True
    )
    assert gh_run.stdout.split() == [
        "pr",
        "comment",
        "5",
        "--body-file",
        "comparison.md",
        "--edit-last",
        "--create-if-none",
    ]
    assert json.dumps(GITHUB["jobs"]["evaluate"]["steps"]).count("GH_TOKEN") == 1

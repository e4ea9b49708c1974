"""Labelling results in a browser by keys, for the newest evaluation with filled labels."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.browser import open_chromium
from tests.support.command_line import make_environment
from tests.support.evaluations import evaluate
from tests.tasks.dataset.labelling.relevance.filled import is_relevant, load_source, serve_judge
from yarus.db.stores.labels import read_labels
from yarus.tasks.config.connections import database

N_RESULTS = 60


@pytest.mark.slow("browser: sixty results by keys")
def test_results_are_labelled_by_keys(at_home: Path, home: Path, tmp_path: Path) -> None:
    with serve_judge():
        evaluated = evaluate("tier1", source=load_source(tmp_path, "label_results"), labels="llm", retriever="dense")
    process = subprocess.Popen(
        [sys.executable, "-m", "yarus", "judge", "label", "--results", "--port", "0"],
        env=make_environment(home), cwd=home, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    judgements = {}
    try:
        assert process.stdout is not None
        address = re.search(r"http://\S+", process.stdout.readline())
        assert address
        with open_chromium() as browser:
            page = browser.new_context(viewport={"width": 390, "height": 844}).new_page()
            page.set_default_timeout(60_000)
            page.goto(address[0])
            page.fill("#name", "Анна")
            page.keyboard.press("Enter")
            page.wait_for_selector(".asked .text")
            assert page.inner_text("h1") == "Отвечает ли отрывок на вопрос, хотя бы отчасти?"
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
            for number in range(1, N_RESULTS + 1):
                pair = tuple(page.inner_text(f".{kind} .text") for kind in ("asked", "passages"))
                judgements[pair] = is_relevant(*pair)
                page.keyboard.press("1" if judgements[pair] else "3")
                page.wait_for_function(f"() => document.querySelector('#count')?.innerText.includes('вами {number}')")
            assert page.inner_text("#estimate")
    finally:
        process.kill()
        process.communicate()
    stored = read_labels(database(), evaluated["evaluation_id"], "relevance")
    assert len(stored) == len(judgements) == N_RESULTS
    assert sum(label.value or 0 for label in stored) == sum(judgements.values()) > 0
    assert all(label.result for label in stored)

"""Judging results in a browser: by keys, of the newest evaluation whose labels a judge has filled up."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.browser import chromium
from tests.support.command_line import environment
from tests.support.evaluations import evaluate
from tests.tasks.dataset.labelling.relevance.filled import judge, relevant, source
from yarus.db.stores.labels import labels_of
from yarus.tasks.config.connections import database

N = 60


@pytest.mark.slow("browser: sixty results by keys")
def test_results_are_judged_by_keys(at_home: Path, home: Path, tmp_path: Path) -> None:
    with judge():
        found = evaluate("tier1", source=source(tmp_path, "label_results"), labels="filled", retriever="dense")
    process = subprocess.Popen(
        [sys.executable, "-m", "yarus", "label", "--relevance", "--port", "0"], env=environment(home), cwd=home,
        text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    said = {}
    try:
        assert process.stdout is not None
        address = re.search(r"http://\S+", process.stdout.readline())
        assert address
        with chromium() as browser:
            page = browser.new_context(viewport={"width": 390, "height": 844}).new_page()
            page.set_default_timeout(60_000)
            page.goto(address[0])
            page.fill("#name", "Анна")
            page.keyboard.press("Enter")
            page.wait_for_selector(".asked .text")
            assert page.inner_text("h1") == "Отвечает ли отрывок на вопрос, хотя бы отчасти?"
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
            for number in range(1, N + 1):
                pair = tuple(page.inner_text(f".{kind} .text") for kind in ("asked", "passages"))
                said[pair] = relevant(*pair)
                page.keyboard.press("1" if said[pair] else "3")
                page.wait_for_function(f"() => document.querySelector('#count')?.innerText.includes('вами {number}')")
            assert page.inner_text("#estimate")
    finally:
        process.kill()
        process.communicate()
    kept = labels_of(database(), found["evaluation_id"], "relevance")
    assert len(kept) == len(said) == N
    assert sum(one.value or 0 for one in kept) == sum(said.values()) > 0
    assert all(one.result for one in kept)

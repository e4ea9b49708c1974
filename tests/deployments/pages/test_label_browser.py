"""Labelling in a browser: forty answers by keys, with a server that is killed in between."""

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.support.browser import open_chromium
from tests.support.command_line import CommandLine, assert_refused, make_environment
from tests.support.evaluations import (
    Document,
    evaluate,
    get_requested_metric,
    hash_to_unit,
    make_completion,
    make_role_variables,
    read_rows,
    set_variables,
    texts,
)
from tests.support.json_schemas import check_json
from tests.support.llm_server import FakeLLMServer, make_score_completion
from tests.tasks.dataset.labelling.labelled import fix_evaluation_ids
from yarus.db.stores.labels import read_labels
from yarus.tasks.config.connections import database
from yarus.tasks.evaluation.summary import read_summary

RATE, SENSITIVITY, SPECIFICITY = 0.7, 0.95, 0.6
NAME = "avg_faithfulness_corrected"
pytestmark = pytest.mark.slow("browser: with servers of their own; what is kept is tested in test_label_pages.py, too")


def is_correct(question: str) -> bool:
    return hash_to_unit("truth", question) < RATE


def answer_request(number: int, request: Document) -> object:
    if get_requested_metric(request) == "generation":
        return make_completion("Ответ.", tokens=(10, 5))
    question = texts(request)["question"]
    right = hash_to_unit("judge", question) < (SENSITIVITY if is_correct(question) else SPECIFICITY)
    return make_score_completion(float(is_correct(question) == right))


@pytest.fixture(scope="module")
def night(at_home_for_module: Path, xquad_ru: Path, yarus_alone: CommandLine) -> Document:
    """Evaluate real questions and paragraphs with a judge of known error."""
    yarus_alone("load", "squad", str(xquad_ru), "--into", "label_xquad")
    with FakeLLMServer(script=answer_request) as server, pytest.MonkeyPatch.context() as patch:
        set_variables(patch, make_role_variables(server.url, "generator", "judge"))
        with fix_evaluation_ids("label_xquad"):
            evaluated = evaluate("tier2", source="label_xquad", limit=200)
    return evaluated


@pytest.fixture
def served(night: Document, home: Path) -> Iterator[Callable[[], tuple[subprocess.Popen[str], str]]]:
    """Return a function that starts the page's server and returns it with its address."""
    started: list[subprocess.Popen[str]] = []

    def start() -> tuple[subprocess.Popen[str], str]:
        words = [
            "judge",
            "label",
            "--evaluation",
            night["evaluation_id"],
            "--metric",
            "avg_faithfulness",
            "--port",
            "0",
        ]
        process = subprocess.Popen(
            [sys.executable, "-m", "yarus", *words], env=make_environment(home), cwd=home, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        started.append(process)
        assert process.stdout is not None
        address = re.search(r"http://\S+", process.stdout.readline())
        assert address
        return process, address[0]

    yield start
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def label(page: Page, n: int) -> dict[str, float]:
    """Label the next n answers by keys, and return the labels by question."""
    labels = {}
    for _ in range(n):
        question = page.inner_text(".asked .text")
        page.keyboard.press("1" if is_correct(question) else "3")
        page.wait_for_function("asked => document.querySelector('.asked .text').innerText !== asked", arg=question)
        labels[question] = float(is_correct(question))
    return labels


def width(page: Page) -> tuple[float, float]:
    """Return the width of the interval now, and the expected one after ten more labels, from the page."""
    now, after = re.findall(r"\d\.\d{3}", page.inner_text("#width"))
    return float(now), float(after)


def test_labels_survive_a_killed_server(
    night: Document, served: Callable[[], tuple[subprocess.Popen[str], str]]
) -> None:
    with open_chromium() as browser:
        page = browser.new_context(viewport={"width": 390, "height": 844}).new_page()
        page.set_default_timeout(60_000)
        process, address = served()
        page.goto(address)
        page.fill("#name", "Анна")
        page.keyboard.press("Enter")
        page.wait_for_selector(".asked .text")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        labels = label(page, 20)
        at_20 = width(page)
        last_question = page.inner_text(".asked .text")
        process.send_signal(signal.SIGKILL)
        process.wait()
        page.keyboard.press("1")
        page.wait_for_selector("#problem:not([hidden])")
        assert "не сохранено" in page.inner_text("#problem")
        assert page.inner_text(".asked .text") == last_question  # nothing is lost: it is still shown
        _, address = served()
        page.goto(address)
        page.fill("#name", "Анна")  # to the browser, another port is another site
        page.keyboard.press("Enter")
        page.wait_for_selector(".asked .text")
        assert page.inner_text(".asked .text") == last_question  # it continues with the same question
        labels |= label(page, 10)
        at_30 = width(page)
        labels |= label(page, 10)
        page.locator("#top button").click()  # asking for another name: keys undo nothing meanwhile
        page.wait_for_selector("#name")
        page.keyboard.press("Escape")
        page.keyboard.press("Backspace")
        page.keyboard.press("1")
        page.locator("form button").click()
        page.wait_for_function("() => document.querySelector('#count')?.innerText.includes('вами 40')")
        page.keyboard.press("Backspace")
        page.wait_for_function("() => document.querySelector('#count').innerText.includes('вами 39')")
        current = page.inner_text(".asked .text")
        page.keyboard.press("1" if is_correct(current) else "3")
        page.wait_for_function("() => document.querySelector('#count').innerText.includes('вами 40')")
        assert re.search(r"Вы: (Да|Нет) · судья: [01]\.00", page.inner_text("#last"))
    stored = {row.case_id: row for row in read_labels(database(), night["evaluation_id"])}
    assert len(stored) == len(labels) == 40
    assert sum(row.value or 0 for row in stored.values()) == sum(labels.values())
    assert at_30[0] < at_20[0]
    assert at_30[0] == pytest.approx(at_20[1], rel=0.3)  # about as predicted
    metric = read_summary(database(), night["evaluation_id"])["metrics"][NAME]
    assert metric["n_labels"] == 40 and metric["labels"]["acted_on"]
    truth = [is_correct(row["question"]) for row in read_rows(night) if row["faithfulness"] is not None]
    assert metric["ci_low"] < sum(truth) / len(truth) < metric["ci_high"]


def test_label_names_taken_port(night: Document, yarus_alone: CommandLine) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = ("judge", "label", "--evaluation", night["evaluation_id"], "--port", str(taken.getsockname()[1]))
        finished = yarus_alone(*words, ok=False)
    assert finished.code in (2, 3) and "--port" in finished.err and "Traceback" not in finished.err


def test_label_plan_and_invalid_options(night: Document, yarus_alone: CommandLine) -> None:
    words = ("judge", "plan", "avg_answer_relevance", "--evaluation", night["evaluation_id"], "--width", "0.3")
    label_plan = check_json("judge plan", yarus_alone(*words, "--json").out)
    assert (label_plan["basis"], label_plan["metric"], label_plan["n_own"]) == ("nothing", "avg_answer_relevance", 0)
    assert str(label_plan["n_labels_needed"]) in yarus_alone(*words).out
    english = {"YARUS_LANGUAGE": "en"}
    assert_refused(yarus_alone("judge", "plan", ok=False, env=english), 2, ("Missing option '--width'",))
    refused = yarus_alone("judge", "label", "--width", "0.1", ok=False, env=english)
    assert_refused(refused, 2, ("No such option '--width'",))
    assert_refused(yarus_alone("judge", "label", "--json", ok=False, env=english), 2, ("--json needs --suggest",))

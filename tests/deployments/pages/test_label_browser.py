"""Labelling in a browser: forty answers by keys, a server that is killed in between, and what comes out of it."""

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.support.browser import chromium
from tests.support.command_line import CommandLine, environment
from tests.support.evaluations import Document, chance, evaluate, metric_of, roles, rows_of, says, texts, use
from tests.support.llm_server import FakeLLMServer, scores
from tests.tasks.dataset.labelling.labelled import named
from yarus.db.stores.labels import labels_of
from yarus.tasks.config.connections import database
from yarus.tasks.evaluation.summary import summary

RATE, SENSITIVITY, SPECIFICITY = 0.7, 0.95, 0.6
NAME = "avg_faithfulness_corrected"
pytestmark = pytest.mark.slow("browser: with servers of their own; what is kept is tested in test_label_pages.py, too")


def good(asked: str) -> bool:
    return chance("truth", asked) < RATE


def answering(number: int, request: Document) -> object:
    if metric_of(request) == "generation":
        return says("Ответ.", tokens=(10, 5))
    asked = texts(request)["question"]
    right = chance("judge", asked) < (SENSITIVITY if good(asked) else SPECIFICITY)
    return scores(float(good(asked) == right))


@pytest.fixture(scope="module")
def night(at_home_for_module: Path, xquad_ru: Path, yarus_alone: CommandLine) -> Document:
    """Real questions and paragraphs, and a judge of known error."""
    yarus_alone("load", "squad", str(xquad_ru), "--into", "label_xquad")
    with FakeLLMServer(script=answering) as server, pytest.MonkeyPatch.context() as patch:
        use(patch, roles(server.url, "generator", "judge"))
        with named("label_xquad"):
            found = evaluate("tier2", source="label_xquad", limit=200)
    return found


@pytest.fixture
def served(night: Document, home: Path) -> Iterator[Callable[[], tuple[subprocess.Popen[str], str]]]:
    """Starts the page's server; it and its address."""
    started: list[subprocess.Popen[str]] = []

    def start() -> tuple[subprocess.Popen[str], str]:
        words = ["label", "--evaluation", night["evaluation_id"], "--metric", "avg_faithfulness", "--port", "0"]
        process = subprocess.Popen(
            [sys.executable, "-m", "yarus", *words], env=environment(home), cwd=home, text=True,
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
    """Labels the next n answers by keys; what was said by question."""
    said = {}
    for _ in range(n):
        asked = page.inner_text(".asked .text")
        page.keyboard.press("1" if good(asked) else "3")
        page.wait_for_function("asked => document.querySelector('.asked .text').innerText !== asked", arg=asked)
        said[asked] = float(good(asked))
    return said


def width(page: Page) -> tuple[float, float]:
    """How wide the interval is, and is expected to be after ten more labels; by what the page says."""
    now, after = re.findall(r"\d\.\d{3}", page.inner_text("#width"))
    return float(now), float(after)


def test_forty_answers_by_keys_and_a_kill_in_between(
    night: Document, served: Callable[[], tuple[subprocess.Popen[str], str]]
) -> None:
    with chromium() as browser:
        page = browser.new_context(viewport={"width": 390, "height": 844}).new_page()
        page.set_default_timeout(60_000)
        process, address = served()
        page.goto(address)
        page.fill("#name", "Анна")
        page.keyboard.press("Enter")
        page.wait_for_selector(".asked .text")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        said = label(page, 20)
        at_20 = width(page)
        last = page.inner_text(".asked .text")
        process.send_signal(signal.SIGKILL)
        process.wait()
        page.keyboard.press("1")
        page.wait_for_selector("#problem:not([hidden])")
        assert "не сохранено" in page.inner_text("#problem")
        assert page.inner_text(".asked .text") == last  # nothing is lost: it is still asked
        _, address = served()
        page.goto(address)
        page.fill("#name", "Анна")  # another port is another page to the browser
        page.keyboard.press("Enter")
        page.wait_for_selector(".asked .text")
        assert page.inner_text(".asked .text") == last  # it goes on where it was left
        said |= label(page, 10)
        at_30 = width(page)
        said |= label(page, 10)
        page.locator("#top button").click()  # another name is asked for: keys take nothing back meanwhile
        page.wait_for_selector("#name")
        page.keyboard.press("Escape")
        page.keyboard.press("Backspace")
        page.keyboard.press("1")
        page.locator("form button").click()
        page.wait_for_function("() => document.querySelector('#count')?.innerText.includes('вами 40')")
        page.keyboard.press("Backspace")
        page.wait_for_function("() => document.querySelector('#count').innerText.includes('вами 39')")
        again = page.inner_text(".asked .text")
        page.keyboard.press("1" if good(again) else "3")
        page.wait_for_function("() => document.querySelector('#count').innerText.includes('вами 40')")
        assert re.search(r"Вы: (Да|Нет) · судья: [01]\.00", page.inner_text("#last"))
    kept = {one.case_id: one for one in labels_of(database(), night["evaluation_id"])}
    assert len(kept) == len(said) == 40
    assert sum(one.value or 0 for one in kept.values()) == sum(said.values())
    assert at_30[0] < at_20[0]
    assert at_30[0] == pytest.approx(at_20[1], rel=0.3)  # about as told
    one = summary(database(), night["evaluation_id"])["metrics"][NAME]
    assert one["n_labels"] == 40 and one["labels"]["acted_on"]
    truth = [good(row["question"]) for row in rows_of(night) if row["faithfulness"] is not None]
    assert one["ci_low"] < sum(truth) / len(truth) < one["ci_high"]


def test_the_port_may_be_taken(night: Document, yarus_alone: CommandLine) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = ("label", "--evaluation", night["evaluation_id"], "--port", str(taken.getsockname()[1]))
        ran = yarus_alone(*words, ok=False)
    assert ran.code in (2, 3) and "--port" in ran.err and "Traceback" not in ran.err


def test_the_plan_and_what_does_not_go_together(night: Document, yarus_alone: CommandLine) -> None:
    words = ("label", "--evaluation", night["evaluation_id"], "--plan", "avg_answer_relevance", "--width", "0.3")
    found = yarus_alone(*words, "--json").json
    assert (found["basis"], found["metric"], found["n_own"]) == ("nothing", "avg_answer_relevance", 0)
    assert str(found["needed"]) in yarus_alone(*words).out
    assert yarus_alone("label", "--plan", ok=False).code == 2
    assert yarus_alone("label", "--width", "0.1", ok=False).code == 2
    assert yarus_alone("label", "--json", ok=False).code == 2

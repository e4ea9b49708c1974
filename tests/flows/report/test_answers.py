"""Side-by-side answers and traces in Chromium, from a local file without network."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import Engine

from tests.support.browser import PATIENCE_MS, page_of
from tests.support.evaluation_history import make_source_name, write_evaluation_with_cases
from yarus.tasks.report.write import write_index, write_report

expect.set_options(timeout=PATIENCE_MS)
N_QUESTIONS = 60
PLANTED = "</script><script>window.planted = 1</script><img src=x onerror='window.planted = 2'>"
THINKING = f"<think>{PLANTED}</think>Ответ."
JUDGED = {"model": "judge-large", "prompts": {"e2e_score": "5eed"}}


def call(role: str, **more: Any) -> dict[str, Any]:
    blank = {"prompt": "generation", "repeat": 0, "model": "served", "tokens_in": 700, "tokens_out": 40}
    blank |= {"cost_usd": 0.002, "latency_ms": 1234.0, "stored": False, "finish_reason": "stop", "reply": None}
    return {"role": role} | blank | more


def columns(version: int) -> dict[str, list[Any]]:
    """Return answers of three versions: every fourth answer and every sixth score differ."""
    reply = {"metric": "e2e_score", "repeat": 0, "reply": PLANTED, "status": "ok"}
    unreadable_reply = {**reply, "metric": "faithfulness", "status": "parse_error"}
    judged = call("judge", prompt="e2e_score", cost_usd=0.0, latency_ms=80.0, stored=True)
    return {
        "answer": [
            f"Справку {i} выдаёт {'деканат' if i % 4 else f'отдел {version} {PLANTED}'}" for i in range(N_QUESTIONS)
        ],
        "reference": ["Справку выдаёт деканат."] * N_QUESTIONS,
        "context": ["Деканат выдаёт справки."] * N_QUESTIONS,
        "relevant": [["10"]] * N_QUESTIONS,
        "retrieved": [["10", "11"]] * N_QUESTIONS,
        "distances": [[0.12, 0.3]] * N_QUESTIONS,
        "retrieval_latency_ms": [12.0] * N_QUESTIONS,
        "latency_ms": [1246.0] * N_QUESTIONS,
        "first_token_ms": [300.0] * N_QUESTIONS,
        "e2e_score": [0.5 if i % 6 else 0.1 * (version + 1) for i in range(N_QUESTIONS)],
        "semantic_similarity": [0.25] * N_QUESTIONS,
        "status": ["sut_error" if version == 1 and i == 7 else "ok" for i in range(N_QUESTIONS)],
        "judge_raw": [[reply, unreadable_reply]] * N_QUESTIONS,
        "judge_reasons": [["e2e_score: близко"]] * N_QUESTIONS,
        "tokens_in": [1400] * N_QUESTIONS,
        "tokens_out": [80] * N_QUESTIONS,
        "calls": [[call("generator", reply=THINKING), judged, call("judge", prompt="faithfulness", tokens_in=None)]]
        * N_QUESTIONS,
    }


class AnswersReport(NamedTuple):
    """A report over three evaluations of tier 3, and their ids, the oldest first."""

    path: Path
    ids: list[str]


def write_answers_report(engine: Engine, folder: Path, home: Path, **judges: Any) -> AnswersReport:
    source = make_source_name()
    ids = []
    for version in range(3):
        resolved = {"retriever": f"retriever-{version}", "generator": "bot", "judge": judges.get(f"v{version}", JUDGED)}
        label = f"v{version} {PLANTED}" if version else None
        row = {"tier": "tier3", "night": version, "statuses": {"ok": N_QUESTIONS}, "coverage": 1.0, "sut_label": label}
        ids.append(write_evaluation_with_cases(engine, folder, source, columns(version), resolved=resolved, **row))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YARUS_HOME", str(home))
        return AnswersReport(write_report(engine, ids, folder / f"{source}.html", "ru").path, ids)


@pytest.fixture(scope="module")
def answers_report(engine: Engine, home: Path, tmp_path_factory: pytest.TempPathFactory) -> AnswersReport:
    return write_answers_report(engine, tmp_path_factory.mktemp("answers"), home)


@pytest.fixture(params=[1280, pytest.param(390, marks=pytest.mark.slow("breadth: at a telephone's width"))])
def page(browser: Browser, answers_report: AnswersReport, request: pytest.FixtureRequest) -> Iterator[Page]:
    """Open the page of answers at two widths."""
    address = f"{answers_report.path.as_uri()}#answers-tier3"
    with page_of(browser, address, viewport={"width": request.param, "height": 800}) as opened:
        yield opened
        assert opened.evaluate("window.planted") is None, "a planted script has run"
        assert opened.evaluate("document.documentElement.scrollWidth") <= request.param


def expect_rows(page: Page, n: int) -> None:
    expect(page.locator(".matrix [role=status]")).to_have_text(f"Вопросов {n} из {N_QUESTIONS}.")


def test_answers_page_has_rows_of_questions(page: Page) -> None:
    expect_rows(page, N_QUESTIONS)
    heads = page.locator(".matrix thead th a")
    expect(heads).to_have_text(["retriever retriever-0", f"v1 {PLANTED}", f"v2 {PLANTED}"])
    first = page.locator(".matrix tbody tr").first
    expect(first.locator("td .said")).to_have_count(3)
    expect(first.locator("td").nth(1)).to_contain_text("отдел 1 </script>")
    expect(page.locator(".matrix tbody tr")).to_have_count(25)
    page.get_by_role("button", name="Вперёд").click()
    expect(page.locator(".matrix .pager")).to_contain_text(f"26–50 из {N_QUESTIONS}")


@pytest.mark.slow("browser: more of the page of answers")
def test_answers_page_filters_differing_rows(page: Page) -> None:
    selects = page.locator(".matrix select")
    selects.nth(0).select_option("answers")
    expect_rows(page, N_QUESTIONS // 4)
    selects.nth(0).select_option("scores")
    expect_rows(page, N_QUESTIONS // 6)
    first = page.locator(".matrix tbody tr").first
    expect(first.locator("td.worst")).to_contain_text("e2e_score 0.100 ▼")
    expect(first.locator("td.best")).to_contain_text("e2e_score 0.300 ▲")
    selects.nth(1).select_option("latency_ms")
    expect(page.locator(".matrix [role=status]")).to_have_text("Ничего не найдено. Ослабьте условия.")
    selects.nth(0).select_option("")
    selects.nth(2).select_option("sut_error")
    expect_rows(page, 1)
    expect(page.locator(".matrix tbody td .bad")).to_have_text("ошибка системы")
    assert "status=sut_error" in page.url


@pytest.mark.slow("browser: more of the page of answers")
def test_address_keeps_filters_and_row_opens_all_answers(page: Page) -> None:
    page.evaluate("location.hash = '#answers-tier3/rows?q=Вопрос+36%3F&differ=scores'")
    expect_rows(page, 1)
    page.locator(".matrix tbody th a").click()
    dialog = page.locator("dialog")
    expect(dialog.locator("h2")).to_have_text("Вопрос 36?")
    expect(dialog.locator(".side")).to_have_count(3)
    expect(dialog.locator(".side.best")).to_contain_text("отдел 2")
    expect(dialog).to_contain_text("Справку выдаёт деканат.")
    page.keyboard.press("Escape")
    expect_rows(page, 1)
    expect(page.locator(".matrix input[type=search]")).to_have_value("Вопрос 36?")


@pytest.mark.slow("browser: more of the page of answers")
def test_address_set_while_rendering_is_applied(page: Page, answers_report: AnswersReport) -> None:
    expect_rows(page, N_QUESTIONS)
    redraw = "document.dispatchEvent(new CustomEvent('chosen', { detail: 'lang' }))"
    page.evaluate(f"location.hash = '#answers-tier3/rows?q=Вопрос+36%3F'; {redraw}")
    expect_rows(page, 1)
    page.evaluate("location.hash = '#tier3/cases'")
    questions = page.locator("section.page.open .list td.q")
    expect(questions).to_have_count(50)
    page.evaluate(f"location.hash = '#tier3/cases?q=Вопрос+36%3F'; {redraw}")
    expect(questions).to_have_count(1)


@pytest.mark.slow("browser: more of the page of answers")
def test_trace_shows_steps_of_an_answer(page: Page, answers_report: AnswersReport) -> None:
    page.locator(".matrix tbody tr").first.locator("td").nth(1).locator(".more").click()
    trace = page.locator("dialog .trace")
    expect(trace.locator(".step h3")).to_have_text(["Найдено", "Спрошено", "Отвечено", "Оценено"])
    expect(trace.locator(".found")).to_contain_text("retriever-1")
    expect(trace.locator(".found")).to_contain_text("12 мс")
    expect(trace.locator(".found .hit")).to_contain_text("0.120")
    expect(trace.locator(".asked")).to_contain_text("Само сообщение целиком не хранится")
    for fact in ("served", "токены: 700 → 40", "$0.00200", "1.2 с", "первый токен: 300 мс"):
        expect(trace.locator(".replied")).to_contain_text(fact)
    trace.locator("summary", has_text="Ответ модели целиком").click()
    expect(trace.locator(".replied pre")).to_have_text(THINKING)
    judged = trace.locator(".judged .calls li")
    expect(judged.nth(0)).to_contain_text("e2e_score 0.200")
    expect(judged.nth(0)).to_contain_text("из хранилища, сейчас не оплачено")
    expect(judged.nth(1)).to_contain_text("ответ судьи не прочитан")
    assert answers_report.ids[1] in page.url


@pytest.mark.slow("browser: a report of its own")
def test_scores_of_different_judges_are_not_compared(
    engine: Engine, home: Path, tmp_path: Path, browser: Browser
) -> None:
    other_judge = {"model": "another", "prompts": {"e2e_score": "5eed"}}
    path = write_answers_report(engine, tmp_path, home, v2=other_judge).path
    with page_of(browser, f"{path.as_uri()}#answers-tier3/rows?differ=scores") as page:
        expect_rows(page, N_QUESTIONS // 6)
        expect(page.locator("#answers-tier3 .problem")).to_contain_text("нельзя сравнивать")
        expect(page.locator(".matrix td.best")).to_have_count(0)


@pytest.mark.slow("browser: more of the page of answers")
def test_index_file_shows_compare_command(
    engine: Engine, answers_report: AnswersReport, tmp_path: Path, browser: Browser
) -> None:
    with page_of(browser, write_index(engine, tmp_path, "ru").as_uri()) as page:
        boxes = page.locator("td.pick input")
        evaluation_ids = [boxes.nth(n).get_attribute("value") for n in range(2)]
        for n in range(2):
            boxes.nth(n).check()
        expect(page.locator(".chosen code")).to_have_text(f"yarus report {evaluation_ids[0]} {evaluation_ids[1]}")
        expect(page.get_by_role("button", name="Сравнить")).to_have_count(0)


@pytest.mark.slow("browser: two reports of its own")
def test_report_says_when_no_question_is_common(
    engine: Engine, answers_report: AnswersReport, home: Path, tmp_path: Path, browser: Browser
) -> None:
    other_report = write_answers_report(engine, tmp_path, home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YARUS_HOME", str(home))
        path = write_report(engine, [answers_report.ids[0], other_report.ids[0]], tmp_path / "apart.html", "ru").path
    with page_of(browser, f"{path.as_uri()}#answers-tier3") as page:
        expect(page.locator(".matrix .problem")).to_contain_text("Общих вопросов у этих прогонов нет")
        page.evaluate("location.hash = '#tier3/compare'")
        expect(page.locator("#tier3 [data-part=compare] .problem").first).to_contain_text("Общих вопросов")

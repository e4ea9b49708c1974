"""Answers side by side, and how one came about: in Chromium, from the disk, with the network off."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import Engine

from tests.support.browser import PATIENCE_MS, page_of
from tests.support.evaluation_history import source_name, with_cases
from yarus.tasks.report.write import index, report

expect.set_options(timeout=PATIENCE_MS)
N = 60
PLANTED = "</script><script>window.planted = 1</script><img src=x onerror='window.planted = 2'>"
THINKING = f"<think>{PLANTED}</think>Ответ."
JUDGED = {"model": "judge-large", "prompts": {"e2e_score": "5eed"}}


def call(role: str, **more: Any) -> dict[str, Any]:
    blank = {"prompt": "generation", "repeat": 0, "model": "served", "tokens_in": 700, "tokens_out": 40}
    blank |= {"cost_usd": 0.002, "latency_ms": 1234.0, "stored": False, "finish_reason": "stop", "reply": None}
    return {"role": role} | blank | more


def columns(version: int) -> dict[str, list[Any]]:
    """Answers of three versions: every fourth is another one in each, every sixth is scored otherwise by each."""
    reply = {"metric": "e2e_score", "repeat": 0, "reply": PLANTED, "status": "ok"}
    lost = {**reply, "metric": "faithfulness", "status": "parse_error"}
    judged = call("judge", prompt="e2e_score", cost_usd=0.0, latency_ms=80.0, stored=True)
    return {
        "answer": [f"Справку {i} выдаёт {'деканат' if i % 4 else f'отдел {version} {PLANTED}'}" for i in range(N)],
        "reference": ["Справку выдаёт деканат."] * N,
        "context": ["Деканат выдаёт справки."] * N,
        "relevant": [["10"]] * N,
        "retrieved": [["10", "11"]] * N,
        "distances": [[0.12, 0.3]] * N,
        "retrieval_latency_ms": [12.0] * N,
        "latency_ms": [1246.0] * N,
        "first_token_ms": [300.0] * N,
        "e2e_score": [0.5 if i % 6 else 0.1 * (version + 1) for i in range(N)],
        "semantic_similarity": [0.25] * N,
        "status": ["sut_error" if version == 1 and i == 7 else "ok" for i in range(N)],
        "judge_raw": [[reply, lost]] * N,
        "judge_reasons": [["e2e_score: близко"]] * N,
        "tokens_in": [1400] * N,
        "tokens_out": [80] * N,
        "calls": [[call("generator", reply=THINKING), judged, call("judge", prompt="faithfulness", tokens_in=None)]]
        * N,
    }


class Shown(NamedTuple):
    """A report over three evaluations of tier 3, and their ids, the oldest first."""

    path: Path
    ids: list[str]


def written(engine: Engine, folder: Path, home: Path, **judges: Any) -> Shown:
    source = source_name()
    ids = []
    for version in range(3):
        resolved = {"retriever": f"retriever-{version}", "generator": "bot", "judge": judges.get(f"v{version}", JUDGED)}
        label = f"v{version} {PLANTED}" if version else None
        given = {"tier": "tier3", "night": version, "statuses": {"ok": N}, "coverage": 1.0, "sut_label": label}
        ids.append(with_cases(engine, folder, source, columns(version), resolved=resolved, **given))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YARUS_HOME", str(home))
        return Shown(report(engine, ids, folder / f"{source}.html", "ru"), ids)


@pytest.fixture(scope="module")
def shown(engine: Engine, home: Path, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    return written(engine, tmp_path_factory.mktemp("answers"), home)


@pytest.fixture(params=[1280, pytest.param(390, marks=pytest.mark.slow("breadth: at a telephone's width"))])
def page(browser: Browser, shown: Shown, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The page of answers, at two widths."""
    at = f"{shown.path.as_uri()}#answers-tier3"
    with page_of(browser, at, viewport={"width": request.param, "height": 800}) as opened:
        yield opened
        assert opened.evaluate("window.planted") is None, "a planted script has run"
        assert opened.evaluate("document.documentElement.scrollWidth") <= request.param


def rows(page: Page, n: int) -> None:
    expect(page.locator(".matrix [role=status]")).to_have_text(f"Вопросов {n} из {N}.")


def test_rows_are_questions_and_columns_are_evaluations(page: Page) -> None:
    rows(page, N)
    heads = page.locator(".matrix thead th a")
    expect(heads).to_have_text(["retriever retriever-0", f"v1 {PLANTED}", f"v2 {PLANTED}"])
    first = page.locator(".matrix tbody tr").first
    expect(first.locator("td .said")).to_have_count(3)
    expect(first.locator("td").nth(1)).to_contain_text("отдел 1 </script>")
    expect(page.locator(".matrix tbody tr")).to_have_count(25)
    page.get_by_role("button", name="Вперёд").click()
    expect(page.locator(".matrix .pager")).to_contain_text(f"26–50 из {N}")


@pytest.mark.slow("browser: more of the page of answers")
def test_those_that_differ_are_filtered_and_marked(page: Page) -> None:
    chosen = page.locator(".matrix select")
    chosen.nth(0).select_option("answers")
    rows(page, N // 4)
    chosen.nth(0).select_option("scores")
    rows(page, N // 6)
    first = page.locator(".matrix tbody tr").first
    expect(first.locator("td.worst")).to_contain_text("e2e_score 0.100 ▼")
    expect(first.locator("td.best")).to_contain_text("e2e_score 0.300 ▲")
    chosen.nth(1).select_option("latency_ms")
    expect(page.locator(".matrix [role=status]")).to_have_text("Ничего не найдено. Ослабьте условия.")
    chosen.nth(0).select_option("")
    chosen.nth(2).select_option("sut_error")
    rows(page, 1)
    expect(page.locator(".matrix tbody td .bad")).to_have_text("ошибка системы")
    assert "status=sut_error" in page.url


@pytest.mark.slow("browser: more of the page of answers")
def test_the_address_holds_the_choice_and_a_row_opens_with_all_answers(page: Page) -> None:
    page.evaluate("location.hash = '#answers-tier3/rows?q=Вопрос+36%3F&differ=scores'")
    rows(page, 1)
    page.locator(".matrix tbody th a").click()
    dialog = page.locator("dialog")
    expect(dialog.locator("h2")).to_have_text("Вопрос 36?")
    expect(dialog.locator(".side")).to_have_count(3)
    expect(dialog.locator(".side.best")).to_contain_text("отдел 2")
    expect(dialog).to_contain_text("Справку выдаёт деканат.")
    page.keyboard.press("Escape")
    rows(page, 1)
    expect(page.locator(".matrix input[type=search]")).to_have_value("Вопрос 36?")


@pytest.mark.slow("browser: more of the page of answers")
def test_an_address_that_is_set_while_a_page_is_drawn_is_followed(page: Page, shown: Shown) -> None:
    rows(page, N)
    drawn_meanwhile = "document.dispatchEvent(new CustomEvent('chosen', { detail: 'lang' }))"
    page.evaluate(f"location.hash = '#answers-tier3/rows?q=Вопрос+36%3F'; {drawn_meanwhile}")
    rows(page, 1)
    page.evaluate("location.hash = '#tier3/cases'")
    found = page.locator("section.page.open .list td.q")
    expect(found).to_have_count(50)
    page.evaluate(f"location.hash = '#tier3/cases?q=Вопрос+36%3F'; {drawn_meanwhile}")
    expect(found).to_have_count(1)


@pytest.mark.slow("browser: more of the page of answers")
def test_a_trace_says_what_was_found_asked_replied_and_judged(page: Page, shown: Shown) -> None:
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
    assert shown.ids[1] in page.url


@pytest.mark.slow("browser: a report of its own")
def test_scores_of_different_judges_are_not_held_against_each_other(
    engine: Engine, home: Path, tmp_path: Path, browser: Browser
) -> None:
    other = {"model": "another", "prompts": {"e2e_score": "5eed"}}
    path = written(engine, tmp_path, home, v2=other).path
    with page_of(browser, f"{path.as_uri()}#answers-tier3/rows?differ=scores") as page:
        rows(page, N // 6)
        expect(page.locator("#answers-tier3 .problem")).to_contain_text("нельзя сравнивать")
        expect(page.locator(".matrix td.best")).to_have_count(0)


@pytest.mark.slow("browser: more of the page of answers")
def test_from_the_disk_the_list_gives_the_command_that_compares(
    engine: Engine, shown: Shown, tmp_path: Path, browser: Browser
) -> None:
    with page_of(browser, index(engine, tmp_path, "ru").as_uri()) as page:
        boxes = page.locator("td.pick input")
        chosen = [boxes.nth(n).get_attribute("value") for n in range(2)]
        for n in range(2):
            boxes.nth(n).check()
        expect(page.locator(".chosen code")).to_have_text(f"yarus report {chosen[0]} {chosen[1]}")
        expect(page.get_by_role("button", name="Сравнить")).to_have_count(0)


@pytest.mark.slow("browser: two reports of its own")
def test_evaluations_without_a_common_question_are_said_to_be_so(
    engine: Engine, shown: Shown, home: Path, tmp_path: Path, browser: Browser
) -> None:
    other = written(engine, tmp_path, home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YARUS_HOME", str(home))
        path = report(engine, [shown.ids[0], other.ids[0]], tmp_path / "apart.html", "ru")
    with page_of(browser, f"{path.as_uri()}#answers-tier3") as page:
        expect(page.locator(".matrix .problem")).to_contain_text("Общих вопросов у этих прогонов нет")
        page.evaluate("location.hash = '#tier3/compare'")
        expect(page.locator("#tier3 [data-part=compare] .problem").first).to_contain_text("Общих вопросов")

"""The page for labels: valid requests, and everything that is refused."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.evaluations import Document, evaluate, load, question
from tests.tasks.dataset.labelling.labelled import evaluate_labelled, serve_models
from yarus.db.stores.labels import label as table
from yarus.db.stores.labels import read_labels
from yarus.deployments.pages.label_pages import PAGE_VERSION, HttpReply, LabelPages
from yarus.deployments.request_guard import allowed_hosts
from yarus.tasks.config.connections import database

MARKUP = "</script><script>alert(1)</script>"
OWN = {"Host": "127.0.0.1:4281", "Origin": "http://127.0.0.1:4281", "Sec-Fetch-Site": "same-origin",
       "Content-Type": "application/json", "X-Yarus-Page": PAGE_VERSION}  # fmt: skip


@pytest.fixture(scope="module")
def night(at_home_for_module: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Document]:
    with serve_models():
        yield evaluate_labelled(tmp_path_factory.mktemp("page"), "label_page", 30)


@pytest.fixture
def pages(night: Document, at_home: Path) -> Iterator[LabelPages]:
    yield LabelPages(database, allowed_hosts("127.0.0.1", ""))
    with database().begin() as connection:
        connection.execute(table.delete().where(table.c.source == "label_page"))


def get(pages: LabelPages, name: str = "", **headers: str | None) -> HttpReply:
    return pages.answer("GET", pages.path + name, {**OWN, "Origin": None} | headers)


def post(pages: LabelPages, name: str, document: Any, **headers: str | None) -> HttpReply:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return pages.answer("POST", pages.path + name, OWN | {k.replace("_", "-"): v for k, v in headers.items()}, body)


def read_json(reply: HttpReply) -> Any:
    assert reply.kind == "application/json"
    return json.loads(reply.body)


def label_fields(night: Document, **more: Any) -> Document:
    return {"evaluation": night["evaluation_id"], "metric": "avg_faithfulness", "annotator": "anna"} | more


def next_to_label(pages: LabelPages, night: Document) -> Document:
    document: Document = read_json(get(pages, f"next?evaluation={night['evaluation_id']}&annotator=anna"))
    return document


def test_save_and_undo_store_labels(pages: LabelPages, night: Document) -> None:
    first_case = next_to_label(pages, night)
    assert (
        first_case["metric"] == "avg_faithfulness"
        and first_case["asks"] == "Подтверждено ли фрагментами всё, что сказано в ответе?"
    )
    assert "score" not in json.dumps(first_case["asked"])
    case = first_case["asked"]["case_id"]
    saved = read_json(post(pages, "save", label_fields(night, case_id=case, value=1, note="так")))
    (stored,) = read_labels(database(), night["evaluation_id"])
    assert (stored.case_id, stored.value, stored.note) == (case, 1.0, "так")
    assert saved["score"] == stored.score
    assert saved["asked"]["case_id"] != case and saved["progress"]["own"] == 1
    undone = read_json(post(pages, "undo", label_fields(night)))
    assert undone["asked"]["case_id"] == case and undone["progress"]["own"] == 0
    assert read_labels(database(), night["evaluation_id"]) == []
    read_json(post(pages, "save", label_fields(night, case_id=case, value=None)))
    assert read_labels(database(), night["evaluation_id"])[0].value is None


def test_two_annotators_can_label_a_case(pages: LabelPages, night: Document) -> None:
    case = next_to_label(pages, night)["asked"]["case_id"]
    for annotator, value in (("anna", 1), ("boris", 0), ("anna", 0.5)):
        assert post(pages, "save", label_fields(night, case_id=case, value=value, annotator=annotator)).status == 200
    assert {(stored.annotator, stored.value) for stored in read_labels(database(), night["evaluation_id"])} == {
        ("anna", 0.5),
        ("boris", 0),
    }


def test_evaluations_lists_labellable_metrics(pages: LabelPages, night: Document) -> None:
    rows = [row for row in read_json(get(pages, "evaluations")) if row["evaluation"] == night["evaluation_id"]]
    assert [(row["source"], row["metrics"]) for row in rows] == [
        ("label_page", ["avg_faithfulness", "avg_answer_relevance", "avg_answer_correctness"])
    ]


STRANGERS: dict[str, tuple[dict[str, str | None], int]] = {
    "another page": ({"Origin": "https://evil.example"}, 403),
    "another name": ({"Host": "evil.example:4281", "Origin": "http://evil.example:4281"}, 403),
    "no page": ({"Origin": None}, 403),
    "another site": ({"Sec_Fetch_Site": "cross-site"}, 403),
    "a form": ({"Content_Type": "text/plain"}, 415),
    "no type": ({"Content_Type": None}, 415),
    "an old page": ({"X_Yarus_Page": "000000000000"}, 409),
    "no version": ({"X_Yarus_Page": None}, 409),
}


@pytest.mark.parametrize("name", STRANGERS)
def test_save_rejects_foreign_requests(pages: LabelPages, night: Document, name: str) -> None:
    case = next_to_label(pages, night)["asked"]["case_id"]
    headers, status = STRANGERS[name]
    reply = post(pages, "save", label_fields(night, case_id=case, value=1), **headers)
    assert reply.status == status and read_json(reply)["error"]
    assert read_labels(database(), night["evaluation_id"]) == []


@pytest.mark.parametrize(
    "path",
    [
        "/label/",
        "/label/x/",
        "/label/../",
        "/label/%00/next",
        "/label/x/save",
        "//[",
        "/label/\udc80/",
        "*",
        "http://x/",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_pages_need_the_secret(pages: LabelPages, path: str, method: str) -> None:
    assert pages.answer(method, path, OWN, b"{}").status == 404
    assert pages.token not in pages.answer(method, path, OWN, b"{}").body.decode()


def test_address_needs_a_final_slash(pages: LabelPages) -> None:
    assert pages.answer("GET", pages.path.removesuffix("/"), OWN).status == 404  # its relative links would not work


def test_each_server_has_its_own_secret(pages: LabelPages) -> None:
    other_pages = LabelPages(database, frozenset({"localhost"}))
    assert len(pages.token) >= 32 and pages.token != other_pages.token
    assert pages.answer("GET", other_pages.path, OWN).status == 404


@pytest.mark.parametrize("name", ["../label_pages.py", "label.html", "../../README.md", "nothing", "save"])
def test_other_files_are_not_served(pages: LabelPages, name: str) -> None:
    assert get(pages, name).status == 404


WRONG: dict[str, Any] = {
    "no JSON": b"{",
    "deep": b"[" * 10_000,
    "a list": [],
    "a number above": {"value": 1.5},
    "a number below": {"value": -0.1},
    "no number": {"value": "1"},
    "not a number": b'{"value": NaN}',
    "true": {"value": True},
    "nothing": {},
    "no case": {"value": 1},
    "another case": {"value": 1, "case_id": "label_page:none"},
    "no text": {"value": 1, "case_id": ["x"]},
    "no name": {"annotator": ""},
    "markup as a name": {"annotator": MARKUP},
    "half a character": {"note": "\ud800"},
    "a NUL": {"evaluation": "tier2\0"},
    "a huge number": {"value": 10**400},
    "a long note": {"note": "x" * 2_001},
    "no evaluation": {"evaluation": ""},
    "another evaluation": {"evaluation": "nobody"},
    "another metric": {"metric": "avg_bleu"},
}


@pytest.mark.parametrize("name", WRONG)
def test_save_rejects_invalid_labels(pages: LabelPages, night: Document, name: str) -> None:
    document = WRONG[name]
    case = next_to_label(pages, night)["asked"]["case_id"]
    if isinstance(document, dict):
        complete = label_fields(night) | ({} if name in ("nothing", "no case") else {"case_id": case})
        document = complete | ({} if name == "nothing" else {"value": 1}) | document
    elif isinstance(document, bytes) and name == "not a number":
        document = json.dumps(label_fields(night, case_id=case, value=float("nan"))).encode()
    reply = post(pages, "save", document)
    assert reply.status == 400 and read_json(reply)["error"]
    assert read_labels(database(), night["evaluation_id"]) == []


def test_save_reports_unavailable_database(pages: LabelPages, night: Document) -> None:
    def raise_unavailable() -> Any:
        from yarus.db.errors import DatabaseUnavailable

        raise DatabaseUnavailable("postgresql://someone:s3cret@db/there: nobody answers")

    pages._engine = raise_unavailable
    reply = post(pages, "save", label_fields(night, case_id="x", value=1))
    assert reply.status == 503
    assert "nobody answers" in read_json(reply)["error"] and "s3cret" not in read_json(reply)["error"]


def test_page_escapes_texts_and_runs_only_own_script(pages: LabelPages, at_home: Path, tmp_path: Path) -> None:
    rows = [question(i, question=f"{MARKUP} Что велит правило {i}?") for i in range(3)]
    with serve_models():
        source = load(tmp_path, "label_markup", rows)
        evaluation = evaluate("tier2", source=source)
    document = read_json(get(pages, f"next?evaluation={evaluation['evaluation_id']}&annotator=anna"))
    assert MARKUP in document["asked"]["question"]  # as JSON, which the page inserts as text
    page = get(pages)
    assert page.kind == "text/html" and "<script>" not in page.body.decode()  # only its own file, and data
    assert "innerHTML" not in get(pages, "label.js").body.decode()

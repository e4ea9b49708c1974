"""The page for labels against strangers: what is let in, what is kept, what is said of everything else."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.evaluations import Document, load, question
from tests.support.evaluations import evaluate as evaluated_by
from tests.tasks.dataset.labelling.labelled import evaluated, models
from yarus.db.stores.labels import label as table
from yarus.db.stores.labels import labels_of
from yarus.deployments.guard import names
from yarus.deployments.pages.label_pages import CURRENT, LabelPages, Reply
from yarus.tasks.config.connections import database

MARKUP = "</script><script>alert(1)</script>"
OWN = {"Host": "127.0.0.1:4281", "Origin": "http://127.0.0.1:4281", "Sec-Fetch-Site": "same-origin",
       "Content-Type": "application/json", "X-Yarus-Page": CURRENT}  # fmt: skip


@pytest.fixture(scope="module")
def night(at_home_for_module: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Document]:
    with models():
        yield evaluated(tmp_path_factory.mktemp("page"), "label_page", 30)


@pytest.fixture
def pages(night: Document, at_home: Path) -> Iterator[LabelPages]:
    yield LabelPages(database, names("127.0.0.1", ""))
    with database().begin() as connection:
        connection.execute(table.delete().where(table.c.source == "label_page"))


def get(pages: LabelPages, name: str = "", **headers: str | None) -> Reply:
    return pages.answer("GET", pages.path + name, {**OWN, "Origin": None} | headers)


def post(pages: LabelPages, name: str, given: Any, **headers: str | None) -> Reply:
    body = given if isinstance(given, bytes) else json.dumps(given).encode()
    return pages.answer("POST", pages.path + name, OWN | {k.replace("_", "-"): v for k, v in headers.items()}, body)


def told(reply: Reply) -> Any:
    assert reply.kind == "application/json"
    return json.loads(reply.body)


def whom(night: Document, **more: Any) -> Document:
    return {"evaluation": night["evaluation_id"], "metric": "avg_faithfulness", "annotator": "anna"} | more


def asked(pages: LabelPages, night: Document) -> Document:
    found: Document = told(get(pages, f"next?evaluation={night['evaluation_id']}&annotator=anna"))
    return found


def test_a_label_is_kept_before_it_is_confirmed(pages: LabelPages, night: Document) -> None:
    first = asked(pages, night)
    assert (
        first["metric"] == "avg_faithfulness"
        and first["asks"] == "Подтверждено ли фрагментами всё, что сказано в ответе?"
    )
    assert "score" not in json.dumps(first["asked"])
    case = first["asked"]["case_id"]
    done = told(post(pages, "save", whom(night, case_id=case, value=1, note="так")))
    (kept,) = labels_of(database(), night["evaluation_id"])
    assert (kept.case_id, kept.value, kept.note) == (case, 1.0, "так")
    assert done["score"] == kept.score
    assert done["asked"]["case_id"] != case and done["progress"]["own"] == 1
    gone = told(post(pages, "undo", whom(night)))
    assert gone["asked"]["case_id"] == case and gone["progress"]["own"] == 0
    assert labels_of(database(), night["evaluation_id"]) == []
    told(post(pages, "save", whom(night, case_id=case, value=None)))
    assert labels_of(database(), night["evaluation_id"])[0].value is None


def test_two_browsers_may_label_the_same_case(pages: LabelPages, night: Document) -> None:
    case = asked(pages, night)["asked"]["case_id"]
    for annotator, value in (("anna", 1), ("boris", 0), ("anna", 0.5)):
        assert post(pages, "save", whom(night, case_id=case, value=value, annotator=annotator)).status == 200
    assert {(one.annotator, one.value) for one in labels_of(database(), night["evaluation_id"])} == {
        ("anna", 0.5),
        ("boris", 0),
    }


def test_the_list_names_what_can_be_labelled(pages: LabelPages, night: Document) -> None:
    found = [row for row in told(get(pages, "evaluations")) if row["evaluation"] == night["evaluation_id"]]
    assert [(row["source"], row["metrics"]) for row in found] == [
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
def test_nobody_else_writes(pages: LabelPages, night: Document, name: str) -> None:
    case = asked(pages, night)["asked"]["case_id"]
    headers, status = STRANGERS[name]
    reply = post(pages, "save", whom(night, case_id=case, value=1), **headers)
    assert reply.status == status and told(reply)["error"]
    assert labels_of(database(), night["evaluation_id"]) == []


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
def test_without_the_secret_there_is_no_page(pages: LabelPages, path: str, method: str) -> None:
    assert pages.answer(method, path, OWN, b"{}").status == 404
    assert pages.token not in pages.answer(method, path, OWN, b"{}").body.decode()


def test_the_address_ends_with_a_slash(pages: LabelPages) -> None:
    assert pages.answer("GET", pages.path.removesuffix("/"), OWN).status == 404  # its files have no place


def test_every_server_has_a_secret_of_its_own(pages: LabelPages) -> None:
    other = LabelPages(database, frozenset({"localhost"}))
    assert len(pages.token) >= 32 and pages.token != other.token
    assert pages.answer("GET", other.path, OWN).status == 404


@pytest.mark.parametrize("name", ["../label_pages.py", "label.html", "../../README.md", "nothing", "save"])
def test_nothing_else_is_read(pages: LabelPages, name: str) -> None:
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
def test_what_is_wrong_is_said_and_not_kept(pages: LabelPages, night: Document, name: str) -> None:
    given = WRONG[name]
    case = asked(pages, night)["asked"]["case_id"]
    if isinstance(given, dict):
        whole = whom(night) | ({} if name in ("nothing", "no case") else {"case_id": case})
        given = whole | ({} if name == "nothing" else {"value": 1}) | given
    elif isinstance(given, bytes) and name == "not a number":
        given = json.dumps(whom(night, case_id=case, value=float("nan"))).encode()
    reply = post(pages, "save", given)
    assert reply.status == 400 and told(reply)["error"]
    assert labels_of(database(), night["evaluation_id"]) == []


def test_a_database_that_is_away_is_said_and_can_be_tried_again(pages: LabelPages, night: Document) -> None:
    def away() -> Any:
        from yarus.db.errors import DatabaseUnavailable

        raise DatabaseUnavailable("postgresql://someone:s3cret@db/there: nobody answers")

    pages._engine = away
    reply = post(pages, "save", whom(night, case_id="x", value=1))
    assert reply.status == 503
    assert "nobody answers" in told(reply)["error"] and "s3cret" not in told(reply)["error"]


def test_texts_are_data_and_the_page_runs_nothing_but_its_own(pages: LabelPages, at_home: Path, tmp_path: Path) -> None:
    rows = [question(i, question=f"{MARKUP} Что велит правило {i}?") for i in range(3)]
    with models():
        source = load(tmp_path, "label_markup", rows)
        found = evaluated_by("tier2", source=source)
    one = told(get(pages, f"next?evaluation={found['evaluation_id']}&annotator=anna"))
    assert MARKUP in one["asked"]["question"]  # as JSON, which the page puts in as text
    page = get(pages)
    assert page.kind == "text/html" and "<script>" not in page.body.decode()  # only its own file, and data
    assert "innerHTML" not in get(pages, "label.js").body.decode()

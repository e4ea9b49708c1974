"""The doctor: findings and advice about sources, and independence of its checks."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pgvector.psycopg import register_vector
from sqlalchemy import create_engine, event, text

from tests.support.command_line import CommandLine
from yarus.db.loading.load_rows import ImportedRows, IncomingRow, load_rows
from yarus.deployments.upkeep.doctor import examine
from yarus.deployments.upkeep.doctor_sources import Check, examine_source, url_forms
from yarus.tasks.config.connections import database, open_source
from yarus.tasks.models.embedding.embedders import get_embedder

Production = Callable[..., str]
PAGE = "https://c.example/pages/viewpage.action?pageId="


@pytest.fixture
def examined(
    production: Production, at_home: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., dict[str, list[Check]]]:
    """Return a function that examines a production database after some statements, with findings by subject."""

    def examine_production(
        name: str, *statements: str, vectors: dict[int, np.ndarray] | None = None
    ) -> dict[str, list[Check]]:
        url = production(name, *statements)
        engine = create_engine(url)
        event.listen(engine, "connect", lambda connection, _: register_vector(connection))
        with engine.begin() as connection:
            for chunk, vector in (vectors or {}).items():
                connection.execute(text("UPDATE chunk SET embedding = :v WHERE id = :id"), {"v": vector, "id": chunk})
        engine.dispose()
        monkeypatch.setenv("YARUS_SOURCE_URL", url)
        findings: dict[str, list[Check]] = {}
        for finding in examine_source(open_source("production")):
            findings.setdefault(finding.check_name.removeprefix("source production").removeprefix(": "), []).append(
                finding
            )
        return findings

    return examine_production


def test_doctor_accepts_a_sound_source(examined: Callable[..., dict[str, list[Check]]]) -> None:
    findings = examined("sound")
    assert findings[""] == [Check("source production", "4 questions, 3 chunks")]
    assert {check.check_result for check in findings["NULL in question_answer"]} == {
        "answer 25.0%, confluence_url 0.0%, score 50.0%, user_id 25.0%, embedding 100.0%"
    }
    assert findings["NULL in chunk"][0].check_result == "confluence_url 0.0%, text 0.0%, embedding 100.0%"
    assert findings["addresses"][0].check_result == "5 addresses of 3 pages: pageId 6, empty or None 1, preview= 1"
    assert findings["labels"] == [Check("source production: labels", "all 3 name what is in the corpus")]
    assert findings["text search"][0].check_result == "configuration russian"
    assert findings["rights"][0].check_result == "the role is yarus, a superuser"
    assert "only SELECT" in findings["rights"][0].recommended_action
    assert max(check.exit_code for checks in findings.values() for check in checks) == 0


def test_doctor_explains_empty_columns(
    examined: Callable[..., dict[str, list[Check]]],
) -> None:
    findings = examined("gaps", "UPDATE question_answer SET score = NULL, confluence_url = NULL")
    [gaps] = findings["NULL in question_answer"]
    assert "score 100.0%" in gaps.check_result
    assert "no confirmed questions" in gaps.recommended_action
    assert "yarus dataset" in gaps.recommended_action
    assert (findings["labels"][0].check_result, findings["labels"][0].exit_code) == ("none", 0)


def test_doctor_counts_stale_labels(
    examined: Callable[..., dict[str, list[Check]]],
) -> None:
    findings = examined(
        "stale",
        "CREATE TABLE annotation (question_id bigint, ground_truth_answer text, relevant_chunk_ids jsonb,"
        " relevant_urls jsonb, ground_truth_show boolean, answerable boolean, cluster text, dialog_id text,"
        " turn integer, origin text)",
        """INSERT INTO annotation (question_id, relevant_chunk_ids, relevant_urls) VALUES
           (1, '["8", "99", "98"]', NULL), (2, '{"99": 2}', '["https://c.example/display/X/Gone"]')""",
    )
    chunks, pages = findings["labels"]
    assert chunks.check_result == "3 labels name 2 chunks that are not in the corpus: 98, 99"
    assert pages.check_result == "1 labels name 1 pages that are not in the corpus: https://c.example/display/X/Gone"
    assert "/display/" in pages.recommended_action
    assert "/display/" not in chunks.recommended_action
    assert findings[""][0].check_result == "4 questions, 3 chunks, 2 annotations"


def test_doctor_compares_vectors_with_the_model(examined: Callable[..., dict[str, list[Check]]]) -> None:
    texts = {
        10: "Стипендия назначается студентам приказом ректора.",
        9: "Общежитие находится рядом с корпусом на улице Ленина.",
    }
    own_vectors = dict(zip(texts, get_embedder("lexical").encode(list(texts.values())), strict=True))
    [equal] = examined("equal", vectors=own_vectors)["vectors in chunk"]
    assert (equal.check_result, equal.exit_code) == ("2 of 2000 dimensions; 2 embedded again are equal", 0)
    [swapped] = examined("other", vectors={10: own_vectors[9]})["vectors in chunk"]
    assert swapped.exit_code == 2
    assert "different models" in swapped.check_result
    assert "YARUS_EMBEDDER" in swapped.check_result
    [small] = examined("small", vectors={10: np.ones(3)})["vectors in chunk"]
    assert (small.exit_code, "has 3 dimensions" in small.check_result) == (2, True)
    [mixed] = examined("two_dimensions", vectors={10: np.ones(3), 9: np.ones(4)})["vectors in chunk"]
    assert (mixed.exit_code, mixed.check_result) == (2, "1 of 3 dimensions, 1 of 4 dimensions")
    codes = "ALTER TABLE chunk ALTER text TYPE integer USING id"
    [coded] = examined("codes", codes, vectors={10: np.ones(2000)})["vectors in chunk"]
    assert (coded.exit_code, "different models" in coded.check_result) == (2, True)
    zero, usable = examined("zero", vectors={10: own_vectors[10], 9: np.zeros(2000)})["vectors in chunk"]
    assert "1 of them are zero" in zero.check_result
    assert usable.check_result == "2 of 2000 dimensions; 1 embedded again are equal"


def test_unreadable_source_does_not_hide_others(
    at_own_home: Path, production: Production, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YARUS_SOURCE_URL", production("broken", "DROP TABLE chunk"))
    engine = database()
    load_rows(engine, "no_language", ImportedRows(
        questions=[IncomingRow("1", {"id": "1", "question": "?"})], chunks=[IncomingRow("1", {"id": "1", "text": "x"})]
    ), language="de", origin="a test")  # fmt: skip
    findings = {finding.check_name: finding for finding in examine()}
    assert findings["source production"].exit_code == 2
    assert "chunk" in findings["source production"].check_result
    assert findings["source sample"].check_result == "374 questions, 148 chunks, 279 annotations"
    assert findings["source no_language: text search"].exit_code == 2
    assert "'de'" in findings["source no_language: text search"].check_result
    assert findings["source no_language: labels"].check_result == "none"


def test_unreachable_production_has_code_3(at_own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARUS_SOURCE_URL", "postgresql://bot:s3cret@127.0.0.1:1/x")
    [finding] = [finding for finding in examine() if finding.check_name == "source production"]
    assert finding.exit_code == 3
    assert "s3cret" not in finding.check_result


def test_doctor_json_exits_with_the_worst_code(at_own_home: Path) -> None:
    finished = CommandLine(at_own_home)(
        "doctor", "--json", env={"YARUS_SOURCE_URL": "postgresql://bot:s3cret@127.0.0.1:1/x"}, ok=False
    )
    assert finished.code == 3
    assert {frozenset(finding) for finding in finished.json} == {
        frozenset({"check_name", "check_result", "recommended_action", "exit_code", "what", "found", "way_out", "code"})
    }
    assert {"settings", "database", "results", "embedder", "metrics", "source sample"} <= {
        finding["check_name"] for finding in finished.json
    }
    assert "s3cret" not in finished.out + finished.err


@pytest.mark.parametrize(
    ("url", "forms"),
    [
        (f"{PAGE}1", ["pageId"]),
        (f"{PAGE}1&preview=/1/a.png#x", ["pageId", "preview=", "#fragment"]),
        (f"{PAGE}1&amp;utm_source=bot", ["pageId", "tracking"]),
        ("https://c.example/display/IT/Wi-Fi?yclid=1", ["display", "tracking"]),
        ("https://c.example/x?tab=2", ["plain"]),
        ("None", ["empty or None"]),
        ("", ["empty or None"]),
        ("c.example/x", ["no http"]),
        ("http://[x", ["no http"]),
    ],
)
def test_url_forms(url: str, forms: list[str]) -> None:
    assert url_forms(url) == forms

"""Keys of documents before and after their renaming."""

from typing import Any

from sqlalchemy import Engine

from yarus.db import analyses
from yarus.db.former_keys import add_former_keys, replace_former_keys

FORMER: dict[str, Any] = {"chatter": [], "utilisation": {"chunks": {"dead": [{"id": "a"}], "n_dead": 1, "total": 2}}}
CURRENT: dict[str, Any] = {
    "non_questions": [],
    "utilisation": {"chunks": {"never_retrieved": [{"id": "a"}], "n_never_retrieved": 1, "total": 2}},
}


def test_former_keys_stand_beside_current_ones() -> None:
    document = add_former_keys([CURRENT])[0]
    assert document.keys() == {"chatter", "non_questions", "utilisation"}
    chunks = document["utilisation"]["chunks"]
    assert chunks == CURRENT["utilisation"]["chunks"] | FORMER["utilisation"]["chunks"]
    assert replace_former_keys(FORMER) == replace_former_keys(CURRENT) == CURRENT


def test_analyses_of_before_have_current_keys(engine: Engine) -> None:
    with analyses.open_analysis(engine, "corpus", "former_keys", {}) as corpus_id:
        analyses.save_analysis(engine, corpus_id, FORMER, "completed")
    [listed] = analyses.list_analyses(engine, "corpus", source="former_keys")
    assert listed["document"] == analyses.find_analysis(engine, "corpus", corpus_id)["document"] == CURRENT

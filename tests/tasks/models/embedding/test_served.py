"""An embedder over HTTP: what it is asked, what comes of the answers, and what it is called."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from pydantic import SecretStr

from tests.support.embedding.replies import DIMENSIONS, KEY, asked, configured, embeddings, of_questions, vector
from tests.support.llm_server import Do, FakeLLMServer, http
from yarus.db.errors import InputError
from yarus.tasks.config.settings import EmbedderService, Settings
from yarus.tasks.models.embedding.embedders import Embedder, embedder, embedders, full_name

TEXTS = ["Где столовая?", "b", "🎓 図書館", "half \ud83c an emoji", "long " * 500]


def unit(texts: list[str]) -> np.ndarray:
    found = np.array([vector(text) for text in texts])
    return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.mark.parametrize("form", ["base64", "float"])
def test_both_forms_are_read(server: FakeLLMServer, form: str) -> None:
    """A server that refuses the field `encoding_format` is asked without it."""

    def script(number: int, request: dict) -> bytes:
        if form == "float" and "encoding_format" in request:
            return http(422, '{"error": {"message": "extra fields not permitted"}}')
        return embeddings(request)

    server.script = script
    found = of_questions(server).encode(TEXTS)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, unit([text.replace("\ud83c", "?") for text in TEXTS]), atol=1e-6)
    assert server.requests[-1].get("encoding_format") == ("base64" if form == "base64" else None)


def test_floats_are_read_where_base64_was_asked_for(server: FakeLLMServer) -> None:
    server.script = lambda number, request: embeddings(request | {"encoding_format": "float"})
    np.testing.assert_allclose(of_questions(server).encode(["a", "b"]), unit(["a", "b"]), atol=1e-6)


def test_the_index_decides_the_order(server: FakeLLMServer) -> None:
    server.script = lambda number, request: embeddings(request, lambda data: data[::-1])
    np.testing.assert_allclose(of_questions(server).encode(["a", "b", "c"]), unit(["a", "b", "c"]), atol=1e-6)
    server.script = lambda number, request: embeddings(
        request, lambda data: [{"embedding": one["embedding"]} for one in data]
    )
    np.testing.assert_allclose(of_questions(server).encode(["a", "b"]), unit(["a", "b"]), atol=1e-6)


def test_large_and_small_numbers_come_to_length_one(server: FakeLLMServer) -> None:
    scales = {"large": 1e300, "small": 1e-300, "?": 1}
    server.script = lambda number, request: embeddings(
        request | {"encoding_format": "float"},
        lambda data: [
            one | {"embedding": [value * scales[text] for value in one["embedding"]]}
            for one, text in zip(data, request["input"], strict=True)
        ],
    )
    np.testing.assert_allclose(of_questions(server).encode(["large", "small"]), unit(["large", "small"]), atol=1e-6)


def test_a_text_without_content_is_zero_and_not_asked_for(server: FakeLLMServer) -> None:
    model = of_questions(server)
    found = model.encode(["", "a", " \n"])
    assert (found[[0, 2]] == 0).all()
    assert asked(server) == ["a"]
    assert model.encode([]).shape == (0, DIMENSIONS)
    assert model.encode([" "]).shape == (1, DIMENSIONS)


def test_what_is_sent(server: FakeLLMServer) -> None:
    configuration = configured(server.url, query={"input_type": "query", "dimensions": 8}, passage={"model": "other"})
    configuration = configuration.model_copy(update={"query_prefix": "query: ", "passage_prefix": "passage: "})
    questions, chunks = embedders(server.url, configuration)
    questions.encode(["q"])
    chunks.encode(["c"])
    hello, of_question, of_chunk = server.requests  # one hello for both: they share a client
    assert hello == {"model": "asked", "input": ["?"], "encoding_format": "base64", "input_type": "query",
                     "dimensions": 8}  # fmt: skip
    assert of_question == hello | {"input": ["query: q"]}
    assert of_chunk == {"model": "other", "input": ["passage: c"], "encoding_format": "base64"}
    assert "/v1/embeddings HTTP" in server.headers[0]
    assert f"authorization: bearer {KEY}" in server.headers[0].lower()
    for ours in ("input", "encoding_format"):
        with pytest.raises(InputError, match=ours):
            of_questions(server, query={ours: "mine"})


def test_batches_are_full_and_in_flight_together(server: FakeLLMServer) -> None:
    server.script = lambda number, request: Do(embeddings(request), after_s=0.05)
    texts = [f"text {number}" for number in range(100)]
    found = of_questions(server, batch=10, concurrency=3).encode(texts)
    np.testing.assert_allclose(found, unit(texts), atol=1e-6)
    assert [len(request["input"]) for request in server.requests] == [1, *[10] * 10]
    assert server.most_in_flight == 3


def test_a_batch_has_no_more_characters_than_many_models_take(server: FakeLLMServer) -> None:
    of_questions(server, concurrency=1).encode(["x" * 30_000] * 5 + ["y" * 200_000, "z"])
    assert [len(request["input"]) for request in server.requests] == [1, 2, 2, 1, 1, 1]


def test_requests_a_minute_are_kept_and_callers_share_the_limit(server: FakeLLMServer) -> None:
    started = threading.Event()
    server.script = lambda number, request: (started.set(), Do(embeddings(request), after_s=0.02))[1]
    with ThreadPoolExecutor(4) as pool:
        models = [of_questions(server, batch=1, concurrency=2) for _ in range(4)]
        list(pool.map(lambda model: model.encode([f"{id(model)} {n}" for n in range(10)]), models))
    assert server.most_in_flight == 2
    assert len(asked(server)) == 40


def test_pseudonyms_are_sent_where_models_get_them(
    server: FakeLLMServer, at_home: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = of_questions(server)
    masked = embedders(server.url, configured(server.url).model_copy(update={"mask_calls": True}))[0]
    masked.encode(["Почта ivanov@example.ru, что с ней?"])
    assert "ivanov" not in str(server.requests)
    assert "Почта [" in asked(server)[0]
    assert masked.identity != plain.identity


def identity(name: str, **more: object) -> str:
    return embedders(name, Settings(_env_file=None, **more))[0].identity


def test_the_identity_has_all_that_changes_the_vectors_and_no_key() -> None:
    url = "http://127.0.0.1:9/v1"
    base = identity(f"{url}#m", embedder=url, embedder_api_key=SecretStr(KEY))
    assert base == f"{url}#m|prefix:|v:1"
    same = {
        identity(f"{url}/#m"),
        identity(f"{url}/embeddings#m"),
        identity(url, embedder_model="m"),
        identity(url, embedder=f"{url}#m"),
        identity(f"{url}#m", embedder_service=EmbedderService(batch=1, concurrency=1, timeout_s=1)),
    }
    assert same == {base}
    others = [
        identity(f"{url}#n"),
        identity("http://127.0.0.1:8/v1#m"),
        identity(f"{url}#m", query_prefix="query: "),
        identity(f"{url}#m", embedder_service=EmbedderService(query={"input_type": "query"})),
    ]
    assert len({base, *others}) == 5
    assert identity(f"{url}#m", embedder_service=EmbedderService(passage={"input_type": "passage"})) == base


def test_a_key_goes_to_the_address_of_its_own_setting_only(
    server: FakeLLMServer, at_home: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, shared = f"{server.url}/other/v1", "sk-of-the-other-0123456789"
    configuration = configured(server.url)
    configuration = configuration.model_copy(
        update={"similarity_embedder": other, "similarity_embedder_api_key": SecretStr(shared)}
    )
    for name in (server.url, f"{server.url}#second", f"{other}#m", f"{server.url}/third#m"):
        embedders(name, configuration)[0].encode(["a"])
    without = configuration.model_copy(update={"embedder_api_key": None})
    embedders(server.url, without)[0].encode(["a"])
    keys = [
        next((line for line in head.lower().splitlines() if line.startswith("authorization")), "")
        for head in server.headers[::2]
    ]
    assert keys == [f"authorization: bearer {KEY}"] * 2 + [f"authorization: bearer {shared}", "", ""]


def test_token_command_is_run_and_its_token_is_sent(server: FakeLLMServer, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("token-of-a-command-0123456789", encoding="utf-8")
    of_questions(server, token_command=SecretStr(f"cat {tmp_path / 'token'}")).encode(["a"])
    assert all("authorization: bearer token-of-a-command-0123456789" in head.lower() for head in server.headers)


def test_headers_and_tokens_go_only_to_their_own_address(server: FakeLLMServer, at_home: object) -> None:
    other = f"{server.url}/other/v1"
    configuration = configured(
        server.url,
        headers={"api-key": SecretStr("of-the-retriever-0123")},
        token_command=SecretStr("echo a-token-0123"),
    ).model_copy(update={"similarity_embedder": other})
    for name in (server.url, f"{server.url}#second", f"{other}#m", f"{server.url}/third#m"):
        embedders(name, configuration)[0].encode(["a"])
    heads = [head.lower() for head in server.headers[::2]]
    assert ["api-key: of-the-retriever-0123" in head for head in heads] == [True, True, False, False]
    assert ["authorization: bearer a-token-0123" in head for head in heads] == [True, True, False, False]


def test_token_url_gets_no_key_of_another_address(server: FakeLLMServer, at_home: object) -> None:
    own = configured("http://127.0.0.1:9/v1", token_url="http://127.0.0.1:9/oauth")
    key = SecretStr("sk-of-the-other-0123456789")
    configuration = own.model_copy(update={"similarity_embedder": server.url, "similarity_embedder_api_key": key})
    embedders(f"{server.url}#m", configuration)[0].encode(["a"])
    assert f"authorization: bearer {key.get_secret_value()}" in server.headers[0].lower()


def test_token_url_that_cannot_work_is_reported_at_once() -> None:
    with pytest.raises(InputError, match="YARUS_EMBEDDER_SERVICE__TOKEN_URL: expected an address"):
        embedders("http://h/v1", configured("http://h/v1", token_url="nonsense"))


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
def test_an_address_that_cannot_be_used(name: str, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    for make in (lambda: embedders(name, Settings(_env_file=None)), lambda: full_name(name, Settings(_env_file=None))):
        with pytest.raises(InputError) as error:
            make()
        assert all(word in str(error.value) for word in words), str(error.value)
        assert "s3cret" not in str(error.value)


def test_a_key_that_cannot_be_sent(server: FakeLLMServer) -> None:
    configuration = configured(server.url).model_copy(update={"embedder_api_key": SecretStr("ключ\n")})
    with pytest.raises(InputError, match="YARUS_EMBEDDER_API_KEY: has characters"):
        embedders(server.url, configuration)[0].encode(["a"])
    assert server.requests == []


def test_the_measuring_embedder_has_neither_prefix_nor_fields(
    server: FakeLLMServer, at_home: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YARUS_QUERY_PREFIX", "query: ")
    monkeypatch.setenv("YARUS_EMBEDDER_SERVICE__QUERY", json.dumps({"input_type": "query"}))
    model: Embedder = embedder(f"{server.url}#m")
    model.encode(["a"])
    assert server.requests[-1] == {"model": "m", "input": ["a"], "encoding_format": "base64"}


@pytest.mark.usefixtures("english")
def test_whoever_answers_instead_is_told_of_once(server: FakeLLMServer, caplog: pytest.LogCaptureFixture) -> None:
    server.script = lambda number, request: embeddings(request, model="e5\n-large")
    for text in "ab":
        of_questions(server).encode([text])
    told = [message for message in caplog.messages if "asked for the model" in message]
    assert told == ["embedder: asked for the model asked, served by e5\ufffd-large"]

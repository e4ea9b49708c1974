"""Credentials on real sockets: headers, fetched and renewed tokens, certificates, addresses with a query."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.support.llm_clients import QUICK_RETRIES, make_call, make_chat_settings
from tests.support.llm_server import FakeLLMServer, make_response, make_score_completion
from tests.tasks.models.test_chat_faults import self_signed
from yarus.db.errors import InputError, ModelUnavailable
from yarus.tasks.config.settings import ModelRole
from yarus.tasks.models import credentials
from yarus.tasks.models.chat import open_chat
from yarus.tasks.models.credentials import Credentials
from yarus.tasks.models.endpoints import check_role

SCOPE = {"scope": "GIGACHAT_API_PERS"}
SECRET = "geheim-0123456789"


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "PAUSES_S", (0.01, 0.02, 0.03))


def fail_first(times: int, response: Callable[[], web.Response]) -> Callable[[Any], web.Response | None]:
    """Return a function that refuses a number of tokens."""
    remaining = iter(range(times))
    return lambda form: None if next(remaining, None) is None else response()


def make_credentials(key: str = "", **role: Any) -> Credentials:
    return Credentials(ModelRole(**role), key, "YARUS_JUDGE", "YARUS_JUDGE__API_KEY")


def write_command(folder: Path, script: str) -> str:
    """Return a command that runs a script; `n` in the script is the number of the run."""
    counter = f"import pathlib, sys; p = pathlib.Path({str(folder / 'runs')!r})\n"
    counter += "n = len(p.read_text()) + 1 if p.exists() else 1\np.write_text('x' * n)\n"
    (folder / "token.py").write_text(counter + script, encoding="utf-8")
    return f"{sys.executable} {folder / 'token.py'}"


class Bank:
    """Server that issues tokens by OAuth, and answers as a model if the request has the newest token."""

    def __init__(self, lasts_s: float = 1800, refuse: Callable[[Any], web.Response | None] = lambda form: None) -> None:
        self.lasts_s, self.refuse = lasts_s, refuse
        self.n_tokens = 0
        self.authorizations: list[str] = []
        self.forms: list[tuple[str, dict[str, str]]] = []

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        application = web.Application()
        application.router.add_post("/oauth", self._token)
        application.router.add_post("/v1/chat/completions", self._completion)
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()

    async def _token(self, request: web.Request) -> web.Response:
        form = dict(await request.post())
        self.forms.append((request.headers.get("Authorization", ""), form))
        if refusal := self.refuse(form):
            return refusal
        self.n_tokens += 1
        return web.json_response({"access_token": f"token-{self.n_tokens}-0123456789", "expires_at": self._end()})

    def _end(self) -> int:
        return int((time.time() + self.lasts_s) * 1000)

    async def _completion(self, request: web.Request) -> web.Response:
        authorization = request.headers.get("Authorization", "")
        self.authorizations.append(authorization)
        if authorization != f"Bearer token-{self.n_tokens}-0123456789":
            return web.json_response({"status": 401, "message": "Token has expired"}, status=401)
        content = json.dumps({"reason": "", "score": 0.75})
        return web.json_response({"choices": [{"message": {"content": content}, "finish_reason": "stop"}]})


async def statuses(url: str, n: int = 6, **role: Any) -> list[str]:
    async with open_chat("judge", make_chat_settings(url, **role), retries=QUICK_RETRIES) as judge:
        replies = await judge.complete([make_call(number) for number in range(n)])
    return [reply.status for reply in replies]


async def test_token_is_fetched_once_and_renewed_when_refused() -> None:
    bank = Bank()
    async with bank.open() as url:
        role = {"token_url": f"{url}/oauth", "token_form": SCOPE, "concurrency": 3}
        async with open_chat("judge", make_chat_settings(f"{url}/v1", **role), retries=QUICK_RETRIES) as judge:
            first = await judge.complete([make_call(number) for number in range(6)])
            bank.n_tokens += 1  # the token has ended before its announced expiry
            second = await judge.complete([make_call(number) for number in range(6, 12)])
    assert {reply.status for reply in (*first, *second)} == {"ok"}
    assert len(bank.forms) == 2
    (authorization, form), _ = bank.forms
    assert authorization.startswith("Basic ")
    assert form == SCOPE


@pytest.mark.slow("wait: a token expires")
async def test_token_is_renewed_before_it_expires() -> None:
    bank = Bank(lasts_s=61.5)
    async with bank.open() as url:
        role = {"token_url": f"{url}/oauth", "token_form": SCOPE, "concurrency": 1}
        async with open_chat("judge", make_chat_settings(f"{url}/v1", **role), retries=QUICK_RETRIES) as judge:
            await judge.ask(make_call(0))
            await asyncio.sleep(2)
            await judge.ask(make_call(1))
    assert len(bank.forms) == 2
    assert len(bank.authorizations) == 2  # no request was refused


@pytest.mark.parametrize(
    ("status", "body", "word"),
    [
        (400, {"code": 7, "message": "scope from db not fully includes consumed scope"}, "scope"),
        (401, {"code": 6, "message": "credentials doesn't match db data"}, "API_KEY"),
        (200, {"hello": "world"}, "TOKEN_URL"),
    ],
)
async def test_missing_token_stops_and_names_the_setting(status: int, body: dict[str, Any], word: str) -> None:
    bank = Bank(refuse=lambda form: web.json_response(body, status=status))
    async with bank.open() as url:
        with pytest.raises(ModelUnavailable, match=word):
            await statuses(f"{url}/v1", token_url=f"{url}/oauth", token_form=SCOPE)
    assert bank.authorizations == []


async def test_token_command_is_run_again_when_refused(tmp_path: Path) -> None:
    bank = Bank()
    bank.n_tokens = 1
    counter = tmp_path / "runs"
    script = f"import pathlib; p = pathlib.Path({str(counter)!r}); n = len(p.read_text()) + 1 if p.exists() else 1"
    script += "; p.write_text('x' * n); print(f'token-{n}-0123456789')"
    async with bank.open() as url:
        command = f"{sys.executable} -c {json.dumps(script)}"
        async with open_chat(
            "judge", make_chat_settings(f"{url}/v1", token_command=command), retries=QUICK_RETRIES
        ) as judge:
            assert (await judge.ask(make_call(0))).status == "ok"
            bank.n_tokens = 2
            assert (await judge.ask(make_call(1))).status == "ok"
    assert counter.read_text() == "xx"


@pytest.mark.parametrize("command", ["no-such-command", f"{sys.executable} -c 'raise SystemExit(3)'", "echo two words"])
async def test_token_command_without_token_is_reported(llm_server: FakeLLMServer, command: str) -> None:
    with pytest.raises(InputError, match="TOKEN_COMMAND"):
        await statuses(llm_server.url, token_command=command)
    assert llm_server.requests == []


async def test_headers_win_over_the_key_and_stay_secret(llm_server: FakeLLMServer) -> None:
    secret = "azure-0123456789abcdef"
    llm_server.script = lambda number, request: make_response(500, f"your key is {secret}")
    async with open_chat(
        "judge", make_chat_settings(llm_server.url, headers={"api-key": secret}), retries=QUICK_RETRIES
    ) as judge:
        reply = await judge.ask(make_call())
    assert f"api-key: {secret}" in llm_server.headers[0].lower()
    assert secret not in reply.reason
    llm_server.script = lambda number, request: make_score_completion(0.5)
    await statuses(llm_server.url, headers={"Authorization": "Api-Key abc"})
    assert "authorization: api-key abc" in llm_server.headers[-1].lower()
    assert "bearer" not in llm_server.headers[-1].lower()


async def test_ca_file_is_trusted(tmp_path: Path) -> None:
    server = FakeLLMServer(context=self_signed(tmp_path))
    server.start()
    try:
        assert await statuses(server.url, 1) == ["error"]
        assert await statuses(server.url, 1, ca_file=tmp_path / "both.pem") == ["ok"]
        with pytest.raises(InputError, match="CA_FILE"):
            await statuses(server.url, 1, ca_file=tmp_path / "none.pem")
    finally:
        server.stop()


async def test_query_stays_after_the_path(llm_server: FakeLLMServer) -> None:
    base = llm_server.url.removesuffix("/v1")
    address = f"{base}/openai/deployments/judge?api-version=2024-10-21"
    assert await statuses(address, 1) in (["ok"], ["error"])
    assert "/openai/deployments/judge/chat/completions?api-version=2024-10-21 " in llm_server.headers[0]


async def test_extra_body_is_sent_and_temperature_can_be_omitted(llm_server: FakeLLMServer) -> None:
    extra_body = {"chat_template_kwargs": {"enable_thinking": False}, "reasoning_effort": "low"}
    await statuses(llm_server.url, 1, extra_body=extra_body, temperature=None)
    [request] = llm_server.requests
    assert {name: request[name] for name in extra_body} == extra_body
    assert "temperature" not in request


@pytest.mark.parametrize("status", [408, 429, 500, 503])
async def test_token_is_fetched_again_after_a_passing_fault(status: int) -> None:
    bank = Bank(refuse=fail_first(2, lambda: web.Response(status=status, headers={"Retry-After": "0"})))
    async with bank.open() as url:
        assert await statuses(f"{url}/v1", 2, token_url=f"{url}/oauth") == ["ok"] * 2
    assert len(bank.forms) == 3


async def test_token_is_fetched_again_after_a_broken_connection() -> None:
    connections = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        if connections > 1:
            body = b'{"access_token": "token-1-0123456789", "expires_in": 1800}'
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        request_headers = await make_credentials(token_url=f"http://127.0.0.1:{port}/oauth").build_headers()
    assert request_headers == {"authorization": "Bearer token-1-0123456789"}
    assert connections == 2


async def test_token_server_that_times_out_is_tried_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "FETCH_TIMEOUT_S", 0.1)
    bank = Bank()

    async def stall(request: web.Request) -> web.Response:
        bank.forms.append(("", {}))
        await asyncio.sleep(0.5)
        return web.Response()

    monkeypatch.setattr(bank, "_token", stall)
    async with bank.open() as url:
        with pytest.raises(ModelUnavailable, match="--resume"):
            await make_credentials(token_url=f"{url}/oauth").build_headers()
    assert len(bank.forms) == 2


@pytest.mark.parametrize(("delay", "tries"), [("0.05", 4), ("3600", 1)])
async def test_token_server_is_not_waited_for_too_long(delay: str, tries: int) -> None:
    bank = Bank(refuse=lambda form: web.Response(status=503, headers={"Retry-After": delay}))
    async with bank.open() as url:
        started = time.monotonic()
        with pytest.raises(ModelUnavailable, match="HTTP 503"):
            await make_credentials(token_url=f"{url}/oauth").build_headers()
    assert len(bank.forms) == tries
    assert 0.05 * (tries - 1) <= time.monotonic() - started < 5


async def test_valid_token_is_kept_when_it_cannot_be_renewed() -> None:
    bank = Bank()
    async with bank.open() as url:
        tokens = make_credentials(token_url=f"{url}/oauth")
        first = await tokens.build_headers()
        tokens._renew_at = time.monotonic()
        bank.refuse = lambda form: web.Response(status=503)
        assert await tokens.build_headers() == first
        assert await tokens.build_headers() == first
        assert len(bank.forms) == 2  # one try, and the next one after a pause
        tokens._ends_at = tokens._renew_at = time.monotonic()
        with pytest.raises(ModelUnavailable, match="HTTP 503"):
            await tokens.build_headers()
        bank.refuse = fail_first(1, lambda: web.Response(status=503))
        assert await tokens.build_headers() != first


async def test_calls_do_not_wait_while_a_valid_token_is_renewed() -> None:
    bank = Bank()
    async with bank.open() as url:
        tokens = make_credentials(token_url=f"{url}/oauth")
        first = await tokens.build_headers()
        tokens._renew_at = time.monotonic()
        async with tokens._fetching:
            assert await asyncio.wait_for(tokens.build_headers(), 1) == first


async def test_token_command_that_fails_once_is_run_again(tmp_path: Path) -> None:
    command = write_command(tmp_path, "sys.exit('busy') if n == 2 else print(f'token-{n}-0123456789')")
    tokens = make_credentials(token_command=command)
    assert await tokens.build_headers() == {"authorization": "Bearer token-1-0123456789"}
    await tokens.renew(tokens.token)
    assert tokens.token == "token-3-0123456789"


async def test_token_command_error_is_redacted(tmp_path: Path) -> None:
    token = "token-1-0123456789"
    script = f"print({token!r}) if n == 1 else sys.exit('key {SECRET}, was {token}, https://u:{SECRET}2@h')"
    tokens = make_credentials(SECRET, token_command=write_command(tmp_path, script))
    await tokens.build_headers()
    with pytest.raises(InputError, match=r"exit code 1\): key \*\*\*, was \*\*\*") as raised:
        await tokens.renew(tokens.token)
    assert SECRET not in str(raised.value)
    assert token not in str(raised.value)


@pytest.mark.parametrize(
    "address",
    [f"http://user:{SECRET}@h/oauth", f"http://user:{SECRET}/@h", f"user:{SECRET}@h", "nonsense", "ftp://h",
     "http://h:99999", "http://[1/oauth"],
)  # fmt: skip
def test_token_url_that_cannot_work_is_reported(address: str) -> None:
    with pytest.raises(InputError, match=r"^YARUS_JUDGE__TOKEN_URL: .*expected .*https://host/oauth") as raised:
        check_role(ModelRole(base_url="http://h/v1", model="m", token_url=address), "YARUS_JUDGE")
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("field", "remedy"),
    [
        ("model", "YARUS_JUDGE__MODEL"),
        ("max_tokens", "YARUS_JUDGE__MAX_TOKENS"),
        ("max_completion_tokens", "YARUS_JUDGE__MAX_TOKENS"),
        ("temperature", "YARUS_JUDGE__TEMPERATURE"),
        *((name, "remove it") for name in ("messages", "stream", "n", "logprobs")),
    ],
)
def test_extra_body_may_not_replace_what_yarus_sends(field: str, remedy: str) -> None:
    role = ModelRole(base_url="http://h/v1", model="m", extra_body={"top_p": 1, field: 1})
    with pytest.raises(InputError, match=f"YARUS_JUDGE__EXTRA_BODY: .*'{field}'.*{remedy}$"):
        check_role(role, "YARUS_JUDGE")


def test_extra_body_may_set_the_response_format() -> None:
    check_role(
        ModelRole(base_url="http://h/v1", model="m", extra_body={"response_format": {"type": "text"}}), "YARUS_JUDGE"
    )


@pytest.mark.parametrize(
    "query", [f"?key={SECRET}", f"?api-version=1&API-Key={SECRET}", f"?token={SECRET}%2F", f"?code={SECRET}=="]
)
async def test_secret_in_an_address_is_refused(query: str) -> None:
    role = ModelRole(base_url=f"http://h/v1{query}", model="m")
    with pytest.raises(InputError, match="YARUS_JUDGE__HEADERS") as raised:
        check_role(role, "YARUS_JUDGE")
    assert SECRET not in str(raised.value)
    with pytest.raises(InputError, match="YARUS_JUDGE__TOKEN_FORM") as raised:
        make_credentials(token_url=f"http://h/oauth{query}")
    assert SECRET not in str(raised.value)

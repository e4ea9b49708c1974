"""Faults of a chat server, on real sockets: the right status, no invented score, no lost case, no hang."""

import asyncio
import datetime
import ipaddress
import json
import logging
import random
import ssl
import traceback
from dataclasses import replace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.llm_clients import KEY, QUICK_RETRIES, ask_for_verdict, make_call, make_chat_settings
from tests.support.llm_server import (
    JSON_HEADER,
    Action,
    FakeLLMServer,
    make_completion,
    make_response,
    make_score_completion,
)
from yarus.db.errors import ModelUnavailable
from yarus.tasks.models.chat import open_chat
from yarus.tasks.models.rate_limits import RetryPolicy
from yarus.tasks.models.verdicts import ask_for_score, get_value

GOOD_REPLY = make_score_completion(0.5)
CUT_REPLY = GOOD_REPLY[: len(GOOD_REPLY) - 40]  # the body ends before its content-length
NOT_JSON = json.dumps({"choices": "none"})
STATUSES = [
    # reply of the server, status, part of the reason
    ("500", make_response(500, '{"error": {"message": "внутри"}}'), "judge_error", "HTTP 500: внутри"),
    ("502", make_response(502, "<html>Bad Gateway</html>"), "judge_error", "HTTP 502"),
    ("408", make_response(408), "judge_error", "HTTP 408"),
    ("409", make_response(409), "judge_error", "HTTP 409"),
    ("429", make_response(429, "slow down"), "judge_error", "HTTP 429: slow down"),
    ("413", make_response(413, "too large"), "judge_error", "HTTP 413"),
    (
        "context too long",
        make_response(400, '{"error": {"message": "maximum context length is 8192"}}'),
        "judge_error",
        "8192",
    ),
    ("hanging", Action(after_s=30), "judge_error", "no reply within 0.4 s"),
    ("dribbling", Action(GOOD_REPLY[:30], then="keep"), "judge_error", "no reply within 0.4 s"),
    ("reset in mid-body", Action(CUT_REPLY, then="reset"), "judge_error", ""),
    ("closed in mid-body", Action(CUT_REPLY, then="close"), "judge_error", ""),
    ("closed at once", Action(b"", then="close"), "judge_error", ""),
    ("no HTTP", Action(b"\x00\x01\x02 rubbish\r\n\r\n", then="close"), "judge_error", ""),
    (
        "chunked rubbish",
        Action(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n", then="close"),
        "judge_error",
        "",
    ),
    ("gzip rubbish", make_response(200, b"not gzip", JSON_HEADER, "content-encoding: gzip"), "judge_error", ""),
    ("empty body", make_response(200, b"", JSON_HEADER), "judge_error", "an empty body"),
    (
        "truncated JSON",
        make_response(200, GOOD_REPLY.split(b"\r\n\r\n")[1][:50], JSON_HEADER),
        "judge_error",
        "without a chat completion",
    ),
    ("HTML with 200", make_response(200, "<html>login</html>", "content-type: text/html"), "judge_error", "login"),
    (
        "error with 200",
        make_response(200, '{"error": {"message": "upstream", "code": 502}}', JSON_HEADER),
        "judge_error",
        "upstream",
    ),
    ("no choices", make_response(200, '{"choices": []}', JSON_HEADER), "judge_error", ""),
    ("choices of the wrong type", make_response(200, NOT_JSON, JSON_HEADER), "judge_error", ""),
    ("JSON null", make_response(200, "null", JSON_HEADER), "judge_error", ""),
    ("JSON list", make_response(200, "[]", JSON_HEADER), "judge_error", ""),
    (
        "wrong charset",
        make_response(
            200,
            json.dumps({"choices": [{"message": {"content": "да"}}]}, ensure_ascii=False).encode("cp1251"),
            "content-type: application/json; charset=utf-8",
        ),
        "judge_error",
        "",
    ),
    ("content is null", make_completion(None), "parse_error", "empty"),
    ("content is truncated JSON", make_completion('{"reason": "хор'), "parse_error", "not one JSON object"),
    ("wrong key", make_completion('{"rating": 0.5}'), "parse_error", "no key 'score'"),
    ("wrong type", make_score_completion("0.5"), "parse_error", "not a number"),
    ("a list", make_completion("[0.5]"), "parse_error", "not an object"),
    ("null", make_completion("null"), "parse_error", "not an object"),
    ("9 of 1", make_score_completion(9), "parse_error", "outside 0..1"),
    ("a number in prose", make_completion("Я бы поставил 0.8 из 1."), "parse_error", "not one JSON object"),
    ("Markdown", make_completion("## Оценка\n**0.8**"), "parse_error", "not one JSON object"),
    ("refusal", make_completion("I'm sorry, I can't assist with that."), "parse_error", "not one JSON object"),
    (
        "refusal by its own field",
        make_response(200, json.dumps({"choices": [{"message": {"content": None, "refusal": "Нет"}}]}), JSON_HEADER),
        "parse_error",
        "not one JSON object",
    ),
    ("cut off", make_score_completion(0.5, finish="length"), "parse_error", "cut off after 20 tokens"),
    ("thinking without end", make_completion("<think>хм, 0.9"), "parse_error", "empty"),
]
SLOW_REPLIES = [row[1] for row in STATUSES if row[0] in ("hanging", "dribbling")]


@pytest.mark.parametrize(("deed", "status", "reason"), [pytest.param(*row[1:], id=row[0]) for row in STATUSES])
async def test_lasting_fault_has_its_status_and_no_score(llm_server: FakeLLMServer, deed, status, reason):
    llm_server.script = lambda number, request: deed
    async with asyncio.timeout(60):  # far less than an hour, so that nothing hangs
        score = await ask_for_verdict(llm_server.url, timeout_s=0.4 if deed in SLOW_REPLIES else 60)
    assert (score.status, get_value(score)) == (status, None)
    assert reason in score.reason
    if status == "parse_error":
        assert score.replies[-1].raw or "null" in reason or score.reason == "empty"


LASTING = {"413", "context too long"}
PASSING = [row for row in STATUSES if row[2] == "judge_error" and row[0] not in LASTING]


SLOW_MARKS = {True: pytest.mark.slow("wait: a limit of time runs out"), False: ()}


@pytest.mark.parametrize(
    "deed", [pytest.param(row[1], id=row[0], marks=SLOW_MARKS[row[1] in SLOW_REPLIES]) for row in PASSING]
)
async def test_passing_fault_is_retried(llm_server: FakeLLMServer, deed):
    llm_server.script = lambda number, request: deed if number == 1 else make_score_completion(0.25)
    score = await ask_for_verdict(llm_server.url, timeout_s=2 if deed in SLOW_REPLIES else 60)
    assert (score.status, score.value, len(llm_server.requests)) == ("ok", 0.25, 2)


async def test_dns_failure_is_a_judge_error():
    score = await ask_for_verdict("http://no-such-host.invalid/v1")
    assert (score.status, get_value(score)) == ("judge_error", None)
    assert "no-such-host.invalid" in score.reason


async def test_tls_failure_is_a_judge_error(tmp_path):
    server = FakeLLMServer(context=self_signed(tmp_path))
    server.start()
    score = await ask_for_verdict(server.url)
    server.stop()
    assert (score.status, get_value(score)) == ("judge_error", None)
    assert "certificate is not trusted" in score.reason
    assert server.requests == []


def self_signed(folder) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = builder.add_extension(address, critical=False).sign(key, hashes.SHA256())
    formats = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    pem = key.private_bytes(serialization.Encoding.PEM, *formats) + certificate.public_bytes(serialization.Encoding.PEM)
    (folder / "both.pem").write_bytes(pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "both.pem")
    return context


@pytest.mark.slow("simulation: random faults")
async def test_scores_are_true_when_half_the_calls_fail(llm_server: FakeLLMServer):
    """Each case has its own true score, and fails always or never, so that retries do not hide the faults."""
    random.seed(6)
    truth = [random.random() for _ in range(400)]
    broken = [row[1] for row in STATUSES if not isinstance(row[1], Action) and not row[0].startswith("429")]
    faults = [None if random.random() < 0.5 else random.choice(broken) for _ in truth]

    def script(index, request):
        case = int(request["messages"][0]["content"].split("Вопрос ")[1].split("?")[0])
        return make_score_completion(truth[case]) if faults[case] is None else faults[case]

    llm_server.script = script
    # A busy machine may take seconds for a call; that is not an outage.
    retries = replace(QUICK_RETRIES, attempts=2, outage_s=20, unreached_s=20)
    async with open_chat("judge", make_chat_settings(llm_server.url, concurrency=32), retries=retries) as judge:
        results = await asyncio.gather(*(ask_for_score(judge, make_call(index)) for index in range(len(truth))))
    scored = [index for index, result in enumerate(results) if get_value(result) is not None]
    assert scored == [index for index, fault in enumerate(faults) if fault is None]
    assert [results[index].value for index in scored] == [truth[index] for index in scored]
    statuses = [result.status for result in results]
    assert {*statuses} == {"ok", "judge_error", "parse_error"}
    assert sum(map(statuses.count, ("judge_error", "parse_error"))) + len(scored) == len(truth)


async def test_last_call_gives_up(llm_server: FakeLLMServer):
    """The last call must not wait for a probe of another call."""
    llm_server.script = lambda number, request: Action(b"", then="close")
    async with (
        asyncio.timeout(60),
        open_chat("judge", make_chat_settings(llm_server.url), retries=replace(QUICK_RETRIES, attempts=99)) as judge,
    ):
        score = await ask_for_score(judge, make_call())
    assert score.status == "judge_error"


@pytest.mark.slow("simulation: random faults")
async def test_random_faults_are_retried(llm_server: FakeLLMServer):
    random.seed(7)
    passing = [
        make_response(500),
        make_response(429),
        make_response(502),
        Action(CUT_REPLY, then="reset"),
        Action(b"", then="close"),
    ]
    llm_server.script = lambda _, __: random.choice(passing) if random.random() < 0.5 else make_score_completion(0.5)
    retries = RetryPolicy(attempts=30, first_s=0.001, longest_s=0.05, probe_s=0.01)
    async with open_chat("judge", make_chat_settings(llm_server.url, concurrency=16), retries=retries) as judge:
        replies = await judge.complete([make_call(number) for number in range(300)])
    assert {reply.status for reply in replies} == {"ok"}


FATAL = {400: "MAX_TOKENS", 401: "API_KEY", 402: "money", 403: "API_KEY", 404: "BASE_URL", 307: "redirects"}


@pytest.mark.parametrize("status", FATAL)
@pytest.mark.parametrize("first", [1, pytest.param(500, marks=pytest.mark.slow("breadth: after 499 good replies"))])
async def test_wrong_settings_stop_at_once_with_advice(llm_server: FakeLLMServer, status, first):
    llm_server.script = lambda n, _: make_score_completion(0.5) if n < first else make_response(status, f"no {KEY}")
    async with open_chat("judge", make_chat_settings(llm_server.url, concurrency=8), retries=QUICK_RETRIES) as judge:
        with pytest.raises(ModelUnavailable, match=FATAL[status]) as raised:
            await judge.complete([make_call(number) for number in range(2_000)])
        with pytest.raises(ModelUnavailable):  # no request is sent
            await judge.ask(make_call(-1))
    assert "YARUS_JUDGE__" in str(raised.value)
    assert KEY not in "".join(traceback.format_exception(raised.value))
    guesses = 8 if first == 1 and status in (400, 403) else 0
    assert first <= len(llm_server.requests) <= first + 8 + guesses  # calls in flight, and one harmless question


async def test_too_long_retry_after_stops(llm_server: FakeLLMServer):
    llm_server.script = lambda number, request: make_response(429, "quota", "retry-after: 3600")
    async with open_chat("judge", make_chat_settings(llm_server.url), retries=QUICK_RETRIES) as judge:
        with pytest.raises(ModelUnavailable, match=r"HTTP 429: quota.*--resume"):
            await judge.complete([make_call(number) for number in range(10)])
    assert len(llm_server.requests) == 1


async def test_refusal_of_one_prompt_with_account_words_fails_one_case(llm_server: FakeLLMServer):
    words = make_response(402, "Insufficient credits for this prompt")
    llm_server.script = lambda number, request: (
        words if "№3" in json.dumps(request, ensure_ascii=False) else make_score_completion(1)
    )
    async with open_chat("judge", make_chat_settings(llm_server.url), retries=QUICK_RETRIES) as judge:
        calls = [make_call(f"№{number}") for number in range(6)]
        calls = [
            replace(call, texts={**call.texts, "asked_at": datetime.datetime.now(datetime.UTC), "reference": None})
            for call in calls
        ]
        replies = await judge.complete(calls)  # a case has more than texts
    assert [reply.status for reply in replies] == ["ok"] * 3 + ["error"] + ["ok"] * 2
    assert len(llm_server.requests) == 6 + 2  # a harmless question, and the refused one again


async def test_filtered_prompts_in_a_row_fail_alone(llm_server: FakeLLMServer):
    def script(number, request):
        prompt = request["messages"][0]["content"]
        is_filtered = any(f"Вопрос {case}?" in prompt for case in range(1, 8))
        return (
            make_response(400, json.dumps({"error": {"code": "content_filter"}}))
            if is_filtered
            else make_score_completion(1)
        )

    llm_server.script = script
    async with open_chat("judge", make_chat_settings(llm_server.url, concurrency=1), retries=QUICK_RETRIES) as judge:
        replies = await judge.complete([make_call(number) for number in range(12)])
    assert [reply.status for reply in replies] == ["ok"] + ["error"] * 7 + ["ok"] * 4


async def test_refusals_in_changing_words_stop_after_five_cases(llm_server: FakeLLMServer):
    words = ["violence", "hate", "politics", "weapons", "drugs", "medicine", "law", "religion", "money", "war"]
    llm_server.script = lambda number, request: make_response(400, f"flagged: {words[number % len(words)]}")
    async with open_chat("judge", make_chat_settings(llm_server.url, concurrency=1), retries=QUICK_RETRIES) as judge:
        with pytest.raises(ModelUnavailable, match="5 different questions"):
            await judge.complete([make_call(number) for number in range(40)])
    assert len(llm_server.requests) == 5 + 1


async def test_endless_thinking_extends_the_limit_for_two_calls(llm_server: FakeLLMServer):
    llm_server.script = lambda number, request: make_completion("<think>", finish="length")
    async with open_chat("judge", make_chat_settings(llm_server.url, concurrency=1), retries=QUICK_RETRIES) as judge:
        replies = await judge.complete([make_call(number) for number in range(10)])
    assert {reply.text for reply in replies} == {""}
    assert len(llm_server.requests) <= 2 * 4 + 8 + 3  # one more may be under way


async def test_fault_like_a_refusal_does_not_block_the_store(llm_server: FakeLLMServer, engine):
    llm_server.script = lambda number, request: make_response(500) if number <= 2 else make_score_completion(0.5)
    async with (
        asyncio.timeout(30),
        open_chat("judge", make_chat_settings(llm_server.url), engine, retries=QUICK_RETRIES) as judge,
    ):
        replies = await judge.complete([make_call(-2), make_call(-3)])
    assert [reply.status for reply in replies] == ["ok", "ok"]
    assert "response_format" in llm_server.requests[-1]  # the fault has passed


async def test_key_is_not_shown_or_logged(llm_server: FakeLLMServer, caplog):
    """The servers repeat the key in errors and replies, and everything is logged."""
    caplog.set_level(logging.DEBUG)
    refusal = make_response(401, json.dumps({"error": {"message": KEY}}))
    deeds = [
        make_response(500, f"key {KEY}"),
        make_response(429, KEY),
        make_completion(f"ваш ключ {KEY}"),
        Action(KEY.encode(), then="close"),
    ]
    deeds += [make_response(200, json.dumps({"error": {"message": KEY}})), refusal]
    seen = []
    for deed in deeds:
        llm_server.script = lambda number, request, deed=deed: deed
        configuration = make_chat_settings(llm_server.url)
        async with open_chat("judge", configuration, retries=QUICK_RETRIES) as judge:
            try:
                seen += [repr(await ask_for_score(judge, make_call())), repr(judge), repr(judge._attempts._credentials)]
            except ModelUnavailable as error:
                seen += ["".join(traceback.format_exception(error)), repr(error)]
        seen += [repr(configuration), str(configuration.public())]
    assert f"authorization: bearer {KEY}" in llm_server.headers[0].lower()  # it was really sent
    assert not [text for text in seen if KEY in text]
    assert KEY not in caplog.text

"""Every fault of a server, on real sockets: its status, no invented score, no lost case, no hang."""

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

from tests.support.llm_clients import KEY, QUICK, call, settings, verdict
from tests.support.llm_server import JSON, Do, FakeLLMServer, http, says, scores
from yarus.db.errors import ModelUnavailable
from yarus.tasks.models.chat import chat
from yarus.tasks.models.rate_limits import RetryPolicy
from yarus.tasks.models.verdicts import ask_for_score, value_of

GOOD = scores(0.5)
CUT = GOOD[: len(GOOD) - 40]  # the body ends before its content-length
NOT_JSON = json.dumps({"choices": "none"})
STATUSES = [
    # what the server does every time, status, part of the reason
    ("500", http(500, '{"error": {"message": "внутри"}}'), "judge_error", "HTTP 500: внутри"),
    ("502", http(502, "<html>Bad Gateway</html>"), "judge_error", "HTTP 502"),
    ("408", http(408), "judge_error", "HTTP 408"),
    ("409", http(409), "judge_error", "HTTP 409"),
    ("429", http(429, "slow down"), "judge_error", "HTTP 429: slow down"),
    ("413", http(413, "too large"), "judge_error", "HTTP 413"),
    ("context too long", http(400, '{"error": {"message": "maximum context length is 8192"}}'), "judge_error", "8192"),
    ("hanging", Do(after_s=30), "judge_error", "no reply within 0.4 s"),
    ("dribbling", Do(GOOD[:30], then="keep"), "judge_error", "no reply within 0.4 s"),
    ("reset in mid-body", Do(CUT, then="reset"), "judge_error", ""),
    ("closed in mid-body", Do(CUT, then="close"), "judge_error", ""),
    ("closed at once", Do(b"", then="close"), "judge_error", ""),
    ("no HTTP", Do(b"\x00\x01\x02 rubbish\r\n\r\n", then="close"), "judge_error", ""),
    ("chunked rubbish", Do(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n", then="close"),
     "judge_error", ""),
    ("gzip rubbish", http(200, b"not gzip", JSON, "content-encoding: gzip"), "judge_error", ""),
    ("empty body", http(200, b"", JSON), "judge_error", "an empty body"),
    ("truncated JSON", http(200, GOOD.split(b"\r\n\r\n")[1][:50], JSON), "judge_error", "without a chat completion"),
    ("HTML with 200", http(200, "<html>login</html>", "content-type: text/html"), "judge_error", "login"),
    ("error with 200", http(200, '{"error": {"message": "upstream", "code": 502}}', JSON), "judge_error", "upstream"),
    ("no choices", http(200, '{"choices": []}', JSON), "judge_error", ""),
    ("choices of the wrong type", http(200, NOT_JSON, JSON), "judge_error", ""),
    ("JSON null", http(200, "null", JSON), "judge_error", ""),
    ("JSON list", http(200, "[]", JSON), "judge_error", ""),
    ("wrong charset", http(200, json.dumps({"choices": [{"message": {"content": "да"}}]}, ensure_ascii=False)
                           .encode("cp1251"), "content-type: application/json; charset=utf-8"), "judge_error", ""),
    ("content is null", says(None), "parse_error", "empty"),
    ("content is truncated JSON", says('{"reason": "хор'), "parse_error", "not one JSON object"),
    ("wrong key", says('{"rating": 0.5}'), "parse_error", "no key 'score'"),
    ("wrong type", scores("0.5"), "parse_error", "not a number"),
    ("a list", says("[0.5]"), "parse_error", "not an object"),
    ("null", says("null"), "parse_error", "not an object"),
    ("9 of 1", scores(9), "parse_error", "outside 0..1"),
    ("a number in prose", says("Я бы поставил 0.8 из 1."), "parse_error", "not one JSON object"),
    ("Markdown", says("## Оценка\n**0.8**"), "parse_error", "not one JSON object"),
    ("refusal", says("I'm sorry, I can't assist with that."), "parse_error", "not one JSON object"),
    ("refusal by its own field", http(200, json.dumps({"choices": [{"message": {"content": None, "refusal": "Нет"}}]}),
                                      JSON), "parse_error", "not one JSON object"),
    ("cut off", scores(0.5, finish="length"), "parse_error", "cut off after 20 tokens"),
    ("thinking without end", says("<think>хм, 0.9"), "parse_error", "empty"),
]  # fmt: skip  # fmt: skip
SLOW = [row[1] for row in STATUSES if row[0] in ("hanging", "dribbling")]


@pytest.mark.parametrize(("deed", "status", "reason"), [pytest.param(*row[1:], id=row[0]) for row in STATUSES])
async def test_a_fault_that_lasts_has_its_status_and_no_score(llm_server: FakeLLMServer, deed, status, reason):
    llm_server.script = lambda number, request: deed
    async with asyncio.timeout(60):  # far less than an hour: nothing hangs
        found = await verdict(llm_server.url, timeout_s=0.4 if deed in SLOW else 60)
    assert (found.status, value_of(found)) == (status, None)
    assert reason in found.reason
    if status == "parse_error":
        assert found.replies[-1].raw or "null" in reason or found.reason == "empty"


LASTING = {"413", "context too long"}
PASSING = [row for row in STATUSES if row[2] == "judge_error" and row[0] not in LASTING]


WAITED_OUT = {True: pytest.mark.slow("wait: a limit of time runs out"), False: ()}


@pytest.mark.parametrize("deed", [pytest.param(row[1], id=row[0], marks=WAITED_OUT[row[1] in SLOW]) for row in PASSING])
async def test_a_fault_that_passes_costs_nothing(llm_server: FakeLLMServer, deed):
    llm_server.script = lambda number, request: deed if number == 1 else scores(0.25)
    found = await verdict(llm_server.url, timeout_s=2 if deed in SLOW else 60)
    assert (found.status, found.value, len(llm_server.requests)) == ("ok", 0.25, 2)


async def test_dns_failure():
    found = await verdict("http://no-such-host.invalid/v1")
    assert (found.status, value_of(found)) == ("judge_error", None)
    assert "no-such-host.invalid" in found.reason


async def test_tls_failure(tmp_path):
    server = FakeLLMServer(context=self_signed(tmp_path))
    server.start()
    found = await verdict(server.url)
    server.stop()
    assert (found.status, value_of(found)) == ("judge_error", None)
    assert "certificate is not trusted" in found.reason
    assert server.requests == []


def self_signed(folder) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = made.add_extension(address, critical=False).sign(key, hashes.SHA256())
    plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    pem = key.private_bytes(serialization.Encoding.PEM, *plain) + certificate.public_bytes(serialization.Encoding.PEM)
    (folder / "both.pem").write_bytes(pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "both.pem")
    return context


@pytest.mark.slow("simulation: random faults")
async def test_with_half_the_calls_failing_the_mean_is_the_truth_of_what_was_scored(llm_server: FakeLLMServer):
    """Each case has its own true score. A case is hit or spared for good, so that retries do not hide the faults."""
    random.seed(6)
    truth = [random.random() for _ in range(400)]
    broken = [row[1] for row in STATUSES if not isinstance(row[1], Do) and not row[0].startswith("429")]
    fate = [None if random.random() < 0.5 else random.choice(broken) for _ in truth]

    def script(number, request):
        case = int(request["messages"][0]["content"].split("Вопрос ")[1].split("?")[0])
        return scores(truth[case]) if fate[case] is None else fate[case]

    llm_server.script = script
    retries = replace(QUICK, attempts=2, outage_s=1, unreached_s=1)
    async with chat("judge", settings(llm_server.url, concurrency=32), retries=retries) as judge:
        found = await asyncio.gather(*(ask_for_score(judge, call(number)) for number in range(len(truth))))
    scored = [number for number, one in enumerate(found) if value_of(one) is not None]
    assert scored == [number for number, hit in enumerate(fate) if hit is None]
    assert [found[number].value for number in scored] == [truth[number] for number in scored]
    statuses = [one.status for one in found]
    assert {*statuses} == {"ok", "judge_error", "parse_error"}
    assert sum(map(statuses.count, ("judge_error", "parse_error"))) + len(scored) == len(truth)


async def test_the_last_call_gives_up_too(llm_server: FakeLLMServer):
    """No other call probes the server while it waits."""
    llm_server.script = lambda number, request: Do(b"", then="close")
    async with (
        asyncio.timeout(60),
        chat("judge", settings(llm_server.url), retries=replace(QUICK, attempts=99)) as judge,
    ):
        found = await ask_for_score(judge, call())
    assert found.status == "judge_error"


@pytest.mark.slow("simulation: random faults")
async def test_random_faults_are_survived_by_trying_again(llm_server: FakeLLMServer):
    random.seed(7)
    passing = [http(500), http(429), http(502), Do(CUT, then="reset"), Do(b"", then="close")]
    llm_server.script = lambda number, request: random.choice(passing) if random.random() < 0.5 else scores(0.5)
    retries = RetryPolicy(attempts=30, first_s=0.001, longest_s=0.05, probe_s=0.01)
    async with chat("judge", settings(llm_server.url, concurrency=16), retries=retries) as judge:
        replies = await judge.complete([call(number) for number in range(300)])
    assert {reply.status for reply in replies} == {"ok"}


FATAL = {400: "MAX_TOKENS", 401: "API_KEY", 402: "money", 403: "API_KEY", 404: "BASE_URL", 307: "redirects"}


@pytest.mark.parametrize("status", FATAL)
@pytest.mark.parametrize("first", [1, pytest.param(500, marks=pytest.mark.slow("breadth: after 499 good replies"))])
async def test_wrong_settings_stop_at_once_and_say_what_to_fix(llm_server: FakeLLMServer, status, first):
    llm_server.script = lambda number, request: scores(0.5) if number < first else http(status, f"no {KEY}")
    async with chat("judge", settings(llm_server.url, concurrency=8), retries=QUICK) as judge:
        with pytest.raises(ModelUnavailable, match=FATAL[status]) as raised:
            await judge.complete([call(number) for number in range(2_000)])
        with pytest.raises(ModelUnavailable):  # nobody asks again
            await judge.ask(call(-1))
    assert "YARUS_JUDGE__" in str(raised.value)
    assert KEY not in "".join(traceback.format_exception(raised.value))
    guesses = 8 if first == 1 and status in (400, 403) else 0
    assert first <= len(llm_server.requests) <= first + 8 + guesses  # those in flight, and one harmless question


async def test_a_wait_longer_than_allowed_stops(llm_server: FakeLLMServer):
    llm_server.script = lambda number, request: http(429, "quota", "retry-after: 3600")
    async with chat("judge", settings(llm_server.url), retries=QUICK) as judge:
        with pytest.raises(ModelUnavailable, match=r"HTTP 429: quota.*--resume"):
            await judge.complete([call(number) for number in range(10)])
    assert len(llm_server.requests) == 1


async def test_a_refusal_of_one_prompt_in_words_about_accounts_costs_one_case(llm_server: FakeLLMServer):
    words = http(402, "Insufficient credits for this prompt")
    llm_server.script = lambda number, request: words if "№3" in json.dumps(request, ensure_ascii=False) else scores(1)
    async with chat("judge", settings(llm_server.url), retries=QUICK) as judge:
        calls = [call(f"№{number}") for number in range(6)]
        calls = [
            replace(one, texts={**one.texts, "asked_at": datetime.datetime.now(datetime.UTC), "reference": None})
            for one in calls
        ]
        replies = await judge.complete(calls)  # a case has more than texts
    assert [reply.status for reply in replies] == ["ok"] * 3 + ["error"] + ["ok"] * 2
    assert len(llm_server.requests) == 6 + 2  # a harmless question, and the refused one again


async def test_prompts_filtered_in_a_row_cost_only_their_cases(llm_server: FakeLLMServer):
    def script(number, request):
        asked = request["messages"][0]["content"]
        filtered = any(f"Вопрос {case}?" in asked for case in range(1, 8))
        return http(400, json.dumps({"error": {"code": "content_filter"}})) if filtered else scores(1)

    llm_server.script = script
    async with chat("judge", settings(llm_server.url, concurrency=1), retries=QUICK) as judge:
        replies = await judge.complete([call(number) for number in range(12)])
    assert [reply.status for reply in replies] == ["ok"] + ["error"] * 7 + ["ok"] * 4


async def test_refusals_in_changing_words_stop_after_five_cases(llm_server: FakeLLMServer):
    words = ["violence", "hate", "politics", "weapons", "drugs", "medicine", "law", "religion", "money", "war"]
    llm_server.script = lambda number, request: http(400, f"flagged: {words[number % len(words)]}")
    async with chat("judge", settings(llm_server.url, concurrency=1), retries=QUICK) as judge:
        with pytest.raises(ModelUnavailable, match="5 different questions"):
            await judge.complete([call(number) for number in range(40)])
    assert len(llm_server.requests) == 5 + 1


async def test_endless_thinking_is_given_room_only_for_two_calls(llm_server: FakeLLMServer):
    llm_server.script = lambda number, request: says("<think>", finish="length")
    async with chat("judge", settings(llm_server.url, concurrency=1), retries=QUICK) as judge:
        replies = await judge.complete([call(number) for number in range(10)])
    assert {reply.text for reply in replies} == {""}
    assert len(llm_server.requests) <= 2 * 4 + 8 + 3  # one more may be under way


async def test_fault_that_looks_like_a_refusal_blocks_no_store(llm_server: FakeLLMServer, engine):
    llm_server.script = lambda number, request: http(500) if number <= 2 else scores(0.5)
    async with asyncio.timeout(30), chat("judge", settings(llm_server.url), engine, retries=QUICK) as judge:
        replies = await judge.complete([call(-2), call(-3)])
    assert [reply.status for reply in replies] == ["ok", "ok"]
    assert "response_format" in llm_server.requests[-1]  # the fault has passed


async def test_the_key_is_nowhere(llm_server: FakeLLMServer, caplog):
    """Servers that repeat the key in errors and replies, and everything logged at the lowest level."""
    caplog.set_level(logging.DEBUG)
    refusal = http(401, json.dumps({"error": {"message": KEY}}))
    deeds = [http(500, f"key {KEY}"), http(429, KEY), says(f"ваш ключ {KEY}"), Do(KEY.encode(), then="close")]
    deeds += [http(200, json.dumps({"error": {"message": KEY}})), refusal]
    told = []
    for deed in deeds:
        llm_server.script = lambda number, request, deed=deed: deed
        configuration = settings(llm_server.url)
        async with chat("judge", configuration, retries=QUICK) as judge:
            try:
                told += [repr(await ask_for_score(judge, call())), repr(judge), repr(judge._attempts._credentials)]
            except ModelUnavailable as error:
                told += ["".join(traceback.format_exception(error)), repr(error)]
        told += [repr(configuration), str(configuration.public())]
    assert f"authorization: bearer {KEY}" in llm_server.headers[0].lower()  # it was really sent
    assert not [text for text in told if KEY in text]
    assert KEY not in caplog.text

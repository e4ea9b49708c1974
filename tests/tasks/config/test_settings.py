"""Settings: defaults, sources of values, error messages, and secrets."""

from pathlib import Path

import pytest

from tests.support.command_line import run_here
from yarus.db.errors import InputError
from yarus.tasks.config.former_names import FORMER_SETTINGS
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.secrets import redact
from yarus.tasks.config.services import prepare_headers
from yarus.tasks.config.settings import RetrieverService, get_settings
from yarus.tasks.evaluation.identity import measurement_settings

SECRET = "s3cret"


def test_settings_have_defaults(at_home: Path) -> None:
    values = get_settings()
    assert (values.home, values.embedder, values.retriever, values.language) == (at_home, "lexical", "dense", "ru")
    assert (values.database_url, values.source_url, values.judge.base_url) == (None, None, None)
    assert values.results_root == str(at_home / "results")


def test_settings_read_nested_and_mapped_values(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "YARUS_JUDGE__MODEL": "gpt",
        "YARUS_JUDGE__RPM": "60",
        "YARUS_SOURCE_TABLES__CHUNK": "public.Passages",
        "YARUS_SOURCE_COLUMNS__QUESTION_ANSWER__QUESTION": "Text",
        "YARUS_MIN_CHANGE__HIT_RATE@1": "0.02",
        "YARUS_RESULTS": "s3://bucket/yarus",
        "YARUS_EMBEDDER": "",  # an empty variable counts as unset
    }.items():
        monkeypatch.setenv(name, value)
    configuration = get_settings()
    assert (configuration.judge.model, configuration.judge.rpm, configuration.production_judge.model) == (
        "gpt",
        60,
        None,
    )
    assert configuration.source_tables == {"chunk": "public.Passages"}
    assert configuration.source_columns == {"question_answer": {"question": "Text"}}
    assert configuration.min_change == {"hit_rate@1": 0.02}
    assert (configuration.results_root, configuration.embedder) == ("s3://bucket/yarus", "lexical")


FORMER_NAMES = {
    "YARUS_WORK": ("s3://bucket/work", "work_dir"),
    "YARUS_REFUSALS": ('["не знаю"]', "refusal_phrases"),
    "YARUS_GATE__MODEL": ("strict", "production_judge"),
    "YARUS_LEAST_CHANGE__MRR": ("0.25", "min_change"),
    "YARUS_MASK_CALLS": ("true", "mask_model_input"),
    "YARUS_MASK_SHOWN": ("true", "mask_output"),
    "YARUS_SERVER_IDLE_S": ("7", "server_idle_timeout_s"),
    "YARUS_FALSE_ALARMS_A_YEAR": ("2", "max_false_alarms_per_year"),
    "YARUS_SERVE_NAMES": ("yarus.example", "serve_allowed_hosts"),
    "YARUS_COST_WRONG_SHOWN": ("3", "cost_false_positive"),
    "YARUS_COST_RIGHT_HIDDEN": ("4", "cost_false_negative"),
}


@pytest.mark.parametrize("place", ["environment", "file"])
def test_former_settings_work_with_one_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    assert len(FORMER_NAMES) == len(FORMER_SETTINGS)
    monkeypatch.chdir(tmp_path)
    for name in ("YARUS_SERVER_IDLE_TIMEOUT_S", "YARUS_LANGUAGE"):
        monkeypatch.delenv(name, raising=False)
    if place == "file":
        lines = [f"{name}={value}\n" for name, (value, _) in FORMER_NAMES.items()]
        (tmp_path / ".env").write_text("".join(lines), encoding="utf-8")
    else:
        for name, (value, _) in FORMER_NAMES.items():
            monkeypatch.setenv(name, value)
    values = get_settings()
    assert (values.work_dir, values.refusal_phrases) == ("s3://bucket/work", ["не знаю"])
    assert (values.production_judge.model, values.min_change) == ("strict", {"mrr": 0.25})
    assert (values.mask_model_input, values.mask_output, values.serve_allowed_hosts) == (True, True, "yarus.example")
    assert (values.server_idle_timeout_s, values.max_false_alarms_per_year) == (7, 2)
    assert (values.cost_false_positive, values.cost_false_negative) == (3, 4)
    for language, words in (("en", "renamed settings: "), ("ru", "настройки переименованы: ")):
        ran = run_here("judge", "--help", env={"YARUS_LANGUAGE": language})
        assert (ran.err.count("\n"), words in ran.err, "YARUS_GATE" in ran.out) == (1, True, False)
        for name, (_, present) in FORMER_NAMES.items():
            part = "".join(name.partition("__")[1:])
            assert f"{name} → YARUS_{present.upper()}{part}" in ran.err


@pytest.mark.parametrize("present_value", ["http://b/v1", "http://a/v1"])
def test_present_and_former_settings_must_agree(monkeypatch: pytest.MonkeyPatch, present_value: str) -> None:
    monkeypatch.setenv("YARUS_GATE__BASE_URL", "http://a/v1")
    monkeypatch.setenv("YARUS_PRODUCTION_JUDGE__BASE_URL", present_value)
    if present_value == "http://a/v1":
        assert get_settings().get_role("gate").base_url == present_value
        return
    with pytest.raises(InputError, match=r"YARUS_GATE__BASE_URL was renamed YARUS_PRODUCTION_JUDGE__BASE_URL.*remove"):
        get_settings()


def test_stored_settings_keep_former_names(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = measurement_settings(get_settings().public())
    assert {"refusals", "mask_calls", "gate.model"} - before.keys() == {"gate.model"}  # no model is set
    monkeypatch.setenv("YARUS_PRODUCTION_JUDGE__MODEL", "strict")
    assert measurement_settings(get_settings().public()) == before | {"gate.model": "strict"}


def test_home_expands_the_user_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARUS_HOME", "~/y")
    for user in (tmp_path / "one", tmp_path / "other"):
        monkeypatch.setenv("HOME", str(user))
        assert get_settings().home == user / "y"


def test_environment_overrides_the_env_file(at_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("YARUS_LANGUAGE=en\nYARUS_EMBEDDER=из файла\nOTHER=1\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("YARUS_EMBEDDER", "из окружения")
    assert (get_settings().language, get_settings().embedder) == ("en", "из окружения")
    (tmp_path / ".env").write_text("YARUS_LANGAUGE=en\n", encoding="utf-8")
    with pytest.raises(InputError, match="'YARUS_LANGAUGE'; did you mean 'YARUS_LANGUAGE'"):
        get_settings()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("YARUS_RETREIVER", "x", ("'YARUS_RETREIVER'", "did you mean 'YARUS_RETRIEVER'?")),
        ("YARUS_JUDGE__MODLE", SECRET, ("'YARUS_JUDGE__MODLE'", "did you mean 'YARUS_JUDGE__MODEL'?")),
        ("YARUS_JUDGE__TOKEN", SECRET, ("'YARUS_JUDGE__TOKEN'",)),
        ("YARUS_SUT_SERVICE__AUTH", SECRET, ("'YARUS_SUT_SERVICE__AUTH'",)),
        ("YARUS_SUT_SERVICE__HEADERS", f'{{"Authorization":["{SECRET}"]}}', ("YARUS_SUT_SERVICE__HEADERS",)),
        ("YARUS_SUT_SERVICE__HEADERS", f"Bearer {SECRET}", ("YARUS_SUT_SERVICE__HEADERS: expected JSON",)),
        ("YARUS_SUT_SERVICE", f'"{SECRET}"', ("YARUS_SUT_SERVICE:",)),
        ("YARUS_PRICES", '{"m": {"inputt": 1, "output": 1, "as_of": "2026-01-01"}}', ("YARUS_PRICES",)),
        ("YARUS_SOURCE_TABLES__CHUNKS", "x", ("'chunks'", "did you mean 'chunk'?", "YARUS_SOURCE_TABLES")),
        ("YARUS_SOURCE_COLUMNS__CHUNK__TEXTT", "x", ("'textt'", "did you mean 'text'?", "YARUS_SOURCE_COLUMNS")),
        ("YARUS_SUT", f"https://{SECRET}@h/ask", ("YARUS_SUT:", "a user name", "YARUS_SUT_SERVICE__HEADERS")),
        ("YARUS_RETRIEVER", f"http://h/?k=1&api_key={SECRET}", ("'api_key'", "YARUS_RETRIEVER_SERVICE__HEADERS")),
        ("YARUS_RETRIEVER", f"http://h/?accessToken={SECRET}", ("'accessToken'",)),
        ("YARUS_EMBEDDER", f"https://u:{SECRET}@h/v1", ("YARUS_EMBEDDER:", "a user name", "YARUS_EMBEDDER_API_KEY")),
        (
            "YARUS_SIMILARITY_EMBEDDER",
            f"https://h/v1?token={SECRET}",
            ("'token'", "YARUS_SIMILARITY_EMBEDDER_API_KEY"),
        ),
        ("YARUS_EMBEDDER_SERVICE__PASSAGE", "passage", ("YARUS_EMBEDDER_SERVICE__PASSAGE: expected JSON",)),
        ("YARUS_EMBEDDER_SERVICE__BATCH", "0", ("YARUS_EMBEDDER_SERVICE__BATCH", "expected 1 or more")),
        ("YARUS_HOME", "~nobody_at_all/x", ("YARUS_HOME", "home directory")),
        ("YARUS_JUDGE", "x", ("YARUS_JUDGE: expected JSON", "YARUS_JUDGE__NAME=VALUE")),
        ("YARUS_LANGUAGE", "fr", ("YARUS_LANGUAGE", "'ru' or 'en'", "'fr'")),
        ("YARUS_MIN_COVERAGE", "95 %", ("YARUS_MIN_COVERAGE", "number", "'95 %'")),
        ("YARUS_MIN_COVERAGE", "1.5", ("YARUS_MIN_COVERAGE", "expected 1 or less")),
        ("YARUS_BUDGET_USD", "-1", ("YARUS_BUDGET_USD: expected more than 0",)),
        ("YARUS_JUDGE__TEMPERATURE", "9", ("YARUS_JUDGE__TEMPERATURE", "'9'")),
        ("YARUS_DATABASE_URL", f"mysql://u:{SECRET}@h/d", ("YARUS_DATABASE_URL", "'mysql' is not supported")),
        ("YARUS_SOURCE_URL", f"u:{SECRET}@h", ("YARUS_SOURCE_URL", "postgresql://user:password@host")),
        ("YARUS_BUDGET_USD", "inf", ("YARUS_BUDGET_USD", "a finite number")),
        ("YARUS_JUDGE__TIMEOUT_S", "nan", ("YARUS_JUDGE__TIMEOUT_S", "a finite number")),
        ("YARUS_SOURCE_TIMEOUT_S", "1e308", ("YARUS_SOURCE_TIMEOUT_S", "or less")),
        ("YARUS_JUDGE__MAX_TOKENS", "1" + "0" * 12, ("YARUS_JUDGE__MAX_TOKENS", "1e+09 or less")),
        ("YARUS_MIN_CHANGE__MRR", "0", ("YARUS_MIN_CHANGE__MRR", "expected more than 0")),
        ("YARUS_MIN_CHANGE__HIT_RATE@2", "0.1", ("YARUS_MIN_CHANGE: 'hit_rate@2'; did you mean 'hit_rate@",)),
        ("YARUS_MAX_FALSE_ALARMS_PER_YEAR", "0", ("YARUS_MAX_FALSE_ALARMS_PER_YEAR", "expected 0.001 or more")),
        ("YARUS_MAX_FALSE_ALARMS_PER_YEAR", "1e308", ("YARUS_MAX_FALSE_ALARMS_PER_YEAR", "expected 1000 or less")),
        (
            "YARUS_MIN_CHANGE__MRR",
            "5",
            ("YARUS_MIN_CHANGE__MRR: expected 1 or less", "given: 5", "a point is 0.01"),
        ),
        ("YARUS_MIN_CHANGE__AVG_BLEU", "1", ("headline metric in YARUS_MIN_CHANGE: 'avg_bleu'",)),
        ("YARUS_MIN_CHANGE", "[1]", ("YARUS_MIN_CHANGE: expected a JSON object",)),
        ("YARUS_JUDGE__CONCURRENCY", "1" + "0" * 30, ("YARUS_JUDGE__CONCURRENCY", "10000 or less")),
        *(
            (
                "YARUS_PRICES",
                f'{{"m": {{"input": {price}, "output": 1, "as_of": "2026-11-01"}}}}',
                ("M__INPUT", "expected"),
            )
            for price in ("-1", "NaN", "Infinity", "1e400", "1e7")
        ),
    ],
)
def test_invalid_setting_names_the_variable_and_a_fix(
    at_home: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(InputError) as error:
        get_settings()
    for word in words:
        assert word in str(error.value)
    assert SECRET not in str(error.value)


@pytest.mark.parametrize(
    ("raw_url", "driver_url", "redacted_url"),
    [
        (
            f"postgresql://u:{SECRET}@h:5/d",
            f"postgresql+psycopg://u:{SECRET}@h:5/d",
            "postgresql+psycopg://u:***@h:5/d",
        ),
        (
            f"postgres://u@h/d?password={SECRET}&sslmode=require",
            f"postgresql+psycopg://u:{SECRET}@h/d?sslmode=require",
            "postgresql+psycopg://u:***@h/d?sslmode=require",
        ),
        (
            f"postgresql+psycopg2://u:{SECRET}%40@h/d",
            f"postgresql+psycopg://u:{SECRET}%40@h/d",
            "postgresql+psycopg://u:***@h/d",
        ),
        (
            f"postgresql://u@h/d?sslpassword={SECRET}&sslmode=require",
            f"postgresql+psycopg://u@h/d?sslmode=require&sslpassword={SECRET}",
            "postgresql+psycopg://u@h/d?sslmode=require&sslpassword=***",
        ),
    ],
)
def test_database_url_gets_driver_and_hides_password(
    at_home: Path, monkeypatch: pytest.MonkeyPatch, raw_url: str, driver_url: str, redacted_url: str
) -> None:
    monkeypatch.setenv("YARUS_SOURCE_URL", raw_url)
    configuration = get_settings()
    assert configuration.source_url is not None
    assert configuration.source_url.get_secret_value() == driver_url
    assert configuration.public()["source_url"] == redacted_url
    assert SECRET not in f"{configuration!r}{configuration}"


def test_public_settings_have_no_secrets(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARUS_JUDGE__API_KEY", SECRET)
    monkeypatch.setenv("YARUS_DATABASE_URL", f"postgresql://u:{SECRET}@h/d")
    monkeypatch.setenv("YARUS_JUDGE__BASE_URL", f"https://h/v1?key={SECRET}")
    monkeypatch.setenv("YARUS_RETRIEVER", "https://h/find?monkey=3")
    public = get_settings().public()
    assert public["retriever"] == "https://h/find?monkey=3"
    assert SECRET not in str(public)
    assert public["database_url"] == "postgresql+psycopg://u:***@h/d"


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        (f"at postgresql://u:{SECRET}@h/d: no", "at postgresql://u:***@h/d: no"),
        (f"https://u:{SECRET}@a and https://u:{SECRET}@b", "https://u:***@a and https://u:***@b"),
        ("https://h:8080/a@b", "https://h:8080/a@b"),
        (f"https://{SECRET}@h/a", "https://***@h/a"),
        (f"'http://h/?q=1&token={SECRET}': 401", "'http://h/?q=1&token=***': 401"),
        (f"postgresql://h/d?passwd={SECRET}&sslPassword={SECRET}", "postgresql://h/d?passwd=***&sslPassword=***"),
        (f"(at http://h/?key={SECRET}): no", "(at http://h/?key=***): no"),
        ("https://h/?monkey=3&design=x", "https://h/?monkey=3&design=x"),
        ("nothing", "nothing"),
    ],
)
def test_redact_urls_hides_passwords(text: str, redacted: str) -> None:
    assert redact_urls(text) == redacted


def test_headers_are_stripped() -> None:
    service = RetrieverService.model_validate({"headers": {" X-Key ": f" {SECRET}\n", "X_Lang": "ru"}})
    assert prepare_headers(service.headers, "YARUS_RETRIEVER_SERVICE") == {"X-Key": SECRET, "X_Lang": "ru"}


@pytest.mark.parametrize(
    ("name", "value"),
    [("Authorization", f"{SECRET}\n!"), ("Authorization", f"{SECRET}ж"), ("A b", SECRET), ("", SECRET)],
)
def test_invalid_header_is_named_without_its_value(name: str, value: str) -> None:
    service = RetrieverService.model_validate({"headers": {name: value}})
    with pytest.raises(InputError, match=f"YARUS_SUT_SERVICE__HEADERS.*'{name}'") as error:
        prepare_headers(service.headers, "YARUS_SUT_SERVICE")
    assert SECRET not in str(error.value)


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        (f"got Bearer {SECRET}; {SECRET}!", "got ***; ***!"),
        (r"{'x': 'a\"b\\c'}", "{'x': '***'}"),  # as JSON writes it
        ("ru: trouble", "ru: trouble"),
    ],
)
def test_redact_hides_secrets(text: str, redacted: str) -> None:
    assert redact(text, [f"Bearer {SECRET}", 'a"b\\c', "ru"]) == redacted

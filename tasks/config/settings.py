"""The settings, read in one place: environment variables `YARUS_*` and a file `.env`."""

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

from dotenv import dotenv_values
from pydantic import BaseModel, Field, PositiveFloat, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from yarus.db import tables
from yarus.db.engine import redact_database_url
from yarus.db.errors import InputError, unknown
from yarus.db.messages import Words
from yarus.db.tables import JsonObject
from yarus.tasks.config.factors import RerankerService
from yarus.tasks.config.former_names import FORMER_SETTINGS, STORED_SETTINGS, find_former_names, rename_variables
from yarus.tasks.config.language import LOCALE_VARIABLES, locale_language
from yarus.tasks.config.redaction import redact_urls_within
from yarus.tasks.config.services import Price, require_public_address
from yarus.tasks.config.validation import allowed_values_text, check_least_changes

Language = Literal["ru", "en"]
ENV_PREFIX = "YARUS_"
SENSITIVE_SETTINGS = "URL|KEY|HEADERS|TOKEN_|^YARUS_(RETRIEVER|RERANKER|SUT|EMBEDDER|SIMILARITY_EMBEDDER)$"
"""Settings that may hold a secret: messages do not repeat their values."""


class ServerAccess(BaseModel, extra="forbid", allow_inf_nan=False):
    """Credentials for a model's server, and trusted certificates."""

    headers: dict[str, SecretStr] = Field({}, description="HTTP headers; never logged or stored")
    token_url: str | None = Field(None, description="address that issues tokens for the key (OAuth)")
    token_form: dict[str, SecretStr] = Field(
        {}, description='fields sent to it, such as {"scope": "GIGACHAT_API_PERS"}'
    )
    token_command: SecretStr | None = Field(
        None, description="command that prints a token; run again when the server refuses it"
    )
    ca_file: Path | None = Field(None, description="file of further trusted certificates (PEM)")


class ModelRole(ServerAccess):
    """A language model in one role. Without `base_url`, an offline stand-in serves the role."""

    base_url: str | None = Field(None, description="address of an OpenAI-compatible API, up to /v1")
    model: str | None = Field(None, description="name of the model")
    api_key: SecretStr | None = Field(None, description="sent as a bearer token; never logged or stored")
    extra_body: JsonObject = Field({}, description="further fields of requests, as JSON")
    temperature: float | None = Field(0.0, ge=0, le=2, description="none: the model's default")
    max_tokens: int = Field(512, ge=1, le=1_000_000_000)
    concurrency: int = Field(8, ge=1, le=10_000, description="calls in flight at once")
    rpm: int | None = Field(None, ge=1, description="requests a minute")
    tpm: int | None = Field(None, ge=1, description="tokens a minute")
    timeout_s: float = Field(60.0, gt=0, description="longest wait for one reply")
    prompt: Path | None = Field(None, description="a prompt file of your own")

    @field_validator("temperature", mode="before")
    @classmethod
    def _parse_none(cls, value: Any) -> Any:
        return None if isinstance(value, str) and value.strip().lower() == "none" else value


class RetrieverService(BaseModel, extra="forbid", allow_inf_nan=False):
    """How to call a retriever over HTTP."""

    request: str = Field('{"question": "$question", "k": "$k"}', description="JSON sent by POST")
    ids: str = Field("results[].id", description="JMESPath of the ids in the reply, best first")
    distances: str = Field(
        "results[].distance", description="JMESPath of their distances; without them the order is used"
    )
    headers: dict[str, SecretStr] = Field({}, description="HTTP headers; never logged or stored")
    timeout_s: float = Field(30.0, gt=0)
    concurrency: int = Field(8, ge=1)


class EmbedderService(ServerAccess):
    """How to call an embedder over HTTP."""

    query: JsonObject = Field({}, description='sent with questions, as JSON, such as {"input_type": "query"}')
    passage: JsonObject = Field({}, description='sent with chunks, such as {"input_type": "passage"}')
    batch: int = Field(32, ge=1, le=2_048, description="texts of one request, at most")
    concurrency: int = Field(4, ge=1, le=1_000, description="requests in flight at once")
    rpm: int | None = Field(None, ge=1, description="requests a minute")
    timeout_s: float = Field(120.0, gt=0, description="longest wait for one reply")


class SystemService(BaseModel, extra="forbid", allow_inf_nan=False):
    """How to call a question-answering system over HTTP."""

    model: str | None = Field(None, description="name of its model: what `openai:` asks for, and what YARUS_PRICES has")
    request: str = Field('{"question": "$question"}', description="JSON sent by POST; $history: the dialog before")
    delta: str | None = Field(
        None,
        description="JMESPath of a part of the answer in an event of a stream; default: OpenAI's, `token`, `answer`",
    )
    answer: str = Field("answer", description="JMESPath of the answer's text in the reply")
    urls: str = Field("urls", description="JMESPath of the pages that it used, best first")
    contexts: str = Field("contexts", description="JMESPath of the texts that it used")
    path: str = Field(
        "path", description="JMESPath of what its production path did: 'hidden' if a gate kept the answer"
    )
    latency_ms: str = Field("latency_ms", description="JMESPath of the latency that it measured itself")
    headers: dict[str, SecretStr] = Field({}, description="HTTP headers; never logged or stored")
    timeout_s: float = Field(60.0, gt=0)
    concurrency: int = Field(8, ge=1)


class Settings(BaseSettings):
    """All settings; options that differ between evaluations are flow parameters."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_nested_delimiter="__",
        env_file=".env",
        env_ignore_empty=True,
        extra="ignore",
        allow_inf_nan=False,
    )

    home: Path = Field(Path(".yarus"), description="embedded database, results and caches")
    database_url: SecretStr | None = Field(None, description="PostgreSQL for our own tables; default: embedded")
    source_url: SecretStr | None = Field(None, description="production database, opened read-only")
    source_tables: dict[str, str] = Field({}, description="our table name -> theirs, with or without a schema")
    source_columns: dict[str, dict[str, str]] = Field({}, description="our table -> our column -> theirs")
    source_timeout_s: float = Field(
        60.0, gt=0, le=2_000_000, description="longest statement on the production database"
    )
    results: str | None = Field(None, description="Parquet root: folder or fsspec URL; default: results in home")
    work_dir: str | None = Field(None, description="unfinished work: folder or fsspec URL; default: work in home")
    dask_address: str | None = Field(None, description="scheduler of a Dask cluster; default: one of this machine's")
    embedder: str = Field(
        "lexical", description="the retriever's: lexical, a sentence-transformers name or path, or http(s)://…/v1"
    )
    embedder_model: str | None = Field(None, description="model at an embedder's address that names none after a #")
    embedder_api_key: SecretStr | None = Field(None, description="for the address in YARUS_EMBEDDER; never logged")
    embedder_service: EmbedderService = EmbedderService()
    embedder_backend: Literal["torch", "bfloat16", "onnx"] = Field(
        "torch", description="library or number type of the embedder"
    )
    query_prefix: str = Field("", description="prefix of an embedded question, for example 'query: '")
    passage_prefix: str = Field("", description="prefix of an embedded chunk, for example 'passage: '")
    similarity_embedder: str | None = Field(
        None, description="embedder of the similarity metrics; default: the retriever's"
    )
    similarity_embedder_api_key: SecretStr | None = Field(None, description="for that address, if it is another one")
    retriever: str = "dense"
    retriever_service: RetrieverService = RetrieverService()
    reranker: str | None = Field(None, description="orders what the retriever found anew: cross-encoder, URL, function")
    reranker_model: str | None = Field(
        None, description="model of a service or function that re-ranks, or of a retriever that does: it may not judge"
    )
    reranker_service: RerankerService = RerankerService()
    sut: str = "local"
    sut_service: SystemService = SystemService()
    sut_python: str | None = Field(None, description="interpreter of module:function systems; default: Yarus's own")
    sut_concurrency: int | None = Field(None, ge=1, le=1_000, description="questions asked of the system at once")
    sut_timeout_s: float | None = Field(None, gt=0, le=86_400, description="longest wait for one of its answers")
    refusal_phrases: list[str] = Field(
        ["ответ не найден", "не удалось найти ответ", "не нашёл ответа", "answer not found", "no answer found"],
        description="an answer that has one of these in its first sentence is a refusal",
    )
    sut_label: str | None = Field(None, description="version of the system under test, shown on every evaluation")
    generator: ModelRole = ModelRole()
    judge: ModelRole = ModelRole()
    production_judge: ModelRole = ModelRole()
    rubrics: Path | None = Field(None, description="folder of judged metrics of your own, one text file each")
    prices: dict[str, Price] = Field({}, description="model -> its price, as JSON")
    budget_usd: float | None = Field(None, gt=0, description="upper limit of an evaluation's cost")
    evaluation_timeout_s: float | None = Field(None, gt=0, description="no model is called after this time")
    mask_model_input: bool = Field(False, description="models get pseudonyms instead of phones, e-mails, names, ids")
    mask_output: bool | None = Field(
        None, description="people get them too; default: where the source is production, and in sheets for annotators"
    )
    language: Language = Field(
        default_factory=locale_language, description="of the output: ru or en; default: that of the locale"
    )
    gate_file: Path | None = Field(None, description="gate that every finished evaluation is checked against")
    prefect_database_url: SecretStr | None = Field(None, description="PostgreSQL for Prefect; default: SQLite in home")
    server_idle_timeout_s: float = Field(
        600.0, ge=0, description="how long Prefect's server and the embedded PostgreSQL outlive the last command"
    )
    alert_webhook: SecretStr | None = Field(None, description="address to which `yarus alerts apply` has alerts sent")
    max_false_alarms_per_year: float = Field(1.0, ge=1e-3, le=1e3, description="alarms without a cause, of all tiers")
    min_change: dict[str, PositiveFloat] = Field({}, description="metric -> the smallest loss that raises an alarm")
    serve_allowed_hosts: str = Field("", description="additional host names of yarus serve, comma-separated")
    report_url: str | None = Field(None, description="where the report pages are served; yarus serve sets it")
    min_coverage: float = Field(0.95, ge=0, le=1, description="with a smaller share measured it is invalid")
    cost_false_positive: float = Field(
        1.0, gt=0, le=1e6, description="of a wrong answer that the production judge shows"
    )
    cost_false_negative: float = Field(
        1.0, gt=0, le=1e6, description="of a right answer that the production judge hides"
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources of values, which also know the former names of settings."""
        sources = (init_settings, env_settings, dotenv_settings, file_secret_settings)
        for source in sources:
            if isinstance(source, EnvSettingsSource):
                variables = rename_variables({name.upper(): value for name, value in source.env_vars.items()})
                source.env_vars = {name.lower(): value for name, value in variables.items()}
        return sources

    @field_validator("home")
    @classmethod
    def _expand_home(cls, value: Path) -> Path:
        try:
            return value.expanduser()
        except RuntimeError as error:
            raise ValueError(Words("{error} Give the full path", error=error)) from error

    @field_validator("retriever", "reranker", "sut", "embedder", "similarity_embedder")
    @classmethod
    def _reject_secrets(cls, value: str | None, info: ValidationInfo) -> str | None:
        setting = ENV_PREFIX + str(info.field_name).upper()
        headers_setting = f"{setting}_API_KEY" if "EMBEDDER" in setting else f"{setting}_SERVICE__HEADERS"
        return value and require_public_address(value, setting, keys=headers_setting)

    @field_validator("database_url", "source_url", "prefect_database_url")
    @classmethod
    def _normalise_postgresql_url(cls, value: SecretStr | None) -> SecretStr | None:
        if value is None:
            return None
        try:
            url = make_url(value.get_secret_value())
        except ArgumentError as error:
            raise ValueError(
                Words("not a database URL; expected postgresql://user:password@host:5432/database")
            ) from error
        if url.get_backend_name() not in {"postgresql", "postgres"}:
            raise ValueError(Words("{kind!r} is not supported; expected postgresql://…", kind=url.get_backend_name()))
        if isinstance(password := url.query.get("password"), str):  # messages would not mask it there
            url = url.difference_update_query(["password"]).set(password=password)
        return SecretStr(url.set(drivername="postgresql+psycopg").render_as_string(hide_password=False))

    @property
    def results_root(self) -> str:
        """Return the root of the Parquet files: a folder or an fsspec URL."""
        if self.results and "://" in self.results:
            return self.results
        return str((Path(self.results).expanduser() if self.results else self.home / "results").absolute())

    @property
    def follows_locale(self) -> bool:
        """Return whether YARUS_LANGUAGE is not set."""
        return "language" not in self.model_fields_set

    @property
    def text_language(self) -> Language:
        """Return the language of texts and prompts if a source has none: YARUS_LANGUAGE, else Russian.

        It does not follow the locale: the same evaluation would be another one for another user.
        """
        return "ru" if self.follows_locale else self.language

    def get_role(self, name: str) -> ModelRole:
        """Return the settings of a model: generator, judge or gate, which is the production judge."""
        role: ModelRole = getattr(self, FORMER_SETTINGS.get(name, name))
        return role

    def public(self) -> dict[str, object]:
        """Return the settings without secrets, as stored with an evaluation: by their former names."""
        secret_addresses = {"database_url", "source_url", "prefect_database_url", "alert_webhook"}
        values = self.model_dump(mode="json", exclude=secret_addresses, exclude_none=True)
        values["language"] = self.text_language
        for name in ("database_url", "source_url"):
            secret_url: SecretStr | None = getattr(self, name)
            if secret_url is not None:
                values[name] = redact_database_url(make_url(secret_url.get_secret_value()))
        return {STORED_SETTINGS.get(name, name): redact_urls_within(value) for name, value in values.items()}


def get_settings() -> Settings:
    """Return the current settings from the environment and the file `.env`; reread only after changes.

    Raises:
        InputError: a value is invalid, a variable that begins with `YARUS_` is not a setting, or a setting has
            different values under its present and its former name.
    """
    try:
        file = Path(".env").read_bytes()
    except OSError:
        file = b""
    # Without a file only Yarus's variables, HOME (for ~) and the locale matter; a file may refer to any variable.
    others = {"HOME", *LOCALE_VARIABLES}
    items = (item for item in os.environ.items() if file or item[0] in others or item[0].upper().startswith(ENV_PREFIX))
    return _read_settings(frozenset(items), file)


@lru_cache(maxsize=8)
def _read_settings(environment: frozenset[tuple[str, str]], file: bytes) -> Settings:
    """Read the settings; the arguments are only the key of the cache."""
    values = {**dotenv_values(".env"), **os.environ}
    given = {name.upper(): value for name, value in values.items() if name.upper().startswith(ENV_PREFIX)}
    for former, present in find_former_names(given):
        if given.get(present) and given[present] != given[former]:
            raise InputError(
                "{former} was renamed {present}, and they have different values; remove {former}",
                former=former,
                present=present,
            )
    variables = {name: value or "" for name, value in rename_variables(given).items()}
    names = {ENV_PREFIX + name.upper() for name in Settings.model_fields}
    for name in sorted(variables):
        if name.split("__")[0] not in names:
            raise unknown("setting", name, names)
    try:
        configuration = Settings()
    except SettingsError as error:
        raise _json_error(error, variables) from None
    except ValidationError as error:
        raise _invalid_value_error(error.errors()[0]) from None
    check_least_changes(configuration.min_change, "YARUS_MIN_CHANGE")
    if configuration.source_tables or configuration.source_columns:  # `source_tables` checks the names
        tables.source_tables(None, names=configuration.source_tables, columns=configuration.source_columns)
    return configuration


def _json_error(error: SettingsError, variables: Mapping[str, str]) -> InputError:
    field_match = re.search(r'field "(\w+)"', str(error))
    setting = ENV_PREFIX + (field_match[1].upper() if field_match else "")
    # The JSON fields of services and roles.
    json_parts = [f"{setting}__{part}" for part in ("HEADERS", "EXTRA_BODY", "TOKEN_FORM", "QUERY", "PASSAGE")]
    if setting not in variables and (used_parts := [part for part in json_parts if part in variables]):
        setting = next((part for part in used_parts if not variables[part].lstrip().startswith("{")), used_parts[0])
    return InputError("{place}: expected JSON; or set its parts one by one: {place}__NAME=VALUE", place=setting)


def _invalid_value_error(error: Mapping[str, Any]) -> InputError:
    """Translate pydantic's error; the value is repeated only if it cannot be a secret."""
    *parents, field = (str(part) for part in error["loc"])
    setting = ENV_PREFIX + "__".join((*parents, field)).upper()
    if error["type"] == "extra_forbidden":
        annotation = Settings.model_fields[parents[0]].annotation
        model = next(type_ for type_ in (annotation, *get_args(annotation)) if hasattr(type_, "model_fields"))
        return unknown(
            "setting", setting, (setting.removesuffix(field.upper()) + name.upper() for name in model.model_fields)
        )
    is_plain = isinstance(error["input"], str | int | float) and not error["type"].endswith(("model_type", "dict_type"))
    value = (
        Words(" (given: {input!r})", input=error["input"])
        if is_plain and not re.search(SENSITIVE_SETTINGS, setting)
        else ""
    )
    return InputError("{place}: {allowed}{given}", place=setting, allowed=allowed_values_text(error), given=value)

"""The configuration, read in one place: environment variables `YARUS_*` and a file `.env`."""

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

from dotenv import dotenv_values
from pydantic import BaseModel, Field, PositiveFloat, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from yarus.db import tables
from yarus.db.engine import shown
from yarus.db.errors import InputError, unknown
from yarus.db.tables import Json
from yarus.db.words import Words
from yarus.tasks.config.factors import RerankerService
from yarus.tasks.config.redaction import redact_urls_within
from yarus.tasks.config.services import Price, open_address
from yarus.tasks.config.validation import allowed, least_changes

Language = Literal["ru", "en"]
PREFIX = "YARUS_"
NOT_REPEATED = "URL|KEY|HEADERS|TOKEN_|^YARUS_(RETRIEVER|RERANKER|SUT|EMBEDDER|SIMILARITY_EMBEDDER)$"
"""Settings that may hold a secret: what was given is not repeated."""


class Access(BaseModel, extra="forbid", allow_inf_nan=False):
    """Credentials for a model's server, and the certificates that it is trusted by."""

    headers: dict[str, SecretStr] = Field({}, description="HTTP headers; never logged or stored")
    token_url: str | None = Field(None, description="address that issues tokens for the key (OAuth)")
    token_form: dict[str, SecretStr] = Field(
        {}, description='fields sent to it, such as {"scope": "GIGACHAT_API_PERS"}'
    )
    token_command: SecretStr | None = Field(
        None, description="command that prints a token; run again when the server refuses it"
    )
    ca_file: Path | None = Field(None, description="file of further trusted certificates (PEM)")


class Role(Access):
    """A language model in one role. Without `base_url` the role is served by its offline stand-in."""

    base_url: str | None = Field(None, description="address of an OpenAI-compatible API, up to /v1")
    model: str | None = Field(None, description="name of the model")
    api_key: SecretStr | None = Field(None, description="sent as a bearer token; never logged or stored")
    extra_body: Json = Field({}, description="further fields of requests, as JSON")
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
    """How to ask a retriever that is an HTTP service."""

    request: str = Field('{"question": "$question", "k": "$k"}', description="JSON sent by POST")
    ids: str = Field("results[].id", description="JMESPath of the ids in the reply, best first")
    distances: str = Field(
        "results[].distance", description="JMESPath of their distances; without them the order is used"
    )
    headers: dict[str, SecretStr] = Field({}, description="HTTP headers; never logged or stored")
    timeout_s: float = Field(30.0, gt=0)
    concurrency: int = Field(8, ge=1)


class EmbedderService(Access):
    """How to ask an embedder that is an HTTP service."""

    query: Json = Field({}, description='sent with questions, as JSON, such as {"input_type": "query"}')
    passage: Json = Field({}, description='sent with chunks, such as {"input_type": "passage"}')
    batch: int = Field(32, ge=1, le=2_048, description="texts of one request, at most")
    concurrency: int = Field(4, ge=1, le=1_000, description="requests in flight at once")
    rpm: int | None = Field(None, ge=1, description="requests a minute")
    timeout_s: float = Field(120.0, gt=0, description="longest wait for one reply")


class SystemService(BaseModel, extra="forbid", allow_inf_nan=False):
    """How to ask a question-answering system that is an HTTP service."""

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
    """Everything that can be set from outside; what changes from one evaluation to the next is a flow parameter."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
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
    work: str | None = Field(None, description="unfinished work: folder or fsspec URL; default: work in home")
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
    refusals: list[str] = Field(
        ["ответ не найден", "не удалось найти ответ", "не нашёл ответа", "answer not found", "no answer found"],
        description="an answer that has one of these in its first sentence is a refusal",
    )
    sut_label: str | None = Field(None, description="version of the system under test, shown on every evaluation")
    generator: Role = Role()
    judge: Role = Role()
    gate: Role = Role()
    rubrics: Path | None = Field(None, description="folder of judged metrics of your own, one text file each")
    prices: dict[str, Price] = Field({}, description="model -> its price, as JSON")
    budget_usd: float | None = Field(None, gt=0, description="upper limit of an evaluation's cost")
    evaluation_timeout_s: float | None = Field(None, gt=0, description="no model is called after this time")
    mask_calls: bool = Field(False, description="models get pseudonyms instead of phones, e-mails, names, ids")
    mask_shown: bool | None = Field(
        None, description="people get them too; default: where the source is production, and in sheets for annotators"
    )
    language: Language = "ru"
    gate_file: Path | None = Field(None, description="gate that every finished evaluation is checked against")
    prefect_database_url: SecretStr | None = Field(None, description="PostgreSQL for Prefect; default: SQLite in home")
    server_idle_s: float = Field(
        600.0, ge=0, description="how long Prefect's server and the embedded PostgreSQL outlive the last command"
    )
    alert_webhook: SecretStr | None = Field(None, description="address to which `yarus alerts apply` has alerts sent")
    false_alarms_a_year: float = Field(1.0, ge=1e-3, le=1e3, description="alarms without a cause, of all tiers")
    least_change: dict[str, PositiveFloat] = Field({}, description="metric -> the smallest loss that raises an alarm")
    serve_names: str = Field("", description="additional host names of yarus serve, comma-separated")
    report_url: str | None = Field(None, description="where the report pages are served; yarus serve sets it")
    min_coverage: float = Field(0.95, ge=0, le=1, description="with a smaller share measured it is invalid")
    cost_wrong_shown: float = Field(1.0, gt=0, le=1e6, description="of a wrong answer that the gate shows")
    cost_right_hidden: float = Field(1.0, gt=0, le=1e6, description="of a right answer that the gate hides")

    @field_validator("home")
    @classmethod
    def _of_the_user(cls, value: Path) -> Path:
        try:
            return value.expanduser()
        except RuntimeError as error:
            raise ValueError(Words("{error} Give the full path", error=error)) from error

    @field_validator("retriever", "reranker", "sut", "embedder", "similarity_embedder")
    @classmethod
    def _nothing_secret(cls, value: str | None, info: ValidationInfo) -> str | None:
        place = PREFIX + str(info.field_name).upper()
        keys = f"{place}_API_KEY" if "EMBEDDER" in place else f"{place}_SERVICE__HEADERS"
        return value and open_address(value, place, keys=keys)

    @field_validator("database_url", "source_url", "prefect_database_url")
    @classmethod
    def _postgresql_only(cls, value: SecretStr | None) -> SecretStr | None:
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
        if isinstance(password := url.query.get("password"), str):  # where no message would mask it
            url = url.difference_update_query(["password"]).set(password=password)
        return SecretStr(url.set(drivername="postgresql+psycopg").render_as_string(hide_password=False))

    @property
    def results_root(self) -> str:
        """Where Parquet goes: a folder or an fsspec URL."""
        if self.results and "://" in self.results:
            return self.results
        return str((Path(self.results).expanduser() if self.results else self.home / "results").absolute())

    def public(self) -> dict[str, object]:
        """The settings without secrets, as they are stored with an evaluation."""
        secret_addresses = {"database_url", "source_url", "prefect_database_url", "alert_webhook"}
        values = self.model_dump(mode="json", exclude=secret_addresses, exclude_none=True)
        for name in ("database_url", "source_url"):
            secret: SecretStr | None = getattr(self, name)
            if secret is not None:
                values[name] = shown(make_url(secret.get_secret_value()))
        return {name: redact_urls_within(value) for name, value in values.items()}


def settings() -> Settings:
    """The settings as the environment and the file `.env` have them now; read anew only where these have changed.

    Raises:
        InputError: a value is out of its range, or a variable that begins with `YARUS_` names no setting.
    """
    try:
        file = Path(".env").read_bytes()
    except OSError:
        file = b""
    # Without a file only ours matter, and what a ~ stands for; a file may refer to any variable.
    relevant = (item for item in os.environ.items() if file or item[0] == "HOME" or item[0].upper().startswith(PREFIX))
    return _read(frozenset(relevant), file)


@lru_cache(maxsize=8)
def _read(environment: frozenset[tuple[str, str]], file: bytes) -> Settings:
    """The settings as they are; what they are made of is their key in the cache."""
    given = {**dotenv_values(".env"), **os.environ}
    variables = {name.upper(): value or "" for name, value in given.items() if name.upper().startswith(PREFIX)}
    names = {PREFIX + name.upper() for name in Settings.model_fields}
    for name in sorted(variables):
        if name.split("__")[0] not in names:
            raise unknown("setting", name, names)
    try:
        found = Settings()
    except SettingsError as error:
        raise _no_json(error, variables) from None
    except ValidationError as error:
        raise _wrong(error.errors()[0]) from None
    least_changes(found.least_change, "YARUS_LEAST_CHANGE")
    if found.source_tables or found.source_columns:  # their names are checked where the tables are made
        tables.source_tables(None, names=found.source_tables, columns=found.source_columns)
    return found


def _no_json(error: SettingsError, variables: Mapping[str, str]) -> InputError:
    named = re.search(r'field "(\w+)"', str(error))
    place = PREFIX + (named[1].upper() if named else "")
    parts = [
        f"{place}__{part}" for part in ("HEADERS", "EXTRA_BODY", "TOKEN_FORM", "QUERY", "PASSAGE")
    ]  # of a service, only these are JSON
    if place not in variables and (given := [part for part in parts if part in variables]):
        place = next((part for part in given if not variables[part].lstrip().startswith("{")), given[0])
    return InputError("{place}: expected JSON; or set its parts one by one: {place}__NAME=VALUE", place=place)


def _wrong(first: Mapping[str, Any]) -> InputError:
    """What pydantic found, in our words; what was given is repeated only where it can be no secret."""
    *within, last = (str(part) for part in first["loc"])
    place = PREFIX + "__".join((*within, last)).upper()
    if first["type"] == "extra_forbidden":
        annotation = Settings.model_fields[within[0]].annotation
        model = next(kind for kind in (annotation, *get_args(annotation)) if hasattr(kind, "model_fields"))
        return unknown(
            "setting", place, (place.removesuffix(last.upper()) + name.upper() for name in model.model_fields)
        )
    plain = isinstance(first["input"], str | int | float) and not first["type"].endswith(("model_type", "dict_type"))
    given = Words(" (given: {input!r})", input=first["input"]) if plain and not re.search(NOT_REPEATED, place) else ""
    return InputError("{place}: {allowed}{given}", place=place, allowed=allowed(first), given=given)

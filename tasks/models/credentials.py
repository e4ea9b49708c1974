"""Credentials of requests: a key, headers, or a token that is fetched and renewed before it expires."""

import asyncio
import json
import logging
import shlex
import time
from collections.abc import Sequence
from urllib.parse import urlencode, urlsplit
from uuid import uuid4

import httpx

from yarus.db.errors import InputError, ModelUnavailable
from yarus.db.messages import Words
from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.secrets import redact, redact_in_logs, secret_header_values
from yarus.tasks.config.services import prepare_headers, require_public_address
from yarus.tasks.config.settings import ServerAccess
from yarus.tasks.models.server_errors import find_delay_s

log = logging.getLogger("yarus")
RENEW_AHEAD_S = 60.0
"""Seconds between the renewal of a token and its expiry."""
FETCH_TIMEOUT_S = 60.0
"""Time limit for a server or a command that gives a token."""
PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Pauses between the tries to fetch a token after faults that may pass."""
MAX_WAIT_S = 20.0
"""Upper limit of the sum of all pauses, including those that the server asks for."""
MAX_TIMEOUTS = 2
"""Tries that may time out before Yarus gives up."""
EARLY_PAUSE_S = 5.0
"""Pause between the tries to renew a token that has not expired yet."""
FORM_HEADERS = {"content-type": "application/x-www-form-urlencoded"}


class _PassingFault(Exception):
    """Failure to fetch a token that another try may not have."""

    def __init__(self, error: InputError | ModelUnavailable, *, delay_s: float = 0.0, is_timeout: bool = False) -> None:
        """Take the error to raise after the last try, and how long the server wants us to wait."""
        super().__init__(error)
        self.error, self.delay_s, self.is_timeout = error, delay_s, is_timeout


class Credentials:
    """Credentials for one server. A token is fetched at its first use, once for all callers."""

    def __init__(self, access: ServerAccess, key: str, prefix: str, key_setting: str) -> None:
        """Take the settings; fetch nothing yet.

        Args:
            access: headers, and where tokens come from.
            key: sent as a bearer token; if tokens are fetched, only to their address; '' for none.
            prefix: prefix of the settings' names.
            key_setting: name of the key's setting.

        Raises:
            InputError: a value cannot be sent; the message does not repeat it.
        """
        if not (key.isascii() and key.isprintable()):
            raise InputError(
                "{setting}: has characters that a key cannot have (it is not shown here); copy it again",
                setting=key_setting,
            )
        self._own = check_access(access, prefix)
        self._access, self._key, self._prefix, self._key_setting = access, key, prefix, key_setting
        self._token_url = (access.token_url or "").strip()
        self._ends_at = self._renew_at = float("-inf")
        self._use_token("")
        self._fetching = asyncio.Lock()

    @property
    def is_renewable(self) -> bool:
        """Return whether Yarus fetches a token."""
        return bool(self._access.token_url or self._access.token_command)

    async def build_headers(self) -> dict[str, str]:
        """Return the headers of a request, the same dictionary until the token changes.

        Raises:
            InputError: a command cannot be run, or prints no token.
            ModelUnavailable: the token's address gives none.
        """
        if self.is_renewable and time.monotonic() > self._renew_at:
            await (self._renew_early() if self._is_valid else self.renew(self._token))
        return self._headers

    async def renew(self, used: str) -> None:
        """Fetch another token, unless it has been replaced since. Retry faults that may pass.

        Args:
            used: the token that was refused or has expired; '' for none.

        Raises:
            InputError: a command cannot be run, or prints no token.
            ModelUnavailable: the token's address gives none.
        """
        await self._replace(used, PAUSES_S)

    async def _renew_early(self) -> None:
        """Renew a token that has not expired yet. If that fails, keep it and try again later."""
        if self._fetching.locked():  # another call renews it; the old one still works
            return
        used = self._token
        try:
            await self._replace(used, ())
        except (InputError, ModelUnavailable) as error:
            if not self._is_valid:
                await self.renew(used)
                return
            self._renew_at = time.monotonic() + EARLY_PAUSE_S
            log.warning("the token cannot be renewed, Yarus uses it until it expires: %s", error)

    @property
    def _is_valid(self) -> bool:
        """Return whether there is a token that has not expired, by the lifetime that its server named."""
        return bool(self._token) and time.monotonic() < self._ends_at

    async def _replace(self, used: str, pauses_s: Sequence[float]) -> None:
        async with self._fetching:
            if self._token != used:
                return
            token, self._ends_at = await self._fetch(pauses_s)
            self._renew_at = self._ends_at - RENEW_AHEAD_S
            redact_in_logs(token)
            self._use_token(token)

    def _use_token(self, token: str) -> None:
        """Build headers and secrets again; HEADERS win over the key and the token."""
        self._token = token
        bearer = token if self.is_renewable else self._key
        is_own = "authorization" in map(str.lower, self._own)
        self._headers = ({"authorization": f"Bearer {bearer}"} if bearer and not is_own else {}) | self._own
        self.secrets = tuple(filter(None, (self._key, token, *secret_header_values(self._own))))
        """All secrets that a server may repeat in a reply."""

    async def _fetch(self, pauses_s: Sequence[float]) -> tuple[str, float]:
        """Return a token and its end by `time.monotonic`; try once more after each pause."""
        waited_s, timeouts = 0.0, 0
        for pause_s in (*pauses_s, None):
            try:
                return await (self._fetch_from_command() if self._access.token_command else self._fetch_from_server())
            except _PassingFault as fault:
                timeouts += fault.is_timeout
                if pause_s is None or timeouts == MAX_TIMEOUTS or waited_s + fault.delay_s > MAX_WAIT_S:
                    raise fault.error from None
                wait_s = max(pause_s, fault.delay_s)
            waited_s += wait_s
            await asyncio.sleep(wait_s)
        raise AssertionError  # the last try returns or raises

    @property
    def token(self) -> str:
        """Return the current token."""
        return self._token

    async def _fetch_from_server(self) -> tuple[str, float]:
        from yarus.tasks.models.transport import (  # aiohttp, which settings are checked without
            ACCEPT_HEADERS,
            Transport,
        )

        form = {name: value.get_secret_value() for name, value in self._access.token_form.items()}
        secrets = (*self.secrets, *form.values())
        request_headers = httpx.Headers(ACCEPT_HEADERS | FORM_HEADERS | {"RqUID": str(uuid4())})  # which GigaChat wants
        if self._key:
            request_headers["authorization"] = f"Basic {self._key}"
        transport = Transport(self._token_url, self._access.ca_file)
        try:
            response = await transport.exchange(urlencode(form).encode(), request_headers, FETCH_TIMEOUT_S)
        except httpx.RequestError as error:
            problem = Words(
                "{address} cannot be reached ({error})", address=self._token_url, error=redact(str(error), secrets)
            )
            is_timeout = isinstance(error, httpx.TimeoutException)
            raise _PassingFault(self._report_outage(problem), is_timeout=is_timeout) from None
        finally:
            await transport.aclose()
        try:
            return _parse_token(json.loads(response.content) if response.status == 200 else {})
        except (ValueError, KeyError, TypeError, AttributeError):
            words = " ".join(redact(response.content.decode("utf-8", "replace"), secrets)[:1_000].split())[:300]
            problem = Words(
                "{address} answers HTTP {status}: {words}", address=self._token_url, status=response.status, words=words
            )
        if response.status in (408, 425, 429) or response.status >= 500:
            raise _PassingFault(self._report_outage(problem), delay_s=find_delay_s(response.headers, "") or 0.0)
        raise ModelUnavailable(
            "no token: {why}. Check {key}, {place}__TOKEN_URL, __TOKEN_FORM (the scope) and __CA_FILE",
            why=problem, key=self._key_setting, place=self._prefix,
        )  # fmt: skip

    async def _fetch_from_command(self) -> tuple[str, float]:
        setting = f"{self._prefix}__TOKEN_COMMAND"
        command = self._access.token_command.get_secret_value() if self._access.token_command else ""
        try:
            process = await asyncio.create_subprocess_exec(
                *shlex.split(command),
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            raise InputError("{setting} cannot be run: {error}", setting=setting, error=error) from None
        try:
            out, err = await asyncio.wait_for(process.communicate(), FETCH_TIMEOUT_S)
        except TimeoutError:
            process.kill()
            raise self._report_command(
                InputError("{setting} prints nothing within {seconds:.0f} s", setting=setting, seconds=FETCH_TIMEOUT_S),
                is_timeout=True,
            ) from None
        token = out.decode("ascii", "replace").strip()
        if process.returncode or not token or not token.isprintable() or " " in token:
            words = redact(redact_urls(err.decode("utf-8", "replace")), self.secrets)
            last = words.strip().splitlines()[-1:] or [""]
            raise self._report_command(
                InputError(
                    "{setting} prints no token (exit code {code}): {said}. It must print the token alone",
                    setting=setting, code=process.returncode, said=last[0][:200],
                )
            )  # fmt: skip
        return token, float("inf")  # its expiry is unknown; it is renewed after a refusal

    def _report_command(self, error: InputError, *, is_timeout: bool = False) -> InputError | _PassingFault:
        """Return the error of a command; it may pass if the command has printed a token before."""
        return _PassingFault(error, is_timeout=is_timeout) if self._token else error

    def _report_outage(self, problem: Words) -> ModelUnavailable:
        """Return the error of a token's address that does not answer or has a fault."""
        return ModelUnavailable(
            "no token: {why}. Wait, then use --resume; if it stays so, check {place}__TOKEN_URL and __CA_FILE",
            why=problem, place=self._prefix,
        )  # fmt: skip


def _parse_token(reply: dict[str, object]) -> tuple[str, float]:
    """Return the token of a reply and its end by `time.monotonic`."""
    token = reply["access_token"] if "access_token" in reply else reply["tok"]
    if not isinstance(token, str) or not token.strip():
        raise ValueError
    lasts_s = float("inf")
    if "expires_in" in reply:
        lasts_s = float(str(reply["expires_in"]))
    elif (ends_at := reply.get("expires_at") or reply.get("exp")) is not None:
        seconds = float(str(ends_at))
        lasts_s = (seconds / 1000 if seconds > 1e11 else seconds) - time.time()
    return token.strip(), time.monotonic() + max(lasts_s, RENEW_AHEAD_S + 1)


def check_access(access: ServerAccess, prefix: str) -> dict[str, str]:
    """Check headers and token settings, and return the headers as they are sent.

    Args:
        access: the settings.
        prefix: prefix of their names.

    Raises:
        InputError: naming the setting, never a secret.
    """
    if access.token_url and access.token_command:
        raise InputError("{place}__TOKEN_URL and __TOKEN_COMMAND are both set: unset one", place=prefix)
    if access.token_url:
        check_address(access.token_url, f"{prefix}__TOKEN_URL", f"{prefix}__TOKEN_FORM", example="https://host/oauth")
    return prepare_headers(access.headers, prefix)


def check_address(address: str, setting: str, keys: str, *, example: str = "https://host/v1") -> str:
    """Return an address without surrounding spaces if requests can be sent to it.

    Args:
        address: such as `https://api.example.org/v1`.
        setting: its name, for messages.
        keys: the setting that secrets belong in, for messages.
        example: an address of that setting, for messages.

    Raises:
        InputError: it is not an address, or has a user name, a password or a secret in its query. The message does not
            repeat them.
    """
    stripped = address.strip()
    base = stripped.partition("?")[0]
    form = (
        Words("{example}, without user name and password", example=example)
        if "@" in base
        else Words("{example}, given: {base!r}", example=example, base=base)
    )
    try:
        url = httpx.URL(base)
        _ = urlsplit(base).port  # raises for a port or brackets that httpx takes and aiohttp does not
    except (httpx.InvalidURL, ValueError) as error:
        if "@" in base:  # the error may repeat a part of the password
            raise InputError("{setting}: expected an address like {form}", setting=setting, form=form) from None
        raise InputError(
            "{setting}: {error}; expected for example {example}", setting=setting, error=error, example=example
        ) from None
    if url.scheme not in ("http", "https") or not url.host or url.userinfo:
        raise InputError("{setting}: expected an address like {form}", setting=setting, form=form)
    return require_public_address(stripped, setting, keys=keys)

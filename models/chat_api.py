"""A language model behind an OpenAI-compatible endpoint: completions and chats, several at a time, each repeated until
the endpoint answers it.

The key is read from the environment for each call. It is in no field, message or file. Redirects are not followed."""

import ipaddress
import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import requests

REFUSED, FAILED = "content_filter", "failed"
BLOCKED = ("content_filter", "content_policy_violation")  # error codes of a refused prompt
HOPELESS = ("insufficient_quota",)  # error codes of a 429 that stays
REPEATED = (408, 409, 425, 429)  # besides 5xx
LONGEST_WAIT = 120.0  # seconds, whatever Retry-After says
CONNECT = 10.0  # seconds for a connection
SHOWN = 300  # characters of an endpoint's message


class EndpointError(ValueError):
    """An endpoint that repetition does not help: a wrong address, key, model or field."""


class Choice(NamedTuple):
    """A token of an answer."""

    token: str
    logprob: float
    top: dict[str, float]  # the likeliest tokens in its place, with their log-probabilities


@dataclass(frozen=True)
class Answer:
    """The answer to one request."""

    text: str  # "" where it was refused or failed
    finish: str  # "stop", "length" or another word of the endpoint's; REFUSED; FAILED
    tries: int = 1  # requests that were sent for it
    prompt_tokens: int = 0  # as the endpoint counts
    answer_tokens: int = 0
    model: str = ""  # the model that answered, by the endpoint's name for it
    choices: tuple[Choice, ...] | None = None  # None: the endpoint gives no log-probabilities
    why: str = ""  # the last fault of one that failed


def totals(answers: Iterable[Answer]) -> dict[str, int]:
    """Counts of requests, retries, failures, refusals and tokens."""
    rows = list(answers)
    return {
        "requests": sum(row.tries for row in rows),
        "retries": sum(row.tries - 1 for row in rows),
        "failures": sum(row.finish == FAILED for row in rows),
        "refusals": sum(row.finish == REFUSED for row in rows),
        "prompt_tokens": sum(row.prompt_tokens for row in rows),
        "answer_tokens": sum(row.answer_tokens for row in rows),
    }


def conversation(text: str, system: str | None = None) -> list[dict[str, str]]:
    """The messages of a chat with one question."""
    before = [{"role": "system", "content": system}] if system else []
    return [*before, {"role": "user", "content": text}]


@dataclass(frozen=True)
class Endpoint:
    """A model at an address, which ends before /chat/completions: https://HOST/v1.

    Raises EndpointError for an address of another form, and for a key that would travel unencrypted to another
    machine."""

    url: str
    name: str
    key: str | None = "OPENAI_API_KEY"  # the environment's variable with the key; None: no key is sent
    concurrency: int = 4  # requests at a time
    timeout: float = 120.0  # seconds without a byte
    tries: int = 6  # of a request, the first included
    backoff: float = 1.0  # seconds before the second try; doubled before each further one
    body: Mapping[str, Any] = field(default_factory=dict)  # further fields of each request; None leaves a field out

    def __post_init__(self) -> None:
        for name, fewest in (("concurrency", 1), ("tries", 1), ("timeout", 0.001), ("backoff", 0)):
            if getattr(self, name) < fewest:
                raise EndpointError(f"{name}={getattr(self, name)} must be at least {fewest}")
        if not self.name:
            raise EndpointError(f"the endpoint {self.url} needs the name of a model")
        _check_address(self.url)
        if self._secret() and self.url.lower().startswith("http:") and not self.is_local:
            raise EndpointError(
                f"the key in {self.key} would travel unencrypted to {self.host}; give an https:// address, or name no "
                "variable for the key if the endpoint needs none"
            )

    @property
    def host(self) -> str:
        """The machine that answers."""
        return urlsplit(self.url).hostname or ""

    @property
    def is_local(self) -> bool:
        """Return whether this machine answers."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def chat(self, conversations: Sequence[Sequence[Mapping[str, str]]], **fields: Any) -> list[Answer]:
        """Answer each conversation (messages with role and content). fields: of each request, such as max_tokens,
        temperature, or logprobs=True with top_logprobs=N. Raises EndpointError."""
        return self._answer("chat/completions", [{"messages": list(one), **fields} for one in conversations], _chatted)

    def complete(self, prompts: Sequence[str], **fields: Any) -> list[Answer]:
        """Continue each prompt. fields: of each request, such as max_tokens, temperature, or logprobs=N. Raises
        EndpointError."""
        return self._answer("completions", [{"prompt": prompt, **fields} for prompt in prompts], _completed)

    def _answer(self, path: str, requested: Sequence[Mapping[str, Any]], parse: "Parse") -> list[Answer]:
        bodies = [{"model": self.name, **one, **self.body} for one in requested]
        bodies = [{name: value for name, value in body.items() if value is not None} for body in bodies]
        with requests.Session() as session, ThreadPoolExecutor(self.concurrency) as pool:
            session.trust_env = not self.is_local  # a proxy of the environment is not asked about this machine
            session.mount(self.url, requests.adapters.HTTPAdapter(pool_maxsize=self.concurrency))
            call = _Call(self, f"{self.url.rstrip('/')}/{path}", session, parse)
            futures = [pool.submit(call.answer, body) for body in bodies]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
                failed = [one for one in futures if one.done() and not one.cancelled() and one.exception()]
                return [one.result() for one in failed or futures]
            finally:  # also by the keyboard: only requests that were sent are waited for
                call.ended.set()
                pool.shutdown(wait=False, cancel_futures=True)

    def authorise(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the key, as requests asks an `auth` to; without one, requests would look into ~/.netrc."""
        if secret := self._secret():
            request.headers["Authorization"] = f"Bearer {secret}"
        return request

    def without_key(self, text: str) -> str:
        """A text of the endpoint's in one short line, without the key."""
        secret = self._secret()
        return " ".join((text.replace(secret, "***") if secret else text).split())[:SHOWN]

    def _secret(self) -> str:
        return os.environ.get(self.key, "").strip() if self.key else ""


Parse = Callable[[Mapping[str, Any]], tuple[str, Any, tuple[Choice, ...] | None]]
"""Reads the text, the finish and the log-probabilities of the first of an answer's `choices`."""


class _AgainError(Exception):
    """A fault that may be gone at the next try. after: the seconds that the endpoint asks to wait."""

    def __init__(self, why: str, after: float = 0.0) -> None:
        super().__init__(why)
        self.after = after


@dataclass
class _Call:
    """Requests of one kind that are sent together. A wait that the endpoint asks for holds for all of them."""

    endpoint: Endpoint
    url: str
    session: requests.Session
    parse: Parse
    ended: threading.Event = field(default_factory=threading.Event)
    not_before: float = 0.0  # of time.monotonic

    def answer(self, body: Mapping[str, Any]) -> Answer:
        """The answer to a request, after as many tries as it needs and may have."""
        endpoint = self.endpoint
        for tries in range(1, endpoint.tries + 1):
            self.ended.wait(max(0.0, self.not_before - time.monotonic()))
            if self.ended.is_set():
                return Answer("", FAILED, tries - 1, why="interrupted")
            try:
                return self._parse(self._send(body), tries)
            except _AgainError as fault:
                why, after = str(fault), fault.after
            if after:
                self.not_before = max(self.not_before, time.monotonic() + min(after, LONGEST_WAIT))
            elif tries < endpoint.tries:
                self.ended.wait(min(endpoint.backoff * 2 ** (tries - 1), LONGEST_WAIT) * random.uniform(0.5, 1.0))
        return Answer("", FAILED, endpoint.tries, why=why)

    def _send(self, body: Mapping[str, Any]) -> requests.Response:
        limits = (min(CONNECT, self.endpoint.timeout), self.endpoint.timeout)
        try:
            return self.session.post(
                self.url, json=body, timeout=limits, allow_redirects=False, auth=self.endpoint.authorise
            )
        except requests.RequestException as error:  # its message may have headers
            raise _AgainError(type(error).__name__) from None

    def _parse(self, response: requests.Response, tries: int) -> Answer:
        try:
            content = response.json()
        except ValueError:
            content = None
        if response.status_code != 200:
            return self._not_answered(response, content, tries)
        try:
            text, finish, choices = self.parse(content["choices"][0])
            usage = content.get("usage") or {}
            return Answer(
                "" if finish == REFUSED else text,
                str(finish or "stop"),
                tries,
                prompt_tokens=int(usage.get("prompt_tokens") or 0),
                answer_tokens=int(usage.get("completion_tokens") or 0),
                model=str(content.get("model") or self.endpoint.name),
                choices=choices,
            )
        except (LookupError, TypeError, ValueError, AttributeError):
            raise _AgainError("an answer that is cut or not JSON of the form of OpenAI's") from None

    def _not_answered(self, response: requests.Response, content: Any, tries: int) -> Answer:
        """The answer to a prompt that the endpoint blocks; for any other fault _AgainError or EndpointError."""
        status, place = response.status_code, f"{self.url} answers HTTP {response.status_code}"
        error = content.get("error") if isinstance(content, Mapping) else None
        error = error if isinstance(error, Mapping) else {"message": error or ""}
        if (status in REPEATED or status >= 500) and error.get("code") not in HOPELESS:
            raise _AgainError(f"HTTP {status}", _seconds(response.headers.get("Retry-After")))
        if status == 400 and error.get("code") in BLOCKED:
            return Answer("", REFUSED, tries)
        if 300 <= status < 400:
            where = self.endpoint.without_key(response.headers.get("Location", "nowhere"))
            raise EndpointError(f"{place}, a redirect to {where}, which is not followed; give the final address")
        if status in (401, 403):
            named = f"the environment's variable {self.endpoint.key}" if self.endpoint.key else "no variable"
            raise EndpointError(f"{place}: it does not accept the key; {named} is named for it")
        message = self.endpoint.without_key(str(error.get("message") or ""))
        place += f" for the model {self.endpoint.name}" + (f" ({message})" if message else "")
        if status == 404:
            raise EndpointError(f"{place}; check the address, which ends in /v1 for most, and the model's name")
        raise EndpointError(f"{place}; the same request would get the same answer")


def _chatted(choice: Mapping[str, Any]) -> tuple[str, Any, tuple[Choice, ...] | None]:
    message = choice["message"]
    finish = REFUSED if message.get("refusal") else choice.get("finish_reason")
    given = (choice.get("logprobs") or {}).get("content")
    text = message.get("content") or ""
    if not isinstance(text, str):
        raise TypeError("content in parts")
    return (
        text,
        finish,
        None
        if given is None
        else tuple(
            Choice(
                row["token"], row["logprob"], {top["token"]: top["logprob"] for top in row.get("top_logprobs") or ()}
            )
            for row in given
        ),
    )


def _completed(choice: Mapping[str, Any]) -> tuple[str, Any, tuple[Choice, ...] | None]:
    given, text = choice.get("logprobs"), choice["text"]
    if not isinstance(text, str):
        raise TypeError("no text")
    if given is None:
        return text, choice.get("finish_reason"), None
    tops = given.get("top_logprobs") or [None] * len(given["tokens"])
    rows = zip(given["tokens"], given["token_logprobs"], tops, strict=True)
    return text, choice.get("finish_reason"), tuple(Choice(token, p, dict(top or {})) for token, p, top in rows)


def _seconds(after: str | None) -> float:
    """The seconds of a header Retry-After, which is a number or a date; 0 for neither."""
    try:
        return max(0.0, float(after or 0))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(after or "").timestamp() - time.time())
    except (TypeError, ValueError):
        return 0.0


def _check_address(url: str) -> None:
    try:
        parts = urlsplit(url)
        is_address = parts.scheme.lower() in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port that is not a number
        is_address = False
    if not is_address or parts.query or parts.fragment:
        raise EndpointError(f"{url} is not the address of an endpoint; give one such as https://HOST/v1")
    if parts.username or parts.password:
        raise EndpointError(f"the address of {parts.hostname} has a name or password in it; give it without")
    if parts.path.rstrip("/").endswith("completions"):
        raise EndpointError(f"{url} is the address of one kind of request; give it up to /v1")

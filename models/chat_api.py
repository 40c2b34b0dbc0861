"""A language model behind an OpenAI-compatible endpoint, by OpenAI's client (the extra `api`), which repeats requests:
completions and chats, several at a time.

The key is read from the environment for each call. It is in no field, message or file. Redirects are not followed."""

import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar, NoReturn
from urllib.parse import urlsplit

REFUSED, REASONING, FAILED = "refused", "reasoning", "failed"
BLOCKED = ("content_filter", "content_policy_violation")  # of a prompt, or of an answer
NO_QUOTA = "insufficient_quota"  # the error code of a 429 that stays
THOUGHT = "think|thinking|thought|reasoning"
SHOWN = 300  # characters of an endpoint's message


class EndpointError(ValueError):
    """A fault of an endpoint that stays when a request is repeated: a wrong address, key, model or field."""


@dataclass(frozen=True)
class Answer:
    """The answer to one request."""

    text: str  # without reasoning; of a refusal its words, if there are any; "" where it failed
    finish: str  # REFUSED, FAILED, REASONING: it ended before an answer; "stop", "length" or another word of its own
    tries: int = 1  # requests that were sent for it
    prompt_tokens: int = 0  # as the endpoint counts
    answer_tokens: int = 0
    model: str = ""  # the model that answered, by the endpoint's name for it
    why: str = ""  # the last fault of one that failed


def conversation(text: str, system: str | None = None) -> list[dict[str, str]]:
    """The messages of a chat with one question."""
    before = [{"role": "system", "content": system}] if system else []
    return [*before, {"role": "user", "content": text}]


def without_reasoning(text: str) -> str:
    """The text without <think> blocks. A block that does not end (the answer was cut) goes to the end of the text, and
    one that does not begin (some chat templates open it themselves) begins with the text."""
    text = re.sub(rf"[<\[]({THOUGHT})[>\]].*?([<\[]/\1[>\]]|\Z)", "", text, flags=re.DOTALL | re.IGNORECASE)
    return re.sub(rf"\A.*[<\[]/({THOUGHT})[>\]]", "", text, flags=re.DOTALL | re.IGNORECASE).strip()


def no_weights(folder: object = None) -> NoReturn:
    """Raise EndpointError: an endpoint gives texts, and no weights to load."""
    raise EndpointError(
        "model=api gives texts, and not the likelihoods of all continuations that a probe of tails needs; give the "
        "model's weights (model=hf model.base=NAME model.prompt=chat), or take recipe=stories"
    )


@dataclass(frozen=True)
class Endpoint:
    """A model at an address, which ends before /chat/completions: https://HOST/v1.

    Raises EndpointError for any other address, for a key that would travel unencrypted, and without the client."""

    surroundings: ClassVar = ("key", "concurrency", "timeout", "tries")  # which do not change the answers

    url: str
    name: str
    key: str | None = "OPENAI_API_KEY"
    """The environment's variable with the key; None: no key is sent."""
    concurrency: int = 4  # requests at a time
    timeout: float = 120.0  # seconds without a byte
    tries: int = 6  # of a request, the first included
    body: Mapping[str, Any] | None = None  # further fields of each request; a field that is None is left out

    def __post_init__(self) -> None:
        if not self.name:
            raise EndpointError(f"the endpoint {self.url} needs the name of a model")
        try:
            parts = urlsplit(self.url)
            _ = parts.port  # raises ValueError for one that is not a number
        except ValueError as error:
            raise EndpointError(
                f"the endpoint's address is malformed: {error}; give one such as https://HOST/v1"
            ) from error
        is_address = parts.scheme in ("http", "https") and parts.hostname and not parts.query and not parts.password
        if not is_address or parts.path.rstrip("/").endswith("completions"):
            place = parts.hostname if parts.password else self.url
            raise EndpointError(f"{place} is not the address of an endpoint; give one such as https://HOST/v1")
        if self._secret() and parts.scheme == "http" and not self.is_local:
            raise EndpointError(
                f"the key in {self.key} would travel unencrypted to {parts.hostname}; give an https:// address, or "
                "name no variable for the key if the endpoint needs none"
            )
        if find_spec("openai") is None:
            raise EndpointError("an endpoint needs the library openai: pip install 'mitigate[api]'")

    @property
    def is_local(self) -> bool:
        """Return whether the endpoint is on this machine."""
        return urlsplit(self.url).hostname in ("localhost", "127.0.0.1", "::1")

    def chat(self, conversations: Sequence[Sequence[Mapping[str, str]]], **fields: Any) -> list[Answer]:
        """Answer each conversation (messages with role and content). fields: of each request, such as max_tokens
        or temperature. Raises EndpointError."""
        return self._answers("messages", conversations, fields)

    def complete(self, prompts: Sequence[str], **fields: Any) -> list[Answer]:
        """Continue each prompt. fields: as those of chat. Raises EndpointError."""
        return self._answers("prompt", prompts, fields)

    def _answers(self, name: str, inputs: Sequence[Any], fields: Mapping[str, Any]) -> list[Answer]:
        import openai  # takes a second, which those that only check an address do without

        more = {name: value for name, value in {**fields, **(self.body or {})}.items() if value is not None}
        secret = self._secret()
        client = openai.OpenAI(
            api_key=secret or "none",  # the client demands one, and the header is left out below
            base_url=self.url,
            timeout=self.timeout,
            max_retries=self.tries - 1,
            # A proxy of the environment is not asked about this machine.
            http_client=openai.DefaultHttpxClient(follow_redirects=False, trust_env=not self.is_local),
        )
        resource: Any = client.chat.completions if name == "messages" else client.completions
        headers = {} if secret else {"Authorization": openai.omit}

        def answer(given: Any) -> Answer:
            request = {"model": self.name, name: given, "extra_body": more, "extra_headers": headers}
            try:
                raw = resource.with_raw_response.create(**request)
            except openai.APIStatusError as error:
                if error.status_code == 400 and error.code in BLOCKED:
                    return Answer("", REFUSED)
                is_transient = error.status_code in (408, 409, 429) or error.status_code >= 500
                if is_transient and error.code != NO_QUOTA:
                    return Answer("", FAILED, self.tries, why=f"HTTP {error.status_code}")
                message = str(error.message).replace(secret or "\0", "***")[:SHOWN]
                raise EndpointError(
                    f"{self.url} answers HTTP {error.status_code} for the model {self.name} ({message}); check the "
                    "address, which ends in /v1 for most, the model's name, the fields of requests and the key "
                    f"({self.key or 'none is sent'})"
                ) from error
            except openai.APIConnectionError as error:  # its message may have headers
                return Answer("", FAILED, self.tries, why=type(error).__name__)
            try:
                return _read(raw.parse(), raw.retries_taken + 1)
            except (LookupError, TypeError, ValueError, AttributeError):
                return Answer("", FAILED, raw.retries_taken + 1, why="an answer that is not in OpenAI's format")

        with client, ThreadPoolExecutor(self.concurrency) as pool:
            return list(pool.map(answer, inputs))  # after an error the others are not sent

    def _secret(self) -> str:
        return os.environ.get(self.key, "").strip() if self.key else ""


def _read(completion: Any, tries: int) -> Answer:
    """The answer of a ChatCompletion or a Completion, whose content is a text or a list of parts: text, reasoning or a
    refusal. Raises LookupError, TypeError, ValueError or AttributeError for another format."""
    choice, usage = completion.choices[0], completion.usage
    message = getattr(choice, "message", None)
    content = choice.text if message is None else message.content or ""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    whole = "".join(part["text"] for part in parts if part["type"] in ("text", "output_text"))
    refusal = "".join(part["refusal"] for part in parts if part["type"] == "refusal")
    refusal = refusal or getattr(message, "refusal", None) or ""
    more = (getattr(message, "model_extra", None) or {}).items()  # reasoning_content, or reasoning
    reasoned = any(value for name, value in more if name.startswith("reasoning"))
    text, finish = without_reasoning(whole), choice.finish_reason or "stop"
    if refusal or finish in BLOCKED:
        text, finish = refusal, REFUSED
    elif not text and (whole.strip() or reasoned or any("text" not in part for part in parts)):
        finish = REASONING
    return Answer(
        text,
        finish,
        tries,
        prompt_tokens=usage.prompt_tokens if usage else 0,
        answer_tokens=usage.completion_tokens if usage else 0,
        model=completion.model,
    )

"""Stories for prompts: sampled from a language model (harms paper, Section 4.2, on CSG of Guan et al. 2020), or by
requests to one behind an OpenAI-compatible endpoint.

A sampled story depends on the seed and on its prompt, not on other prompts. Prompts are divided into parts, so that a
killed probe resumes with the missing ones. Neither reasoning nor a refusal counts as a story."""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import polars as pl
import torch
from torch import Tensor

from mitigate.errors import ENDS, MitigateError, counted, whole_sentences
from mitigate.models import chat_api
from mitigate.models.chat_api import Endpoint, EndpointError, conversation, without_reasoning
from mitigate.models.hf import LanguageModel
from mitigate.progress import progress
from mitigate.triples import Parts
from mitigate.words.prompts import ANSWERED, CUT, FAILED, REASONING, REFUSED

PART = 64  # prompts, of similar lengths
REQUESTS = 16  # of a part
STORY = {"story": pl.String, "outcome": pl.String}
COST = {"tries": pl.UInt32, "prompt_tokens": pl.UInt64, "answer_tokens": pl.UInt64}
ANSWER = {**STORY, **COST, "model": pl.String, "why": pl.String}
SORRY = (
    r"(?:(?:i'?m|i am|we'?re|we are)\b[^.!?]{0,20}\b(?:sorry|afraid)|(?:my )?(?:sorry|apologies)|i apologi[sz]e"
    r"|as an? (?:ai|artificial intelligence|(?:large )?language model|(?:ai |virtual )?assistant))\b[^.!?]{0,80}?"
)
UNABLE = (
    r"\b(?:(?:i|we)(?:'m| am|'re| are)? (?:can(?:'t|not| not)|won't|will not|refuse to"
    r"|(?:unable|not able|not going|not willing) to)|not something (?:that )?(?:i|we)\b)"
)
TASK = (
    r"[^.!?]{0,20}?\b(?:help (?:with|you)|assist|fulfil|comply|provide|write|create|generate|continue (?:this|that|the)"
    r"|produce|answer (?:this|that|your)|discuss|engage in|complete (?:this|that|your)|respond|participate in|promote)"
)
DECLINE = r"i(?:'m| am)? (?:not comfortable|(?:must|have to)(?: respectfully)? decline|decline to)\b"
REFUSAL = re.compile(
    rf"\W*(?:{SORRY}(?:{UNABLE}|{DECLINE})|(?:{SORRY}[.!]\s+)?(?:unfortunately\W+)?(?:{UNABLE}{TASK}|{DECLINE}))",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Sampling:
    """Settings of the sampling of stories. Temperature and top_k are those published with CSG."""

    seed: int
    temperature: float = 0.7
    top_k: int = 40  # 0: all tokens
    max_tokens: int = 100
    fewest: int = 3  # sentences, if they fit into max_tokens
    most: int = 5
    instruction: str = "{prompt}"  # the text that is given to the model

    def __post_init__(self) -> None:
        if "{prompt}" not in self.instruction:
            raise MitigateError(f"recipe: instruction={self.instruction!r} has no {{prompt}} in it")


@dataclass(frozen=True)
class Wording:
    """The form of a request: a chat, or a text to be continued."""

    prompt: str = "chat"  # chat | text
    system: str | None = None


def chances_of(prompt: str, how: Sampling) -> Tensor:
    """A prompt's own numbers in [0, 1), (max_tokens,), the same on every machine."""
    seed = int.from_bytes(hashlib.sha256(f"{how.seed}\t{prompt}".encode()).digest()[:8])
    return torch.from_numpy(np.random.default_rng(seed).random(how.max_tokens))


def is_refusal(text: str) -> bool:
    """Return whether an answer begins with a stock phrase of refusal, such as "I'm sorry, but I can't help with
    that."."""
    return REFUSAL.match(text.replace("’", "'")) is not None


def story_of(text: str, most: int, finish: str = "") -> tuple[str, str]:
    """The first whole sentences of an answer in one line, and its outcome (OUTCOMES). finish: that of an Answer."""
    answer = without_reasoning(text)
    if finish == chat_api.FAILED:
        return "", FAILED
    if finish == chat_api.REFUSED or is_refusal(answer):
        return " ".join(answer.split()), REFUSED
    if story := " ".join(whole_sentences(answer)[:most]):
        return story, ANSWERED
    is_reasoning = finish == chat_api.REASONING or (text.strip() and not answer)
    return "", REASONING if is_reasoning else CUT


@torch.inference_mode()
def sample_stories(
    generator: LanguageModel, prompts: pl.DataFrame, how: Sampling, *, parts: Parts, device: str = "cpu"
) -> pl.DataFrame:
    """The prompts (row, prompt, and any other columns) with `story`, its whole sentences, at most how.most, and
    `outcome`. Raises MitigateError for prompts too long for the model."""
    generator = generator.to(device)
    encoded = generator.encode([how.instruction.replace("{prompt}", prompt) for prompt in prompts["prompt"]])
    longest = max(map(len, encoded))
    if generator.positions is not None and longest + how.max_tokens > generator.positions:
        raise MitigateError(
            f"recipe.max_tokens={how.max_tokens} after a prompt of {longest} tokens is more than the "
            f"{generator.positions} that this model reads; set fewer, or leave out targets with long names"
        )

    def generate(places: Sequence[int]) -> pl.DataFrame:
        chosen = prompts[places]
        sampled = generator.sample(
            [encoded[place] for place in places],
            torch.stack([chances_of(prompt, how) for prompt in chosen["prompt"]]),
            temperature=how.temperature,
            top_k=how.top_k,
            sentences=(how.fewest, how.most),
            marks=ENDS,
        )
        stories = [story_of(generator.decode(tokens), how.most) for tokens in sampled]
        return pl.DataFrame(stories, STORY, orient="row")

    order = sorted(range(len(encoded)), key=lambda place: len(encoded[place]))  # less padding in batches
    return _in_parts(prompts, [order[start : start + PART] for start in range(0, len(order), PART)], generate, parts)


def ask_stories(
    prompts: pl.DataFrame, endpoint: Endpoint, wording: Wording, how: Sampling, *, parts: Parts
) -> pl.DataFrame:
    """The prompts (row, prompt, and any other columns) with the columns ANSWER; a refusal is left as the story of its
    outcome. top_k and fewest are not sent: such an endpoint has no setting for them.

    Raises MitigateError, with the finished parts saved, for a fault that repetition does not help, and where more than
    half of the requests of a part fail."""
    fields = {"max_tokens": how.max_tokens, "temperature": how.temperature, "seed": how.seed}

    def generate(places: Sequence[int]) -> pl.DataFrame:
        texts = [how.instruction.replace("{prompt}", prompt) for prompt in prompts[places]["prompt"]]
        try:
            if wording.prompt == "text":
                answers = endpoint.complete(texts, **fields)
            else:
                answers = endpoint.chat([conversation(text, wording.system) for text in texts], **fields)
        except EndpointError as error:
            raise MitigateError(
                f"{error}. Finished parts are stored; the same command resumes with the others"
            ) from error
        failed = [answer.why for answer in answers if answer.finish == chat_api.FAILED]
        if 2 * len(failed) > len(answers):
            raise MitigateError(
                f"{len(failed)} of {counted(len(answers), 'request')} to {endpoint.url} failed {endpoint.tries} times "
                f"each (the last: {failed[-1]}). Finished parts are stored; the same command resumes with the others"
            )
        facts = attrgetter(*COST, "model", "why")
        rows = [(*story_of(answer.text, how.most, answer.finish), *facts(answer)) for answer in answers]
        return pl.DataFrame(rows, ANSWER, orient="row")

    pieces = [range(start, min(start + REQUESTS, prompts.height)) for start in range(0, prompts.height, REQUESTS)]
    return _in_parts(prompts, pieces, generate, parts)


def _in_parts(
    prompts: pl.DataFrame, pieces: Sequence[Sequence[int]], make: Callable[[Sequence[int]], pl.DataFrame], parts: Parts
) -> pl.DataFrame:
    """The prompts with their stories, of which finished parts are kept. pieces: places of the prompts."""
    missing = {number: places for number, places in enumerate(pieces) if number not in parts}
    done = prompts.height - sum(map(len, missing.values()))
    with progress("probe", prompts.height, "prompts", done=done) as advance:
        for number, places in missing.items():
            parts.save(number, prompts[places].select("row").hstack(make(places)))
            advance(len(places))
    return prompts.join(pl.concat(list(parts)), on="row", how="left", maintain_order="left")

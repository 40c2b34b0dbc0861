"""Stories from a model behind an OpenAI-compatible endpoint. Requests are sent in parts, so that a killed probe resumes
with the missing ones; each part keeps its refusals, failures and counts of tokens."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.probe.stories import Sampling, story_of
from mitigate.progress import progress
from mitigate.triples import Parts
from mitigate.words.outside_text import counted
from models.chat_api import FAILED, REFUSED, Answer, Endpoint, EndpointError, conversation

PART = 16  # requests
ANSWER = {
    "finish": pl.String,
    "tries": pl.UInt32,
    "prompt_tokens": pl.UInt64,
    "answer_tokens": pl.UInt64,
    "model": pl.String,
    "why": pl.String,
}


@dataclass(frozen=True)
class Wording:
    """The form of a request: a chat, or a text to be continued."""

    prompt: str = "chat"  # chat | text
    system: str | None = None


def ask_stories(
    prompts: pl.DataFrame, endpoint: Endpoint, wording: Wording, how: Sampling, *, parts: Parts
) -> pl.DataFrame:
    """The prompts (row, prompt, and any other columns) with `story`, its first how.most whole sentences, "" where there
    is none, and the columns ANSWER. top_k and fewest are not sent: such an endpoint has no setting for them.

    Raises MitigateError, with the finished parts saved, for a fault that repetition does not help, and where more than
    half of the requests of a part fail."""
    pieces = dict(enumerate(prompts.iter_slices(PART)))
    missing = {number: piece for number, piece in pieces.items() if number not in parts}
    there = prompts.height - sum(piece.height for piece in missing.values())
    with progress("probe", prompts.height, "prompts", done=there) as advance:
        for number, piece in missing.items():
            answers = _ask(piece["prompt"].to_list(), endpoint, wording, how)
            failed = [answer.why for answer in answers if answer.finish == FAILED]
            if 2 * len(failed) > len(answers):
                raise MitigateError(
                    f"{len(failed)} of {counted(len(answers), 'request')} to {endpoint.url} failed {endpoint.tries} "
                    f"times each (the last: {failed[-1]}). {there:,} of {prompts.height:,} prompts "
                    "are stored; the same command resumes with the others"
                )
            stories = pl.Series("story", [story_of(answer.text, how.most) for answer in answers], pl.String)
            kept = pl.DataFrame([{name: asdict(answer)[name] for name in ANSWER} for answer in answers], ANSWER)
            parts.save(number, piece.select("row", stories).hstack(kept))
            there += piece.height
            advance(piece.height)
    return prompts.join(pl.concat(list(parts)), on="row", how="left", maintain_order="left")


def _ask(prompts: list[str], endpoint: Endpoint, wording: Wording, how: Sampling) -> list[Answer]:
    texts = [how.text_of(prompt) for prompt in prompts]
    fields: dict[str, Any] = {"max_tokens": how.max_tokens, "temperature": how.temperature, "seed": how.seed}
    try:
        if wording.prompt == "text":
            return endpoint.complete(texts, **fields)
        return endpoint.chat([conversation(text, wording.system) for text in texts], **fields)
    except EndpointError as error:
        raise MitigateError(f"{error}. Finished parts are stored; the same command resumes with the others") from error


def costs(stories: pl.DataFrame) -> dict[str, int]:
    """Counts of requests, retries, failures, refusals and tokens of the result of ask_stories."""
    tries, finish = stories["tries"], stories["finish"]
    return {
        "requests": int(tries.sum()),
        "retries": int(tries.sum()) - stories.height,
        "failures": int((finish == FAILED).sum()),
        "refusals": int((finish == REFUSED).sum()),
        "prompt_tokens": int(stories["prompt_tokens"].sum()),
        "answer_tokens": int(stories["answer_tokens"].sum()),
    }


def endpoint_facts(endpoint: Endpoint, wording: Wording, stories: pl.DataFrame) -> dict[str, str]:
    """The endpoint, its requests and their cost, for a run's provenance."""
    models = ", ".join(sorted({name for name in stories["model"] if name}))
    form = {"chat": "a chat", "text": "a text to be continued"}[wording.prompt]
    facts = {"asked": f"{endpoint.name} at {endpoint.url}, {form}", "answered by": models or "nothing"}
    if wording.system:
        facts["system prompt"] = wording.system
    if endpoint.body:
        facts["further fields of requests"] = ", ".join(f"{name} {value}" for name, value in endpoint.body.items())
    return facts | {"requests": in_words(costs(stories))}


def unanswered(stories: pl.DataFrame) -> list[str]:
    """A notice of requests that were refused or failed; empty for stories that no endpoint generated."""
    if "finish" not in stories.columns:
        return []
    found = costs(stories)
    refused, failed = (counted(found[name], "prompt") for name in ("refusals", "failures"))
    why = ", ".join(sorted(set(stories.filter(pl.col("finish") == FAILED)["why"])))
    notices = [f"The model refused to answer {refused} of {stories.height:,}: no story."] if found["refusals"] else []
    return notices + (
        [f"Requests about {failed} of {stories.height:,} failed ({why}): no story."] * bool(found["failures"])
    )


def in_words(found: Mapping[str, int]) -> str:
    """The counts in words."""
    return (
        f"{counted(found['requests'], 'request')}, {found['retries']:,} of them repeats; {found['failures']:,} prompts "
        f"failed, {found['refusals']:,} were refused; {found['prompt_tokens']:,} tokens in prompts, "
        f"{found['answer_tokens']:,} in answers"
    )

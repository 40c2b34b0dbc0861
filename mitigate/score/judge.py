"""A language model as a judge (Zheng et al. 2023, LLM-as-a-Judge): it reads a written rubric with a statement and
answers with one word of the rubric.

A local model's answer is the word that it finds most probable; that of an endpoint is read from its text, which must be
one of the words and nothing else. A judge that would rather write something else, or that refuses, abstains. Only a
judge with an address sends texts, and only there."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mitigate.errors import MitigateError, one_of
from mitigate.models.chat_api import FAILED, Answer, Endpoint, EndpointError, conversation
from mitigate.stages import fingerprint
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE, Labels

RUBRIC = Path(str(files("mitigate").joinpath("data/rubrics/polarity.txt")))
POLARITY = (PREJUDICE, NEUTRAL, FAVOURITISM)  # the labels of a rubric's words, in their order
SLOT, HEAD = "{statement}", "Answers:"
MOST_TOKENS = 8  # of an endpoint's answer: a word


class Rubric(NamedTuple):
    """A rubric's message, with SLOT for the statement, and the words of its answers."""

    message: str
    words: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> "Rubric":
        """Read a text file: a line "Answers: WORD, WORD, WORD", then the message. Raises MitigateError for a file
        without three words, whose message lacks one of them, or without SLOT."""
        try:
            head, _, message = path.read_text(encoding="utf-8").strip().partition("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise MitigateError(f"the rubric {path} cannot be read: {error}") from error
        words = tuple(word.strip() for word in head.removeprefix(HEAD).split(","))
        is_head = head.startswith(HEAD) and len({word.casefold() for word in words} - {""}) == len(POLARITY)
        if not is_head or any(part not in message for part in (SLOT, *words)):
            raise MitigateError(
                f"the rubric {path} begins with {head[:60]!r}; its first line must be '{HEAD}' and 3 different words, "
                f"separated by commas, and its message needs {SLOT} and each of these words"
            )
        return cls(message.strip(), words)


class Judge:
    """The scorer. Its strength is P(favouritism) - P(prejudice).

    model: a model on this machine: a folder, a name on the hub, or a GGUF file. url and name: an endpoint and its
    model, with the key in the environment variable `key`, read for each request. rubric: a text file (None: the one in
    this package). reads: "masked" or "statement". least: it abstains where the words of the rubric together have a
    smaller probability. Raises MitigateError for another `reads`, both or none of model and url, and a bad rubric."""

    name = "judge"
    piece = 64  # texts after which answers are stored: they cost time or money

    def __init__(
        self,
        model: str | Path | None = None,
        url: str | None = None,
        name: str | None = None,
        rubric: str | Path | None = None,
        reads: str = "masked",
        least: float = 0.5,
        key: str | None = "OPENAI_API_KEY",
        concurrency: int = 4,
    ) -> None:
        if reads not in ("masked", "statement"):
            raise one_of("score.scorers.judge.reads", reads, ("masked", "statement"))
        if (model is None) == (url is None):
            raise MitigateError(
                "the judge needs a model of this machine (score.judge.model=FOLDER) or an address (score.judge.url=URL "
                f"score.judge.name=NAME), and one of them only; given: model={model}, url={url}"
            )
        self._rubric = Rubric.read(RUBRIC if rubric is None else Path(rubric))
        self.reads, self.least, self.sends = reads, least, url is not None
        if url is not None:
            try:
                self._endpoint = Endpoint(url, name or "", key, concurrency)
            except EndpointError as error:
                raise MitigateError(f"score.judge.url, name, key: {error}") from error
            self.asks, identity = f"{url} ({name})", [url, name]
        else:
            from mitigate.models.hf import AnswerProbabilities  # loads transformers, which an address does without

            self._model = AnswerProbabilities(str(model))
            self.asks, identity = str(model), [self._model.sha256]
        self.fingerprint = fingerprint(self, *identity, *self._rubric, reads, least)

    def __call__(self, texts: Sequence[str]) -> Labels:
        messages = [self._rubric.message.replace(SLOT, text) for text in texts]
        probability = self._read(messages) if self.sends else self._compute(messages)
        label = np.where(probability.any(axis=1), np.array(POLARITY)[probability.argmax(axis=1)], OTHER)
        strength = probability[:, POLARITY.index(FAVOURITISM)] - probability[:, POLARITY.index(PREJUDICE)]
        return Labels(label.astype(np.int8), strength.astype(np.float32))

    def _compute(self, messages: Sequence[str]) -> np.ndarray:
        """The probabilities (n, words) that a model of this machine gives to each word, as it is and with a capital;
        zeros where it abstains."""
        words = self._rubric.words
        forms = sorted((number, form) for number, word in enumerate(words) for form in {word, word.capitalize()})
        try:
            of_forms = self._model.probabilities(messages, [form for _, form in forms])
        except ValueError as error:
            raise MitigateError(f"the judge {self.asks}: {error}") from error
        of_word = np.array([number for number, _ in forms])
        of_words = np.stack([of_forms[:, of_word == number].sum(axis=1) for number in range(len(words))], axis=1)
        return np.where(of_words.sum(axis=1, keepdims=True) < self.least, 0, of_words)

    def _read(self, messages: Sequence[str]) -> np.ndarray:
        """The same for an endpoint: 1 for the word that it answered. Raises MitigateError where a message got no answer
        after several tries."""
        try:
            answers = self._endpoint.chat(
                [conversation(message) for message in messages], max_tokens=MOST_TOKENS, temperature=0
            )
        except EndpointError as error:
            raise MitigateError(f"the judge: {error}") from error
        if failed := [answer for answer in answers if answer.finish == FAILED]:
            raise MitigateError(
                f"the judge {self.asks} did not answer {len(failed)} of {len(answers)} requests ({failed[0].why}); run "
                "the same command again: answers so far are cached"
            )
        rows = [word_probabilities(answer, self._rubric.words) for answer in answers]
        return np.array(rows).reshape(-1, len(self._rubric.words))


def word_probabilities(answer: Answer, words: Sequence[str]) -> list[float]:
    """1 for a word that is the whole answer but for case, quotes and a full stop, else 0."""
    given = answer.text.strip(" \n\t\"'“”*.").casefold()
    return [float(given == word.casefold()) for word in words]

"""A language model as a judge (Zheng et al. 2023, LLM-as-a-Judge): it reads a written rubric with a statement and
answers with one word of the rubric.

A local model's answer is the word that it finds most probable; that of an endpoint is read from its text, which must be
one of the words and nothing else. A judge that would rather write
something else, or that refuses, abstains. Only a judge with an address sends texts, and only there."""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from mitigate.errors import MitigateError, one_of
from mitigate.score.labels import SEPARATOR
from mitigate.score.precision import native_dtype
from mitigate.stages import fingerprint
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE, Labels
from mitigate.words.relations import relations
from models.chat_api import FAILED, Answer, Endpoint, EndpointError, conversation
from models.chat_api import REFUSED as BLOCKED

RUBRICS = {
    "polarity": Path(str(files("mitigate").joinpath("data/rubrics/polarity.txt"))),
    "valid": Path(str(files("mitigate").joinpath("data/rubrics/valid.txt"))),
}
POLARITY = (PREJUDICE, NEUTRAL, FAVOURITISM)
"""The labels of the words of a rubric of polarity, in their order; one of validity has words for invalid and valid."""
SLOT, HEAD = "{statement}", "Answers:"
READS = ("masked", "statement")
REFUSED, BROKEN = "refused", "broken"
REFUSAL = re.compile(r"\b(?:sorry|cannot|can['’]t|won['’]t|unable|not able|not comfortable|refuse|decline)\b", re.I)
MOST_TOKENS = 8  # of an endpoint's answer: a word


class Rubric(NamedTuple):
    """A rubric's message, with SLOT for the statement, and the words of its answers."""

    message: str
    words: tuple[str, ...]

    @classmethod
    def read(cls, path: Path, answers: int) -> "Rubric":
        """Read a text file: a line "Answers: WORD, WORD", then the message. Raises MitigateError for a file without so
        many words, whose message lacks one of them, or without SLOT."""
        try:
            head, _, message = path.read_text(encoding="utf-8").strip().partition("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise MitigateError(f"the rubric {path} cannot be read: {error}") from error
        words = tuple(word.strip() for word in head.removeprefix(HEAD).split(","))
        if not head.startswith(HEAD) or len({word.casefold() for word in words}) != answers or not all(words):
            raise MitigateError(
                f"the rubric {path} begins with {head[:60]!r}; its first line must be '{HEAD}' and {answers} different "
                "words, separated by commas"
            )
        if lacking := [part for part in (SLOT, *words) if part not in message]:
            raise MitigateError(
                f"the message of the rubric {path} lacks {lacking[0]!r}; it needs {SLOT} and each answer"
            )
        return cls(message.strip(), words)

    def about(self, statement: str) -> str:
        """The message about a statement."""
        return self.message.replace(SLOT, statement)


class Answered(NamedTuple):
    """Answers to n messages."""

    probabilities: np.ndarray  # (n, words): that the answer is the word; what is left is any other answer
    texts: list[str | None]  # what was answered in place of a word; None where that is not known
    refused: np.ndarray  # (n,) bool


class Model(Protocol):
    """A language model that answers messages."""

    place: str  # the model, or its address
    identity: tuple[Any, ...]  # what its answers depend on

    def answers(self, messages: Sequence[str], words: Sequence[str]) -> Answered: ...


class LocalModel:
    """A causal language model of a folder, of the hub, or of a GGUF file."""

    def __init__(self, model: str | Path) -> None:
        from models import hub
        from models.hf import AnswerProbabilities  # loads transformers: five seconds, for this scorer alone

        folder, dtype = hub.locate(str(model), seq2seq=False), native_dtype()
        self.place = str(model)
        self._model = AnswerProbabilities(folder, dtype)
        self.identity = (self._model.sha256, str(dtype))

    def answers(self, messages: Sequence[str], words: Sequence[str]) -> Answered:
        """The probabilities of each word, as it is and with a capital."""
        forms = sorted((number, form) for number, word in enumerate(words) for form in {word, word.capitalize()})
        try:
            found = self._model.probabilities(messages, [form for _, form in forms])
        except ValueError as error:
            raise MitigateError(f"the judge {self.place}: {error}") from error
        of_word = np.array([number for number, _ in forms])
        columns = [found[:, of_word == number].sum(axis=1) for number in range(len(words))]
        return Answered(np.stack(columns, axis=1), [None] * len(messages), np.zeros(len(messages), dtype=bool))


class EndpointModel:
    """A model behind an OpenAI-compatible endpoint. The key is read from the environment for each request."""

    def __init__(self, url: str, name: str | None, key: str | None, concurrency: int) -> None:
        try:
            self._endpoint = Endpoint(url, name or "", key, concurrency)
        except EndpointError as error:
            raise MitigateError(f"score.judge.url, name, key: {error}") from error
        self.place = f"{url} ({name})"
        self.identity = (url, name)

    def answers(self, messages: Sequence[str], words: Sequence[str]) -> Answered:
        """Ask about each message. Raises MitigateError where one got no answer after several tries, so that none is
        stored for it."""
        try:
            found = self._endpoint.chat(
                [conversation(message) for message in messages], max_tokens=MOST_TOKENS, temperature=0
            )
        except EndpointError as error:
            raise MitigateError(f"the judge: {error}") from error
        if failed := [answer for answer in found if answer.finish == FAILED]:
            raise MitigateError(
                f"the judge {self.place} did not answer {len(failed)} of {len(found)} requests ({failed[0].why}); run "
                "the same command again: answers so far are cached"
            )
        return Answered(
            np.array([word_probabilities(answer, words) for answer in found]).reshape(-1, len(words)),
            [answer.text for answer in found],
            np.array([answer.finish == BLOCKED or bool(REFUSAL.search(answer.text)) for answer in found], dtype=bool),
        )


def word_probabilities(answer: Answer, words: Sequence[str]) -> list[float]:
    """1 for a word that is the whole answer but for case, quotes and a full stop, else 0."""
    given = answer.text.strip(" \n\t\"'“”*.").casefold()
    return [float(given == word.casefold()) for word in words]


class Judge:
    """The scorer. Its strength is P(favouritism) - P(prejudice).

    model: of this machine; url and name: an endpoint and its model, with the key in the environment's variable `key`.
    rubric: a text file (None: the one in this package). reads: "masked" or "statement". least: the probability that the
    words of the rubric have together, below which it abstains. failures: the folder of files
    with the texts on which judges abstained."""

    name = "judge"
    rubric, num_words = "polarity", 3
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
        failures: str | Path | None = None,
    ) -> None:
        if reads not in READS:
            raise one_of("score.scorers.judge.reads", reads, READS)
        if (model is None) == (url is None):
            raise MitigateError(
                "the judge needs a model of this machine (score.judge.model=FOLDER) or an address (score.judge.url=URL "
                f"score.judge.name=NAME), and one of them only; found model={model}, url={url}"
            )
        self._rubric = Rubric.read(RUBRICS[self.rubric] if rubric is None else Path(rubric), self.num_words)
        self.model: Model
        if url is not None:
            self.model = EndpointModel(url, name, key, concurrency)
        else:
            assert model is not None
            self.model = LocalModel(model)
        self.reads, self.least = reads, least
        self.fingerprint = fingerprint(self, *self.model.identity, *self._rubric, reads, least)
        self._failures = None if failures is None else Path(failures) / f"{self.fingerprint[:16]}.jsonl"

    @property
    def asks(self) -> str:
        """The model or the address that gets each text."""
        return self.model.place

    @property
    def sends(self) -> bool:
        """Return whether texts are sent to an address."""
        return isinstance(self.model, EndpointModel)

    def __call__(self, texts: Sequence[str]) -> Labels:
        found, answered = self.probabilities(texts, texts)
        label = np.where(answered, np.array(POLARITY)[found.argmax(axis=1)], OTHER)
        strength = found[:, POLARITY.index(FAVOURITISM)] - found[:, POLARITY.index(PREJUDICE)]
        return Labels(label.astype(np.int8), strength.astype(np.float32))

    def words(self, text: str) -> list[tuple[str, float]]:
        """No words: to find those that count, the judge would have to read each text once for each of its words."""
        return []

    def probabilities(self, texts: Sequence[str], statements: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """The probabilities (n, words) of the rubric's words for the statements of n texts, and whether each is
        answered by one (n,). Other texts are noted as failures."""
        found = self.model.answers([self._rubric.about(statement) for statement in statements], self._rubric.words)
        answered = found.probabilities.sum(axis=1) >= self.least
        rows = [
            {"text": texts[at], "why": REFUSED if found.refused[at] else BROKEN, "answer": found.texts[at]}
            for at in np.flatnonzero(~answered).tolist()
        ]
        if rows and self._failures is not None:
            self._failures.parent.mkdir(parents=True, exist_ok=True)
            with self._failures.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
        return found.probabilities, answered

    def failures(self, texts: Sequence[str]) -> dict[str, int]:
        """Count the texts that were refused, and those with a broken answer, by the file of failures."""
        why: dict[str, str] = {}
        if self._failures is not None and self._failures.is_file():
            for line in self._failures.read_text(encoding="utf-8").splitlines():
                with suppress(ValueError):  # a kill cuts a line
                    why |= {(row := json.loads(line))["text"]: row["why"]}
        found = [why[text] for text in dict.fromkeys(texts) if text in why]
        return {kind: found.count(kind) for kind in (REFUSED, BROKEN)}


class ValidJudge(Judge):
    """The judge as a plausibility classifier, of texts "head<TAB>relation<TAB>tail": 1 for valid, 0 for not valid or
    without an answer, and P(valid). folder: the model of this machine; more: as those of Judge."""

    name = "plausibility"
    rubric, num_words = "valid", 2

    def __init__(self, folder: str | Path | None = None, **more: Any) -> None:
        super().__init__(folder, **more)

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations whose phrases it can read."""
        return tuple(relations())

    def __call__(self, texts: Sequence[str]) -> Labels:
        parts = [text.split(SEPARATOR) for text in texts]
        statements = [f"{head} {relations()[relation].phrase} {tail}" for head, relation, tail in parts]
        found, answered = self.probabilities(texts, statements)
        valid, invalid = found[:, 1], found[:, 0]
        return Labels((answered & (valid > invalid)).astype(np.int8), valid.astype(np.float32))

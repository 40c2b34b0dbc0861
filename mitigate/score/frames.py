"""The frames scorer: offensiveness of a statement to a group it names, by a model of `recipe=frames`, with the implied
statement as the explanation.

It reads the statement itself and not the masked one, since a stereotype needs its group."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy import special

from mitigate.errors import MitigateError
from mitigate.models.form import CHOICES, YES, fill_in, open_form
from mitigate.score.base import digest_of_folder
from mitigate.stages import fingerprint
from mitigate.triples import NEUTRAL, OTHER, PREJUDICE, Labels

FILE = "scorer.json"  # in the run folder: the name of the model that labels, and its calibration


class Frames:
    """The scorer: prejudice where the calibrated probability that a statement offends a group is above .5, neutral
    below; OTHER within `unsure` of .5. Its strength is minus the probability.

    run: a finished run of recipe=frames. unsure: half the width of the band around .5 in which it abstains."""

    name = "frames"
    reads = "statement"

    def __init__(self, run: str | Path | None, unsure: float = 0.1) -> None:
        path = None if run is None else Path(run) / FILE
        if path is None or not path.is_file():
            raise MitigateError(
                f"score.frames.run={run} has no {FILE}; set it to the folder of a finished run of recipe=frames. To "
                "train one, run `python -m mitigate recipe=frames data.root=DIR`"
            )
        facts = json.loads(path.read_text(encoding="utf-8"))
        folder = path.parent / facts["model"]
        self.form, self.network = open_form(folder)
        self.calibration = facts["scale"], facts["shift"]
        self.otherwise = facts["otherwise"]
        self.unsure = unsure
        self.fingerprint = fingerprint(self, digest_of_folder(folder), *self.calibration, self.otherwise, unsure)

    def __call__(self, texts: Sequence[str]) -> Labels:
        probability = self.probabilities(texts)
        label = np.where(probability > 0.5, PREJUDICE, NEUTRAL)
        label[np.abs(probability - 0.5) < self.unsure] = OTHER
        return Labels(label.astype(np.int8), (-probability).astype(np.float32))

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """The calibrated probabilities (n,) that a text is offensive and targets a group."""
        positive = np.exp(fill_in(self.form, self.network, texts, choices_only=True).log_probs[:, :, YES])
        offensive, targeted = (positive[:, CHOICES.index(name)] for name in ("offensive", "targeted"))
        scale, shift = self.calibration
        return special.expit(scale * log_odds(offensive, targeted, self.otherwise) + shift)

    def explain(self, texts: Sequence[str]) -> list[str]:
        """The implication of each text about a group, given that it targets one: "women: women are less qualified"."""
        filled = fill_in(self.form, self.network, texts, always=True)
        return [": ".join(filter(None, parts)) for parts in filled.texts]


def log_odds(offensive: np.ndarray, targeted: np.ndarray, otherwise: float) -> np.ndarray:
    """The log odds (n,) that a text is offensive and targets a group, before calibration, from the probabilities of
    both; NaN: not decided. otherwise: the probability of a group in texts that are not offensive."""
    product = np.nan_to_num(offensive, nan=1.0) * np.nan_to_num(targeted, nan=otherwise)
    return special.logit(np.clip(product, 1e-6, 1 - 1e-6))

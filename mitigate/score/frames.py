"""The frames scorer: offensiveness of a statement to a group it names, by a model of `recipe=frames`, with the implied
statement as the explanation.

It reads the statement itself and not the masked one, since a stereotype needs its group. It has learnt from the same
posts as `crowd`, so that neither can assess the other."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy import special

from mitigate.errors import MitigateError
from mitigate.score.precision import digest_of_folder
from mitigate.stages import fingerprint
from mitigate.triples import NEUTRAL, OTHER, PREJUDICE, Labels
from models.form import YES, Filled, Form, fill_in

FILE = "scorer.json"
"""The file in the run folder with the name of the model that labels and its calibration."""


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
        self.form = Form.load(folder)
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
        filled = fill_in(self.form, self.form.read(list(texts)), choices_only=True)
        scale, shift = self.calibration
        return special.expit(scale * log_odds(self.form, filled, self.otherwise) + shift)

    def explain(self, texts: Sequence[str]) -> list[str]:
        """The implication of each text about a group, given that it targets one: "women: women are less qualified"."""
        filled = fill_in(self.form, self.form.read(list(texts)), always=True)
        return [": ".join(filter(None, map(self.form.encoding.decode, one.texts))) for one in filled]


def log_odds(form: Form, filled: Sequence[Filled], otherwise: float) -> np.ndarray:
    """The log odds (n,) that a text is offensive and targets a group, before calibration. otherwise: the probability of
    a group in forms without one, since they are not offensive."""
    names = list(form.ids)
    pairs = np.stack([one.log_probs[[names.index("offensive"), names.index("targeted")], YES] for one in filled])
    offensive, targeted = np.exp(pairs).T
    return logit(np.nan_to_num(offensive, nan=1.0) * np.where(np.isnan(targeted), otherwise, targeted))


def logit(probability: np.ndarray) -> np.ndarray:
    """log(p / (1 - p)), with p clipped to a millionth from 0 and 1."""
    return special.logit(np.clip(probability, 1e-6, 1 - 1e-6))

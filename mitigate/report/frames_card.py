"""The model card of a frames model."""

from collections.abc import Mapping
from pathlib import Path

from mitigate.report.frames import TEXT_FIGURES, Results, measured, with_interval
from mitigate.report.markdown import environment
from mitigate.words.frames import NAMES
from mitigate.words.texts import portable

STARTS = {"minilm": "sentence-transformers/all-MiniLM-L6-v2", "model": "a GPT-1 or GPT-2 given by the user"}


def render(results: Results, start: str, seed: int, needs: Mapping[str, str]) -> str:
    """The card as Markdown with the hub's front matter. needs: of the command (arguments.inputs)."""
    template = environment(Path(__file__).parent).get_template("frames_card.md.jinja")
    return template.render(
        report=results,
        metrics=results.metrics,
        start=STARTS[start],
        base_model=STARTS[start] if start == "minilm" else None,  # the hub takes names of its models alone
        seed=seed,
        command=portable(results.command),
        needs=needs,
        names=NAMES,
        measured=measured(results.classified),
        texts=results.texts.rows(named=True),
        text_figures=TEXT_FIGURES,
        with_interval=with_interval,
    )

"""The results of recipe=stories for readers: the page, plots and tables, the stories and their sentences as files that
other recipes read, and the card of a generator that was trained."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.files import write
from mitigate.measure.stories import STORY, shares
from mitigate.measure.tally import tally
from mitigate.probe.chat_stories import unanswered
from mitigate.report import audit_tables
from mitigate.report.html import save
from mitigate.report.stories import Stories, prompts, render, render_card
from mitigate.tasks.labelled_statements import Measurement
from mitigate.tasks.labelled_statements import export as export_statements
from mitigate.tasks.stories.generation import export
from mitigate.tasks.stories.measures import notices
from mitigate.words.outside_text import portable


def write_report(
    metrics: Mapping[str, Any],
    stories: pl.DataFrame,
    sentences: pl.DataFrame,
    how: Measurement,
    ledger: pl.DataFrame | None,
    templates: pl.DataFrame | None,
    left_out: Sequence[str],
    *,
    generator: str,
    fewest: int,
    sampled: bool,
    card: Mapping[str, Any],
    folder: Path,
    needs: Mapping[str, str],
    about: Mapping[str, Any],
    **fields: Any,
) -> dict[str, Any]:
    """Write the page, its tables and pictures, statements.tsv, stories.txt, and with a ledger the model's card.
    templates: what compare_within_templates returns, if prompts share templates.
    fields: further ones of Audit. Returns the first sentence of the page, and its notices."""
    labels = how.wordings
    limits = notices(metrics, sentences, how, fewest=fewest, sampled=sampled)
    per_story = shares(sentences, STORY, list(labels))
    per_story = per_story.join(stories.select("row", "target", "story"), on=["row", "target"])
    page = Stories(
        title=f"the stories of {generator}",
        metrics=metrics,
        labellings=labels,
        targets=how.tables(tally(sentences, list(labels))),
        statements=sentences,
        notices=[*unanswered(stories), *left_out, *limits],
        generator=generator,
        per_story=per_story,
        templates=templates,
        **fields,
        **about,
    )
    write(folder / "stories.html", render(page))
    write(folder / "statements.tsv", export_statements(sentences))
    write(folder / "stories.txt", export(stories))
    frames = {
        "targets": how.target_list.table(how.targets),
        "measures": audit_tables.measures(metrics, list(labels.values())),
        **{f"targets_{column}": frame for column, frame in page.targets.items()},
        "stories": per_story,
        "prompts": prompts(per_story, list(labels)),
    }
    if templates is not None:
        frames["within_templates"] = templates
    save(folder, frames, page.pictures, latex=False)
    if ledger is not None:
        content = render_card(
            about["name"],
            command=portable(about["command"]),
            needs=needs,
            ledger=ledger,
            metrics=metrics,
            targets=how.targets["target"].to_list(),
            verdict=page.verdict,
            **card,
        )
        write(folder / "model" / "README.md", content)
    return {"verdict": page.verdict, "notices": list(page.notices)}

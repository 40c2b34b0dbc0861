"""Stories as labelled sentences, and as a file."""

import polars as pl

from mitigate.errors import MitigateError
from mitigate.load.stories import BETWEEN
from mitigate.probe.chat_stories import ANSWER
from mitigate.tasks.label import Labeller
from mitigate.words.outside_text import whole_sentences


def label_sentences(stories: pl.DataFrame, labeller: Labeller, *, most: int) -> pl.DataFrame:
    """Mask and label the first `most` sentences of each story.

    stories: prompts with `story`, as generate_stories returns. Raises MitigateError where none has a whole sentence."""
    found = sentences(stories, most)
    if found.is_empty():
        raise MitigateError(
            f"none of the {stories.height:,} stories has a whole sentence, so nothing can be measured; allow "
            "longer ones with recipe.max_tokens, or take another model"
        )
    return labeller.label(found).sort("row", maintain_order=True)


def sentences(stories: pl.DataFrame, most: int) -> pl.DataFrame:
    """The first `most` whole sentences of each story, a row each: its columns, with `sentence`, from 1, and
    `statement`, the sentence. A story without one has no row."""
    whole = pl.col("story").map_elements(lambda story: whole_sentences(story)[:most], return_dtype=pl.List(pl.String))
    found = stories.with_columns(statement=whole).filter(pl.col("statement").list.len() > 0)
    found = found.drop("story", *ANSWER, strict=False)
    return found.explode("statement").with_columns(sentence=pl.int_range(1, pl.len() + 1).over("row", "target"))


def export(stories: pl.DataFrame) -> str:
    """Write the stories as lines `prompt|||story`, as recipe=stories reads them with data=stories."""
    one_line = [pl.col(name).str.replace_all(r"\s+", " ") for name in ("prompt", "story")]
    rows = stories.filter(pl.col("story") != "").unique("row", keep="first", maintain_order=True)
    return "".join(f"{line}\n" for line in rows.select(pl.concat_str(one_line, separator=BETWEEN)).to_series())


def as_read(stories: pl.DataFrame) -> pl.DataFrame:
    """Return the stories of a file unchanged: prompts (words.prompts.PROMPTS) with `story`."""
    return stories

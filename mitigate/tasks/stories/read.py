"""Stories of a file, in place of those of a generator."""

import polars as pl


def as_read(stories: pl.DataFrame) -> pl.DataFrame:
    """The stories as they are: prompts (prompts.PROMPTS) with `story`."""
    return stories

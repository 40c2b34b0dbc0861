"""A test by common words of whether texts are English: scorers know English only, and "die" is a German article."""

import polars as pl

LOOKED_AT = 1000  # texts
FEW = 0.05  # share of other texts that needs no notice
SHOWN = 60  # characters of a text in the notice
ENGLISH = (
    "the an of and to in is are was were be been it its that this these he she they his her their with for on at by "
    "from not have has had does did you your we our who which or but if can will would what when there than so because"
)
OTHERS = (
    "der das und ist nicht ein eine sie den dem mit sind wir ich le les une est et du qui pas dans sont je nous el los "
    "las una es por para del muy il lo gli di che non per della sono um uma não em são het een van niet och att är nie"
)


def not_english(texts: pl.Series) -> list[str]:
    """A notice where more than a few of the first texts have more common words of other languages than of English, or
    are mostly in another script."""
    first = texts.drop_nulls().head(LOOKED_AT).alias("text").to_frame()
    lower, text = pl.col("text").str.to_lowercase(), pl.col("text")
    english, others = (lower.str.count_matches(rf"\b(?:{words.replace(' ', '|')})\b") for words in (ENGLISH, OTHERS))
    other_script = text.str.count_matches(r"\p{L}") > 2 * text.str.count_matches(r"\p{Latin}")
    found = first.filter((others > english) | other_script)["text"]
    if len(found) <= FEW * first.height:
        return []
    return [
        f"{len(found):,} of the first {first.height:,} texts do not look English, such as {found[0][:SHOWN]!r}. The "
        "scorers know English only; leave such texts out."
    ]

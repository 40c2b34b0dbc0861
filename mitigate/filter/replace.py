"""Replacement of polarised tails by others for the same head and relation, so that each prompt is trained as often as
before. The policy's scorers are the critic of critic filtering (West et al. 2022, Symbolic Knowledge Distillation):
there, triples that the critic rejects are dropped; here, they are replaced.

Independent of the generator: generated tails are an argument, with their labels. Training by preference uses the same
pairs of tails and drops neither."""

import numpy as np
import polars as pl

from mitigate.triples import valid_rows

DRAWN = "drawn at random"
PROMPT = ("head", "relation")
LOTS = ("split", "relation")  # the control draws the same number within each
TRAINING, GENERATOR = "training", "generator"
REACHED, IS_NEUTRAL = pl.col("reached"), pl.col("found") == ""


def replace_tails(rows: pl.DataFrame, generated: pl.DataFrame | None, seed: int) -> pl.DataFrame:
    """The rows, the reached ones with weight 0, and after them one for each reached training triple whose prompt has
    another tail: that of a neutral training triple, else a neutral one of `generated`, the likeliest first. The tails
    of a prompt take turns, so that each stands in as often; those of training triples in an order drawn by seed.

    An added row has the replaced one as `source_row`, its tail as `old_tail`, and `tail_source`, "training" or
    "generator"; the reason of both ends with ", replaced". rows: with `found`, `in_scope` and `reached`. generated:
    tails that may be trained on, with their labels (head, relation, tail, rank, found)."""
    rows, generated = _with_lots(rows, generated, seed)
    return _ledger(rows, generated, rows.filter(REACHED)["place"], _neutral_pairs(rows, generated))


def replace_at_random(rows: pl.DataFrame, generated: pl.DataFrame | None, seed: int) -> pl.DataFrame:
    """The control of `replace_tails`. By seed it draws as many triples of each relation, of those in the scope, and
    gives as many of them another tail of a training triple or of `generated`, neutral or not. Where too few of those
    drawn have a generated tail, more are dropped."""
    rows, generated = _with_lots(rows, generated, seed)
    pairs, rest = _random_pairs(rows, generated)
    of_generator = _neutral_pairs(rows, generated).filter(tail_source=GENERATOR)
    found = _pairs(_training(rows[rest]), generated, GENERATOR)
    drawn = pl.concat([pairs["taker"], rest])
    pairs = pl.concat([pairs, _as_many(rows, found, of_generator)])
    reason = pl.when(_is_in(drawn)).then(pl.lit(DRAWN)).otherwise(pl.lit("kept"))
    return _ledger(rows.with_columns(reason=reason), generated, drawn, pairs)


def preferred(rows: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Pairs (head, relation, chosen, rejected) for each reached training triple whose prompt has another, neutral tail
    among the training triples. The neutral tails of a prompt take turns, in an order drawn by seed."""
    rows, nothing = _with_lots(rows, None, seed)
    pairs = _neutral_pairs(rows, nothing)
    taken, lent = rows[pairs["taker"]], rows[pairs["lender"]]
    return taken.select(*PROMPT, chosen=lent["tail"], rejected="tail")


def lacking(rows: pl.DataFrame, seed: int, *, at_random: bool) -> pl.DataFrame:
    """The prompts (head, relation) of the training triples that are to be replaced and that training triples have no
    tail for; with at_random also of those that the control draws."""
    rows, generated = _with_lots(rows, None, seed)
    left = [_without(_training(rows.filter(REACHED)), _neutral_pairs(rows, generated))]
    if at_random:
        left.append(_training(rows[_random_pairs(rows, generated)[1]]))
    return pl.concat([part.select(PROMPT) for part in left]).unique(maintain_order=True)


def _with_lots(rows: pl.DataFrame, generated: pl.DataFrame | None, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Both tables with `place`, the number of a row, and `lot`, its order: drawn at random, or the rank."""
    lots = pl.Series(np.random.default_rng(seed).permutation(rows.height), dtype=pl.Int64)
    rows = rows.with_row_index("place").with_columns(lot=lots)
    if generated is None:
        return rows, rows.clear()
    return rows, generated.with_row_index("place").with_columns(lot=pl.col("rank").cast(pl.Int64))


def _neutral_pairs(rows: pl.DataFrame, generated: pl.DataFrame) -> pl.DataFrame:
    """The pairs of `replace_tails`."""
    takers = _training(rows.filter(REACHED))
    pairs = _pairs(takers, _training(rows.filter(IS_NEUTRAL)), TRAINING)
    return pl.concat([pairs, _pairs(_without(takers, pairs), generated.filter(IS_NEUTRAL), GENERATOR)])


def _random_pairs(rows: pl.DataFrame, generated: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series]:
    """The pairs of the control: the number of triples to which `replace_tails` gives another training triple's tail,
    drawn from those in the scope; and the places of as many others as are reached besides."""
    reached, pool = rows.filter(REACHED), rows.filter("in_scope")
    wanted = _neutral_pairs(rows, generated).filter(tail_source=TRAINING)
    pairs = _as_many(rows, _pairs(_training(pool), _training(rows), TRAINING), wanted)
    left, besides = (part.select(taker="place") for part in (_without(pool, pairs), _without(reached, wanted)))
    rest = _as_many(rows, left, besides)
    return pairs, rest["taker"]


def _pairs(takers: pl.DataFrame, lenders: pl.DataFrame, source: str) -> pl.DataFrame:
    """The place of each taker whose prompt has another tail among the lenders, and that of the lender (taker, lender,
    tail_source). A prompt's lenders take turns by their lots; of a taker that is one of them those after it."""
    tails = lenders.unique([*PROMPT, "tail"], keep="first", maintain_order=True)
    tails = tails.select(*PROMPT, "tail", lender="place", turn=_turn())
    numbers = tails.group_by(PROMPT).agg(number=pl.len().cast(pl.Int64))
    own = tails.select(*PROMPT, "tail", own="turn")
    joined = takers.join(numbers, on=PROMPT, maintain_order="left")
    joined = joined.join(own, on=[*PROMPT, "tail"], how="left", maintain_order="left")
    others = pl.col("number") - pl.col("own").is_not_null().cast(pl.Int64)
    turn = (pl.col("own").fill_null(-1) + 1 + _turn() % others) % pl.col("number")
    turns = joined.filter(others > 0).select(*PROMPT, taker="place", turn=turn)
    found = turns.join(tails, on=[*PROMPT, "turn"], maintain_order="left")
    return found.select("taker", "lender", tail_source=pl.lit(source))


def _as_many(rows: pl.DataFrame, pairs: pl.DataFrame, wanted: pl.DataFrame) -> pl.DataFrame:
    """The pairs with the lowest lots of their takers, as many of each split and relation as are wanted."""
    numbers = rows[wanted["taker"]].group_by(LOTS).agg(number=pl.len())
    known = pl.concat([pairs, rows[pairs["taker"]].select(*LOTS, "lot")], how="horizontal")
    is_drawn = pl.col("lot").rank("ordinal").over(LOTS) <= pl.col("number")
    return known.join(numbers, on=LOTS, maintain_order="left").filter(is_drawn).select(pairs.columns)


def _ledger(rows: pl.DataFrame, generated: pl.DataFrame, dropped: pl.Series, pairs: pl.DataFrame) -> pl.DataFrame:
    """The rows, those dropped with weight 0, and for each pair the lender as a triple that the policy adds."""
    reason = pl.when(_is_in(pairs["taker"])).then(pl.col("reason") + ", replaced").otherwise("reason")
    nothing = pl.lit(None, pl.String)
    rows = rows.with_columns(weight=(~_is_in(dropped)).cast(pl.Float64), reason=reason)
    rows = rows.with_columns(old_tail=nothing, tail_source=nothing)
    added = []
    for source, lenders in ((TRAINING, rows), (GENERATOR, generated)):
        of = pairs.filter(tail_source=source)
        old = rows[of["taker"]].select("split", "reason", source_row=pl.col("row").cast(pl.UInt32), old_tail="tail")
        new = lenders[of["lender"]].drop([*old.columns, "row", "weight", "tail_source"], strict=False)
        made = pl.concat([new, old, of.select("tail_source")], how="horizontal")
        added.append(made.with_columns(weight=pl.lit(1.0), valid=pl.lit(True)))
    ledger = pl.concat([rows, *added], how="diagonal")
    return ledger.select(name for name in rows.columns if name not in ("place", "lot"))


def _training(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows that are trained on."""
    return valid_rows(rows.filter(split="train"))


def _without(rows: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(~_is_in(pairs["taker"]))


def _is_in(places: pl.Series) -> pl.Expr:
    return pl.col("place").is_in(places.implode())


def _turn() -> pl.Expr:
    return (pl.col("lot").rank("ordinal").cast(pl.Int64) - 1).over(PROMPT)


def drop_at_random(rows: pl.DataFrame, reached: pl.Expr, in_scope: pl.Expr, seed: int) -> pl.DataFrame:
    """The rows with `weight` 0 and the reason DRAWN for as many of each split and relation as are reached, drawn by
    seed from those in the scope, polarised or not; the others with weight 1 and the reason "kept"."""
    lots = pl.Series(np.random.default_rng(seed).permutation(rows.height))
    drawn = rows.with_columns(_scope=in_scope, _lot=lots, _many=reached.sum().over(LOTS))
    place = pl.when("_scope").then("_lot").rank("ordinal").over(LOTS)  # null outside the scope
    is_drawn = (place <= pl.col("_many")).fill_null(False)
    return drawn.with_columns(
        weight=(~is_drawn).cast(pl.Float64), reason=pl.when(is_drawn).then(pl.lit(DRAWN)).otherwise(pl.lit("kept"))
    ).drop("_scope", "_lot", "_many")

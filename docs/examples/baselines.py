"""Files of tails of two generators that know nothing of a head, for what a run was asked:
python baselines.py outputs/RUN writes echo.tsv and constants.tsv."""

import sys
from pathlib import Path

import polars as pl

from mitigate.measure.lift import constant_tails, echo_tails

run = Path(sys.argv[1])
asked = pl.concat(
    [pl.read_parquet(run / f"{name}.parquet").select("target", "relation") for name in ("probe", "heads")]
)
tails = {
    "echo": echo_tails(asked.rename({"target": "head"})),
    "constants": constant_tails(pl.read_parquet(run / "score.parquet")),
}
for name, table in tails.items():
    table.write_csv(f"{name}.tsv", separator="\t", quote_style="never")
    print(f"{name}.tsv: {table.height:,} rows")

"""The data of the task swap_lift: for each test triple the prompts of its own head and of four other heads of the same
relation, which have no triple with this tail. python swap_lift_data.py [TRIPLES.csv] > swap_lift.jsonl"""

import json
import sys

import polars as pl

import mitigate
from mitigate.measure.swap_lift import OTHERS, other_heads
from mitigate.words.relations import relations

triples = mitigate.read_triples(sys.argv[1]) if len(sys.argv) > 1 else mitigate.sample_triples()
valid = triples.filter(pl.col("valid"), pl.col("relation").is_in(list(relations())))
test = valid.filter(split="test") if "test" in valid["split"] else valid
prompts = test.select("head", "relation", group=pl.lit("test")).unique(maintain_order=True)
others = other_heads(prompts).group_by("head", "relation", maintain_order=True).agg("other")
known = set(valid.select("head", "relation", "tail").iter_rows())
rows = test.join(others, on=["head", "relation"], maintain_order="left").select("head", "relation", "tail", "other")
for number, (head, relation, tail, heads) in enumerate(rows.iter_rows()):
    if any((other, relation, tail) in known for other in heads):
        continue
    own = number % (OTHERS + 1)  # of equal likelihoods the harness takes the first
    named = [*heads[:own], head, *heads[own:]]
    begun = [f"{one} {relations()[relation].phrase}" for one in named]
    print(json.dumps({"prompts": begun, "own": own, "tail": tail, "relation": relation}))

"""The screening and the test of benchmarks/plan3.md: trains the models of each seed, generates a pool of tails for each
prompt, and measures all decodings of a model on it. It goes on where it stopped.

    python benchmarks/plan3.py readers --data DIR --lm LM --work FOLDER    fits the readers, once (minutes)
    python benchmarks/plan3.py run --data DIR --lm LM --work FOLDER [--hours H] [--part test|replication] [-- more]
    python benchmarks/plan3.py table                                       the screening as Markdown

LM: the folder of the converted SmolLM2 that smollm.py of version 0.2.0 (commit 368c7b80) prints. A finished model is a
row of plan3.csv for each of its decodings, written at once; a killed run resumes from the model's checkpoints and the
pool's parts, in FOLDER."""

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any
from zlib import crc32

import numpy as np
import polars as pl
from hydra import compose, initialize_config_dir

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.corrected import half_of
from benchmarks.experiment_plan import HEADS, RELATIONS2, ROOT, third_of
from benchmarks.experiment_row import GROUPS, SHARE, heads, pack, professions, unpack
from benchmarks.experiment_tables import markdown
from benchmarks.lm_states import CausalStates, CrowdLM
from benchmarks.results import processor
from mitigate.files import replacing_folder, write
from mitigate.load.ratings import read_rated
from mitigate.measure.quality import constant_tails, echo_tails, lift_table, random_tails
from mitigate.models.heads import LABELS
from mitigate.policies import Contrast, Critic, Rerank, apply_policy
from mitigate.probe.beams import label_candidates, probe_generator, probe_heads, with_contrast
from mitigate.recipes.config import Scorers, configured
from mitigate.recipes.mitigate import Plan, make_plan
from mitigate.score.labels import label_column
from mitigate.score.people import Crowd2
from mitigate.score.plausibility import with_people_valid
from mitigate.stages import PartFolder, fingerprint
from mitigate.studies.classifier import train_polarity
from mitigate.train.generator import train_generator, trained
from mitigate.triples import Labels
from mitigate.words.relations import RATED
from mitigate.words.targets import PAPER

CSV = Path(__file__).with_name("plan3.csv")
TOP, KS = 10, (1, 3, 5, 10)
LM_STATES = ("_target_=benchmarks.lm_states.PeopleValidLM", "folder={heads}/{half}_lm/people_valid")
SETTINGS = (
    *("experiment=cn100k_cpu", "trainer.max_epochs=1000", "trainer.max_steps=743", "tracking=none", "probe.heads=2000"),
    *(f"score.critic.folder={HEADS}/first/people_valid", "probe.precision=bf16"),
    *(f"score.people_valid.{setting}".format(heads=HEADS, half="second") for setting in LM_STATES),
    "+score.people_valid.base={lm}",
)
SETTINGS_LM = (
    *("experiment=cn100k_lm", "model.base={lm}", "trainer.max_steps=480", "tracking=none", "probe.heads=2000"),
    *(f"score.critic.{setting}".format(heads=HEADS, half="first") for setting in LM_STATES),
    *("+score.critic.base={lm}", f"score.people_valid.folder={HEADS}/second/people_valid"),
)
"""Of SmolLM2: its critic reads by SmolLM2's states and the reader of validity by MiniLM's, as in plan2.md."""
HEADS_ALONE = "policy.scope=person_heads"
MODELS: Mapping[str, tuple[str, ...]] = {
    "none": ("policy=none",),
    "tagged_heads": ("policy=tagged", HEADS_ALONE),
    "random_tagged_heads": ("policy=tagged", "policy.control=true", HEADS_ALONE),
    "tagged": ("policy=tagged",),
    "random_tagged": ("policy=tagged", "policy.control=true"),
    "both_neutral": ("policy=both_neutral",),
}
CHOOSING = {f"critic{size}": Critic("critic", candidates=size) for size in (20, 40)}
AT_RANDOM = {f"random_{name}": replace(policy, control=True) for name, policy in CHOOSING.items()}
RIVALS = {"rerank20": Rerank("rerank")}
CONTRAST = {"contrast20": Contrast("contrast")}
ORDERS = CHOOSING | AT_RANDOM | RIVALS | CONTRAST
GAMES = ("constants", "echo", "random", "dose25", "dose50", "dose75")
"""Systems that know nothing of a target, or of a dose of the tails; they are rows of the model `none`."""
READERS = ("crowd2", "crowd_lm")


@dataclass(frozen=True)
class Part:
    """A part of the plan: its seeds and models, the size of a pool, the relations, the thirds of targets and heads, and
    the systems that know nothing of a target."""

    csv: Path
    seeds: Sequence[int]
    models: Sequence[str]
    pool: int
    relations: Sequence[str]  # none: all 34
    thirds: Sequence[int]
    games: Sequence[str] = ()
    settings: Sequence[str] = SETTINGS

    def decodings(self, model: str) -> list[str]:
        """The decodings of a model; the first is as it is."""
        found = ["as_is", *(CONTRAST if "tagged" in model else ()), *CHOOSING]
        found += AT_RANDOM if model == "none" or model.startswith("random") else ()
        found += RIVALS if model == "none" else ()
        kept = [name for name in found if name not in ORDERS or ORDERS[name].candidates <= self.pool]
        return kept + (list(self.games) if model == "none" else [])


PARTS = {
    "screening": Part(CSV, (11, 12, 13), tuple(MODELS), 40, RELATIONS2, (0,), GAMES),
    "test": Part(CSV.with_name("plan3_test.csv"), (31, 32, 33, 34, 35), ("none", "both_neutral"), 20, (), (1, 2)),
    "replication": Part(
        CSV.with_name("plan3_replication.csv"), (41, 42, 43), ("none",), 20, RELATIONS2, (1,), settings=SETTINGS_LM
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["readers", "run", "table"])
    parser.add_argument("--data", type=Path, help="the folder with conceptnet100k/ and humans/")
    parser.add_argument("--lm", type=Path, help="the folder of the converted SmolLM2")
    parser.add_argument("--work", type=Path, help="models, pools and labels")
    parser.add_argument("--part", choices=PARTS, default="screening")
    parser.add_argument("--csv", type=Path, help="the rows, by default those of the part")
    parser.add_argument("--seeds", type=int, nargs="+", help="some of the part's")
    parser.add_argument("--hours", type=float, default=1e9, help="after these no model is started")
    parser.add_argument("--few", type=int, help="a rehearsal with so many targets")
    own, more = (sys.argv[1:].index("--"), sys.argv[1:]) if "--" in sys.argv else (None, [])
    given = parser.parse_args(sys.argv[1:][:own])
    given.more = more[own + 1 :] if own is not None else []
    part = PARTS[given.part]
    given.csv, given.seeds = given.csv or part.csv, given.seeds or part.seeds
    os.chdir(ROOT)
    if given.what == "table":
        print(screening(pl.read_csv(given.csv)))
    elif given.what == "readers":
        fit_readers(given)
    else:
        run(given, part)


class Polar:
    """The scorer of whether people would rather call a text polarised than neutral, for texts as `crowd` reads them: 1
    or 0, and the calibrated probability."""

    version = "1"

    def __init__(self, crowd: Crowd2) -> None:
        self.name = crowd.name + "_polar"
        self.fingerprint = fingerprint(self, crowd.fingerprint)
        self._crowd = crowd

    def __call__(self, texts: Sequence[str]) -> Labels:
        found = 1 - self._crowd.probabilities(texts)[:, LABELS.index("neutral")]
        return Labels((found > 0.5).astype(np.int8), found.astype(np.float32))


def fit_readers(given: argparse.Namespace) -> None:
    """crowd2 and crowd_lm on the half of the rated statements that the critic did not learn from."""
    rated = half_of(read_rated(given.data), "second")
    with replacing_folder(given.work / "readers") as folder:
        print(train_polarity(rated, 1, folder=folder, states=CausalStates(given.lm)), flush=True)
        (folder / "crowd2").rename(folder / "crowd_lm")
        print(train_polarity(rated, 1, folder=folder), flush=True)


def run(given: argparse.Namespace, part: Part) -> None:
    began = monotonic()
    for model in part.models:
        for seed in given.seeds:
            done = pl.read_csv(given.csv).select("seed", "model").rows() if given.csv.is_file() else []
            if (seed, model) in done:
                continue
            if monotonic() - began > 3600 * given.hours:
                return
            rows = pl.DataFrame(rows_of(seed, model, part, given))
            before = [pl.read_csv(given.csv, schema_overrides=rows.schema)] if given.csv.is_file() else []
            write(given.csv, pl.concat([*before, rows]).write_csv())
            print(f"seed {seed}, {model}: {monotonic() - began:,.0f} s since the start", flush=True)


def planned(seed: int, model: str, part: Part, given: argparse.Namespace) -> tuple[Plan, Any]:
    """The plan of a model's run, and the critic: it is configured with the policy `critic`, whatever the model's own
    policy is."""
    where = (f"data.root={given.data}", f"paths.cache={given.work / 'cache'}", f"seed={seed}")
    with initialize_config_dir(str(ROOT / "conf"), version_base=None):
        relations = [f"probe.relations=[{','.join(part.relations)}]"] if part.relations else []
        of_part = [setting.format(lm=given.lm) for setting in part.settings]
        settings = [*of_part, *relations, *where, *MODELS[model], *given.more]
        config = configured(compose("config", settings))
        return make_plan(config, Scorers(config.score)), Scorers(config.score).critic(Critic("critic"))


def rows_of(seed: int, model: str, part: Part, given: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows of a model's decodings."""
    plan, critic = planned(seed, model, part, given)
    place, clock = given.work / f"seed{seed}" / model, [monotonic()]
    place.mkdir(parents=True, exist_ok=True)
    triples = plan.labeller.by(plan.scorers).label(plan.corpus.triples)
    ledger = apply_policy(plan.policy, triples, plan.target_list)
    clock.append(monotonic())
    if not (place / "model").is_dir():
        how = {"model": place / "model", "checkpoints": place / "checkpoints", "where": plan.where}
        train_generator(ledger, plan.start, plan.settings, tags=plan.policy.tags(plan.target_list), **how)
    clock.append(monotonic())
    pool, of_heads = pools(plan, place, part, given.few)
    clock.append(monotonic())
    labeller = plan.labeller.by(plan.scorers)
    pool, of_heads = (label_candidates(tails, labeller, critic) for tails in (pool, of_heads))
    readers = [
        Crowd2(given.work / "readers/crowd2"),
        CrowdLM(given.work / "readers/crowd_lm", str(given.lm)),
    ]
    own = {"seed": seed, "model": model, "commit": commit(), "processor": processor(), "steps": plan.settings.max_steps}
    found = []
    for decoding in part.decodings(model):
        said, of_others = (chosen(decoding, tails, triples, seed) for tails in (pool, of_heads))
        found.append(own | {"decoding": decoding} | measured(plan, readers, said, of_others, triples))
    seconds = np.diff([*clock, monotonic()]).round(1).tolist()
    spent = dict(zip(("s_labels", "s_training", "s_pool", "s_measures"), seconds, strict=True))
    return [row | spent for row in found]


def pools(plan: Plan, place: Path, part: Part, few: int | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The best tails for the targets of the part's thirds of clusters and for the heads of its thirds of the groups,
    with the contrast of control tokens."""
    cluster = pl.col("target").replace(PAPER.clusters)
    is_mine = cluster.map_elements(lambda name: third_of(name) in part.thirds, return_dtype=pl.Boolean)
    group = pl.col("head").map_elements(lambda head: crc32(head.encode()) % GROUPS, return_dtype=pl.Int64)
    is_others = group.map_elements(lambda number: third_of(f"group {number}") in part.thirds, return_dtype=pl.Boolean)
    targets = plan.targets.filter(is_mine).head(few or 1000)
    prompts = plan.held_out_prompts.filter(is_others).head(few or 100_000)
    generator = trained(plan.start, place / "model", f"{place.parent.name}/{place.name}")
    search = {**plan.search, "beams": part.pool, "top": part.pool}
    found = []
    for name in ("pool", "heads"):
        if not (path := place / f"{name}.parquet").is_file():
            if name == "pool":
                parts = PartFolder(place / f"{name}_parts")
                tails = probe_generator(generator, targets, plan.relations, parts=parts, **search)
            else:
                tails = probe_heads(generator, prompts, **search)
            if plan.policy.tags() is not None:  # "" is every head
                tails = with_contrast(tails, generator)
            tails.write_parquet(path.with_suffix(".part"))
            path.with_suffix(".part").replace(path)
        found.append(pl.read_parquet(path))
    return found[0], found[1]


def chosen(decoding: str, pool: pl.DataFrame, triples: pl.DataFrame, seed: int) -> pl.DataFrame:
    """The TOP tails of each prompt by a decoding."""
    first = pool.filter(pl.col("rank") <= TOP)
    if decoding in ORDERS:
        policy = replace(ORDERS[decoding], seed=seed)
        places = ["target", "relation", "head", "rank"]
        order = policy.choose(pool.filter(pl.col("rank") <= policy.candidates), TOP)
        order = order.select("target", "relation", "head", rank="beam_rank", place="rank")
        found = order.join(pool, on=places, maintain_order="left")
        return found.drop("rank").rename({"place": "rank"})
    if decoding not in GAMES:
        return first
    prompts = first.select("target", "category", "head", "relation").unique(maintain_order=True)
    constants = constant_tails(triples).with_columns(rank=pl.int_range(1, pl.len() + 1).over("relation"))
    if decoding.startswith("dose"):
        (common,) = (constants.filter(rank=1).select("relation", common="tail"),)
        lot = np.random.default_rng(seed).random(first.height) < int(decoding[4:]) / 100
        mixed = first.join(common, on="relation", how="left", maintain_order="left").with_columns(lot=pl.Series(lot))
        mixed = mixed.with_columns(tail=pl.when("lot").then(pl.coalesce("common", "tail")).otherwise("tail"))
        return mixed.select("target", "category", "head", "relation", "tail", "rank")
    if decoding == "constants":
        return prompts.join(constants, on="relation", maintain_order="left")
    if decoding == "echo":
        tails = echo_tails(prompts.select("head", "relation"))
        return prompts.join(tails, on=["head", "relation"], maintain_order="left").with_columns(rank=pl.lit(1))
    tails = random_tails(triples, prompts, seed=seed)
    return tails.with_columns(rank=pl.int_range(1, pl.len() + 1).over("target", "relation", "head"))


def measured(
    plan: Plan, readers: Sequence[Crowd2], said: pl.DataFrame, of_heads: pl.DataFrame, triples: pl.DataFrame
) -> dict[str, Any]:
    """The packed sums of a decoding: of harm by relation and by cluster, of useful yield by rated relation and k and by
    cluster, of swap lift by cluster of professions and group of heads."""
    labeller = plan.labeller.by(plan.scorers)
    about = ["target", "category", "head", "relation", "tail", "rank"]
    said = labeller.label(said.select(about))
    said = with_people_valid(said, plan.people, plan.target_list, cache=labeller.cache)
    texts, cluster = said["masked_neutral"], pl.col("target").replace(PAPER.clusters)
    for reader in readers:
        found = label_column(texts, Polar(reader), labeller.cache).strength
        said = said.with_columns(pl.Series(reader.name + "_p", found))
    favoured = label_column(texts, readers[0], labeller.cache).label == 1
    valid = pl.col("people_validity").fill_null(0.0).cast(pl.Float64)
    said = said.with_columns(favoured=pl.Series(favoured), pv=valid, cluster=cluster)
    rows = {"tails_by_relation": by(said, "relation", pl.len()), "tails_by_cluster": by(said, "cluster", pl.len())}
    distinct = said.group_by("relation").agg((pl.col("tail").n_unique() / pl.len()).alias("n")).sort("relation")
    rows |= {
        "relations": " ".join(distinct["relation"]),
        "distinct_by_relation": pack(distinct["n"].round(4).to_list()),
    }
    rated = said.filter(pl.col("relation").is_in(RATED))
    prompts = rated.select("target", "relation").unique()
    rows |= {
        "prompts_by_rated": by(prompts, "relation", pl.len()),
        "rated_by_cluster": by(prompts.with_columns(cluster=cluster), "cluster", pl.len()),
    }
    for reader in readers:
        polar, useful = pl.col(reader.name + "_p").cast(pl.Float64), (1 - pl.col(reader.name + "_p")) * pl.col("pv")
        rows |= {f"{reader.name}_by_relation": by(said, "relation", polar.sum())}
        rows |= {f"{reader.name}_by_cluster": by(said, "cluster", polar.sum())}
        rows |= {f"useful_{reader.name}_by_cluster": by(rated, "cluster", useful.sum())}
        for k in KS:
            of_k = rated.filter(pl.col("rank") <= k)
            rows |= {f"useful{k}_{reader.name}": by(of_k, "relation", useful.sum())}
            rows |= {f"neutral{k}_{reader.name}": by(of_k, "relation", (1 - polar).sum())}
    rows |= {f"valid{k}": by(rated.filter(pl.col("rank") <= k), "relation", pl.col("pv").sum()) for k in KS}
    rows |= {"favourable_valid": rated.filter("favoured", pl.col("pv") > 0.5).height}
    working = said.filter(category="profession")
    lifts = lift_table(
        working,
        of_heads,
        triples,
        working.select("target", "category").unique(maintain_order=True),
        plan.lifted,
        of_heads.select("head", "relation").unique(maintain_order=True),
        plan.plausibility,
        top=TOP,
        cache=labeller.cache,
    )
    return rows | heads(lifts) | professions(lifts)


def by(rows: pl.DataFrame, unit: str, figure: pl.Expr) -> str:
    """The figure of each unit, in the order of their names."""
    return pack(rows.group_by(unit).agg(figure.alias("n")).sort(unit)["n"].cast(pl.Float64).round(4).to_list())


def commit() -> str:
    return subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True).stdout.strip()


# The table


def figures(row: Mapping[str, Any]) -> dict[str, float]:
    """Percentages of a row: harm by both readers (each relation equal), useful yield and its probabilities at k = 10
    (each rated relation a third; the mean of both readers), swap lift, distinct tails."""
    of = {
        name: np.array(unpack(str(value))) for name, value in row.items() if isinstance(value, str) and "_by_" in name
    }
    found = {name: 100 * (of[f"{name}_by_relation"] / of["tails_by_relation"]).mean() for name in READERS}
    all_of = TOP * of["prompts_by_rated"]
    for k in (TOP,):
        useful = [unpack(str(row[f"useful{k}_{name}"])) for name in READERS]
        found["useful yield"] = float(100 * (np.mean(useful, axis=0) / all_of).mean())
        found["valid"] = float(100 * (np.array(unpack(str(row[f"valid{k}"]))) / all_of).mean())
    for name, end in (("lift, other heads", ""), ("lift, professions", "_professions")):
        sums = [sum(unpack(str(row[column + end]))) for column in ("lift", "prompts")]
        found[name] = SHARE * sums[0] / sums[1] if sums[1] else np.nan  # too few heads in a rehearsal
    return found | {"distinct": 100 * of["distinct_by_relation"].mean(), "favourable": float(row["favourable_valid"])}


def screening(rows: pl.DataFrame) -> str:
    """Means over the seeds that both have: of `none` as it is the figures, of all others the differences from it."""
    every = {(row["model"], row["decoding"], row["seed"]): figures(row) for row in rows.iter_rows(named=True)}
    lines = []
    for model, decoding in dict.fromkeys((model, decoding) for model, decoding, _ in every):
        seeds = [seed for one, other, seed in every if (one, other) == (model, decoding)]
        seeds = [seed for seed in seeds if ("none", "as_is", seed) in every]
        mine, base = ([every[*key, seed] for seed in seeds] for key in ((model, decoding), ("none", "as_is")))
        is_base = (model, decoding) == ("none", "as_is")
        means = {
            name: np.mean([one[name] - (0 if is_base else other[name]) for one, other in zip(mine, base, strict=True)])
            for name in (mine[0] if mine else {})
        }
        lines.append(
            [model, decoding, str(len(seeds)), *(f"{value:{'.1f' if is_base else '+.1f'}}" for value in means.values())]
        )
    names = next(iter(every.values()))
    return markdown(["model", "decoding", "seeds", *names], lines).replace("-", "−").replace("−−−", "---")


if __name__ == "__main__":
    main()

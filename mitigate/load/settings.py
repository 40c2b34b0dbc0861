"""Settings of the data: the facts of a resource, and those of each kind of files."""

from typing import Literal

from mitigate.settings import Meanings, Name, Parts, Place, Text, Wanted, fact, group, place, served, setting

BAD_LINE = "error: a bad line stops the run; skip: it is left out and counted"
HOLDOUT = "share of the triples that is held out for test, by head, where the file has no split; 0: none"
COLUMNS = "what the file calls its columns, or their places from 1: {head: NAME, relation: NAME, tail: NAME}"
LABELS = "meaning of the values in data.label_column, such as {0: prejudice, 1: neutral, 2: favouritism}"
RELATIONS = "FILE.csv of relations of your own: relation, phrase, neutral_phrase"


@group("data")
class Data:
    """Facts and settings of all data. Fields that no recipe reads are defaults of the probe and the trainer."""

    name: Name = fact("name of the resource, part of the run folder's name")
    title: Text | None = fact("name of the resource as reports print it", default=None)
    licence: Text | None = fact("licence of the resource")
    attribution: Text | None = fact("source of the resource")
    demonstration: bool = fact("whether the resource is a demonstration, which supports no claim", default=False)
    own_texts: bool = fact("whether the texts are your own, uploaded only with tracking.statements=true")
    root: Place | None = place("folder of the data; null: MITIGATE_DATA, the cache or a download")
    path: Place | None = setting("file of the data", default=None, where=True, serve="file")
    on_bad_line: Literal["error", "skip"] = served(BAD_LINE, default="error")
    load: Parts | None = fact("function that reads the data (_target_) and its arguments", default=None, where=True)
    runs: list[Place] = place("run folders whose models people are asked about; the first is the baseline", default=[])
    output: Place | None = place("FILE.parquet, .csv, .tsv or .jsonl that the labels are also written to", default=None)
    probe_targets: Wanted = fact("targets to probe unless probe.targets says otherwise", default="all")
    probe_fewest: int = fact("fewest training triples about a target with probe.targets=data", default=1, ge=1)
    probe_heads: int | None = fact("heads of held-out triples that are probed", default=None, ge=0)
    epochs: float | None = fact("training epochs", default=None, gt=0)
    min_steps: int | None = fact("fewest training steps", default=None, ge=1)
    probe_relations: Literal["comet", "data"] = fact("relations to probe, unless named", default="comet")
    asked_relations: Literal["comet", "data"] = fact(
        "relations of the generator: COMeT's too, or of the data", default="comet"
    )
    asked_with: Literal["phrase", "words", "token", "name"] = fact(
        "wording of a relation in a prompt", default="phrase"
    )
    events: bool = fact("whether targets are asked about in events that name them", default=False)
    paper: Text | None = fact("resource whose published figures stand beside ours", default=None)
    label_column: Text | None = setting(
        "column of labels that are counted in place of scorers", default=None, serve="words"
    )
    labels: Meanings | None = setting(LABELS, default=None)
    holdout: float | None = served(HOLDOUT, default=None, ge=0, lt=1)
    relations: Place | None = setting(RELATIONS, default=None, where=True, serve="file")


@group("data")
class Columns(Data):
    """A file whose columns can have other names."""

    columns: Parts | None = setting(COLUMNS, serve="columns")


@group("data")
class Generations(Data):
    top: int | None = served("generations of each line that are read, the first ones; null: all", ge=1, le=1_000_000)


@group("data")
class Graph(Data):
    """A knowledge graph, for recipe=kge."""

    occupation: Text | None = setting("relation of people to professions, by its name or id", serve="words")
    attributes: Parts = fact("names for the relations of a knowledge graph that are sensitive attributes")
    graph: Parts = fact("function that reads a knowledge graph (_target_) and its arguments")


@group("data")
class OwnGraph(Graph):
    names: Place | None = setting("file of the names of a graph's entities and relations, lines id<TAB>name")

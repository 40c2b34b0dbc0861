"""Settings of the data: the facts of a resource, and those of each kind of files."""

from typing import Literal

from mitigate.settings import Name, Parts, Place, Text, Wanted, fact, group, setting

BAD_LINE = "error: a bad line stops the run; skip: it is left out and counted"
HOLDOUT = "share of the triples that is held out for test, by head, where the file has no split; 0: none"
COLUMNS = (
    "columns of the file: a list such as [target,statement], or {head: NAME, relation: NAME, tail: NAME, split: NAME, "
    "valid: NAME}"
)
RELATIONS = "FILE.csv of relations of your own: relation, phrase, neutral_phrase"


@group("data")
class Data:
    """What all data have. The probe and the trainer take their defaults from the fields that no recipe reads."""

    name: Name = fact("name of the resource, part of the run folder's name")
    title: Text | None = fact("name of the resource as reports print it", None)
    licence: Text | None = fact("licence of the resource")
    attribution: Text | None = fact("source of the resource")
    demonstration: bool = fact("whether the resource is a demonstration, which supports no claim", False)
    own_texts: bool = setting(
        "whether the texts are the user's own, which are uploaded only with tracking.statements=true"
    )
    root: Place | None = setting("folder of the data; null: MITIGATE_DATA, the cache or a download", where=True)
    path: Place | None = setting("file of the data", None, where=True, serve="file")
    on_bad_line: Literal["error", "skip"] = setting(BAD_LINE, "error", serve="value")
    load: Parts | None = fact("function that reads the data (_target_) and its arguments", None, where=True)
    missing: Parts | None = fact("function that returns what would be downloaded (_target_)", None, where=True)
    runs: list[Place] = setting(
        "run folders whose models people are asked about; the first is what others are compared with", [], where=True
    )
    output: Place | None = setting(
        "FILE.parquet, .csv, .tsv or .jsonl that the labels are also written to", None, where=True
    )
    probe_targets: Wanted = fact("targets to probe unless probe.targets says otherwise", "all")
    probe_fewest: int = fact("fewest training triples about a target with probe.targets=data", 1, ge=1)
    probe_heads: int | None = fact("heads of held-out triples that are probed", None, ge=0)
    epochs: float | None = fact("training epochs", None, gt=0)
    min_steps: int | None = fact("fewest training steps", None, ge=1)
    probe_relations: Literal["comet", "data"] = fact(
        "relations to probe: COMeT's 34, or of the training triples", "comet"
    )
    asked_relations: Literal["comet", "data"] = fact("relations of the generator: COMeT's too, or of the data", "comet")
    asked_with: Literal["phrase", "words", "token", "name"] = fact("wording of a relation in a prompt", "phrase")
    events: bool = fact(
        "whether targets are asked about in events that name them, such as the lawyer goes to work", False
    )
    published: Place | None = fact("published triples about targets; auto: the harms paper's", None, where=True)
    rated: Text | None = fact("source of the harms paper's rated statements that are of this resource", None)
    paper: Text | None = fact("resource whose published figures stand beside ours", None)
    label_column: Text | None = setting(
        "column of labels that are counted instead of asking scorers", None, serve="words"
    )
    holdout: float | None = setting(HOLDOUT, None, ge=0, lt=1, serve="value")
    relations: Place | None = setting(RELATIONS, None, where=True, serve="file")


@group("data")
class Columns(Data):
    """A file whose columns can have other names."""

    columns: list[Text] | Parts | None = setting(COLUMNS, serve="columns")


@group("data")
class Atomic(Data):
    persons: Literal["kept", "verbalised"] = setting(
        "PersonX in triples and phrases of ATOMIC: as published, or worded as this person", serve="value"
    )


@group("data")
class Generations(Data):
    top: int | None = setting(
        "generations of each line that are read, the first ones; null: all", ge=1, le=1_000_000, serve="value"
    )


@group("data")
class Graph(Data):
    """A knowledge graph, for recipe=kge."""

    occupation: Text | None = setting(
        "relation of people to professions in a knowledge graph, by its name or id", serve="words"
    )
    attributes: Parts = fact("names for the relations of a knowledge graph that are sensitive attributes")
    graph: Parts = fact("function that reads a knowledge graph (_target_) and its arguments")


@group("data")
class OwnGraph(Graph):
    names: Place | None = setting("file of the names of a graph's entities and relations, lines id<TAB>name")

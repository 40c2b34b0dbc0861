"""Settings of all jobs, and those of each recipe."""

from typing import Literal

from mitigate.settings import Meanings, Name, Numbers, Parts, Place, Text, Wanted, fact, group, place, served, setting

MANY = 1_000_000
Device = Literal["auto", "cpu", "cuda"]


@group("")
class Common:
    """The settings at the top. `texts`, `head` and `relation` are those of recipes that have them."""

    seed: int = served("number that fixes all random draws", ge=0, le=4294967295)
    train: bool = served("whether the model is trained; false: it is probed as it is")
    verbose: bool = place("print every figure and all notices; false: a verdict, four figures and the page's path")
    dry_run: bool = place("print the stages and which of them have results, and stop")
    optimized_metric: Text = place("metric that a sweep optimises, such as neutral_template/NRM", default="NRM")
    measures: list[Text] = setting("your own measures, as MODULE.FUNCTION (docs/measures.md)", default=[])
    texts: list[Text] | Text = setting(
        "texts to label: a list, one text, @FILE, or a table's file", default=[], serve="file"
    )
    head: Text | None = setting("head to ask about; null: questions are read from standard input", default=None)
    relation: Text | None = setting("relation to ask about, by its name", default=None)


@group("filter")
class Filter:
    splits: Literal["train", "all"] = served("splits that the policy filters; all: dev and test too, as the paper did")


@group("paths")
class Paths:
    outputs: Place = place("folder of the run folders")
    cache: Place = place("folder of labels and downloads, shared by all runs")


@group("tracking")
class Tracking:
    mode: Literal["auto", "online", "offline", "none"] = place("how W&B records; auto: online with a key")
    project: Text = place("project in Weights & Biases")
    entity: Text | None = place("user or team in Weights & Biases; null: the account's default")
    statements: bool = place("whether the user's own texts are uploaded")
    model: bool = place("whether the trained model is uploaded")


@group("score.bert")
class Bert:
    model: Place = setting("sequence classifier of regard: a folder, or a name on the Hugging Face hub")


@group("score.frames")
class OfFrames:
    run: Place | None = setting("finished run of recipe=frames, whose model the scorer frames uses")


@group("score.judge")
class Judge:
    model: Place | None = setting("language model that rates here: a folder, a name on the hub, or a GGUF file")
    url: Text | None = setting("OpenAI-compatible address, up to /v1; null: no text leaves this machine")
    name: Text | None = setting("name of the endpoint's model")
    key: Text | None = place("variable of the environment with the endpoint's key; null: no key is sent")


OF_JUDGE = ("judge.key", "judge.concurrency")  # how it is asked
FOLDER = "its folder: of a run of recipe=classifier; null: the shipped one"


@group("score")
class Score:
    sentiment: Name | None = served("scorer of sentiment: vader, or another of score.scorers")
    regard: Name | None = served("scorer of regard: minilm, ngram, bert, or another of score.scorers")
    extra: list[Name] = served("further scorers, such as [keyword,ngram]")
    plausibility: Parts | None = setting(f"plausibility classifier of what is probed; null: none; {FOLDER}")
    people_valid: Parts | None = setting(f"people-valid classifier of what is probed; null: none; {FOLDER}")
    critic: Parts | None = setting(f"people-valid classifier that policies rank and filter by; null: none; {FOLDER}")
    engine: Literal["local", "ray"] = place("where statements are labelled: in this process, or by workers of Ray")
    workers: int = place("number of Ray workers, each with a core of its own", ge=1, le=100_000)
    bert: Bert = fact()
    frames: OfFrames = fact()
    judge: Judge = fact()
    scorers: Parts = setting("scorers by name, each a class (_target_) and its arguments", where=OF_JUDGE)


@group("probe")
class Probe:
    targets: Wanted = setting("targets to probe: all, data, a list or FILE.csv", serve="words or file")
    fewest: int = served("fewest training triples about a target with probe.targets=data", ge=1, le=10**9)
    new_targets: bool = served("whether a word that resembles a target of the list is one of your own, and no slip")
    relations: list[Name] | None = served(
        "relations to probe, such as [CapableOf,Causes]; null: COMeT's 34, or those of the data"
    )
    heads: int = served("heads of held-out triples that are probed; 0: none", ge=0, le=1_000_000)
    beams: int = served("beam width", ge=1, le=1000)
    top: int = served("tails that are kept of each beam search", ge=1, le=1000)
    max_length: int = served("longest tail, in tokens", ge=1, le=512)
    precision: Literal["fp32", "bf16"] = served("number format; fp32 is exact")
    device: Device = place("device; auto: a GPU where there is one")


@group("recipe")
class Recipe:
    """Name and function of a recipe. reads: groups and top-level settings that decide what it finds: the run folder's
    name is a hash of these; None: all."""

    name: Name = fact("name of the recipe, part of the run folder's name")
    run: Name = fact("function that runs the recipe; it takes the configuration", where=True)
    reads: list[Name] | None = fact("groups and settings that results depend on", default=None, where=True)


@group("recipe")
class Shows(Recipe):
    shown: list[Text] = setting("targets whose bars the report draws", where=True, serve="words")


@group("recipe")
class Audit(Shows):
    targets: Wanted | None = setting(
        "targets to measure: all, data, a list or FILE.csv; null: those of probe.targets, or of the resource's kind",
        serve="words or file",
    )


@group("measure")
class Measure:
    masking: Literal["token", "paper"] = served("how targets are masked; paper: as a substring")
    empty_targets: Literal["exclude", "zero"] = served("how targets without statements count")
    resamples: int = served("resamples of the bootstrap", ge=1, le=100_000)


@group("measure")
class AuditMeasure(Measure):
    """With the settings of recipe=audit."""

    match: Literal["exact", "contains", "paper"] | None = served("how a target is a head or tail, or within it")
    template: Literal["paper", "neutral"] | None = served("wording that is measured; null: all there are")


@group("recipe")
class Export(Recipe):
    format: Literal["tsv", "csv", "jsonl", "parquet"] = served("format of the two files of kept and of dropped triples")


@group("recipe")
class Labels(Recipe):
    column: Text | None = setting(
        "column of the texts; null: statement, text or sentence, or the only one", serve="words"
    )


@group("recipe")
class Agreement(Recipe):
    statements: int | None = fact("statements of each source, and identity terms, that are drawn", ge=1, le=MANY)


@group("recipe")
class Stories(Shows):
    post_train: bool = served("whether the story generator first learns the resource")
    prompts: Place | None = setting("file of your own prompts; null: the project's templates", where=True, serve="file")
    instruction: Text | None = setting("text with {prompt} in it; null: the prompt, or a request to continue it")
    temperature: float = served("temperature of sampling", gt=0, le=100)
    top_k: int = fact("tokens to draw from; 0: all", ge=0, le=MANY)
    max_tokens: int = served("longest story, in tokens", ge=1, le=100_000)
    fewest: int = fact("fewest sentences of a story", default=3, ge=1, le=1000)
    most: int = fact("most sentences of a story", default=5, ge=1, le=1000)


@group("compare.primary")
class Primary:
    harm: list[Text] = setting("metrics of harm that a claim may rest on: the first that all runs have")
    quality: list[Text] = setting("metrics of quality that a claim may rest on: the first that all runs have")


@group("compare")
class Compare:
    runs: list[Place] = place("run folders to compare")
    baseline: Text | list[Place] | None = place("run folder, a list of them, or a policy; null: the policy none")
    primary: Primary = fact()
    gate: bool = place("exit status by the primary endpoints: 0 they hold, 4 they fail, 3 open")
    margins: Numbers = setting("largest loss of quality that still counts as kept, by metric")


@group("humans")
class Humans:
    relations: list[Name] = setting("relations that people are asked about")
    size: int = setting("statements of each model, at most", ge=1, le=10_000_000)
    raters: int = setting("raters of each statement", ge=1, le=10_000)
    pay: Text | None = setting("what raters are paid, in a sentence that they read")
    contact: Text | None = setting("whom raters can write to")
    survey: Place | None = place("run folder of the survey")
    answers: list[Place] = place("CSV files of answers: rater, item, label and perhaps quality")
    sentences: Place | None = place("file of sentences, one a line")
    bias_labels: Place | None = place("file of bias labels: 1 favouritism, 2 neutral, 3 prejudice")
    quality_labels: Place | None = place("file of quality labels: 1 makes sense, 0 does not")


@group("kge")
class Kge:
    sensitive: Text = setting(
        "attribute of people: a name of data.attributes, or a relation by name or id",
        serve="words",
    )
    values: list[Text] = setting(
        "value a and value b of the attribute, by name or id; of a single one, b is all others",
        serve="words",
    )
    fewest: int = served("fewest people of value a or b that a profession must have in the graph", ge=1, le=10**9)
    seeds: int = served("number of trainings; their seeds are seed, seed + 1 and so on", ge=1, le=1000)
    mitigations: list[Name] = served("mitigations to be measured, each with its control: regularise, project")
    checkpoint_every: float = fact("seconds from one checkpoint to the next", default=60.0, gt=0, where=True)


@group("frames")
class Frames:
    start: Literal["minilm", "model"] = served("what the model starts from: all-MiniLM-L6-v2, or frames.weights")
    weights: Place | None = place("folder of the weights that the model starts from, in the Hugging Face format")
    dropout: float = fact("share of inputs set to 0 in training", default=0.1, ge=0, lt=1)
    epochs: float = served("passes over the training posts", gt=0, le=1000)
    fold_epochs: float = fact("passes over the test posts of four folds", default=2.0, gt=0, le=1000)
    batch_size: int = fact("posts of a batch", ge=1, le=100_000)
    lr: float = served("learning rate on the training posts", gt=0, le=1)
    fold_lr: float = fact("learning rate on the test posts of four folds", default=3e-4, gt=0, le=1)
    device: Device = fact("device that the model is trained on", default="auto", where=True)
    checkpoint_every: float = fact("seconds from one checkpoint to the next", default=60.0, gt=0, where=True)


@group("share")
class Share:
    run: Place = setting("run folder of recipe=mitigate or recipe=filter whose files go to the Hugging Face hub")
    repo: Text = setting("name of the repository on the hub: NAME or ORGANISATION/NAME")
    private: bool = setting("whether only its owners can read the repository")
    statements: bool = setting("whether files that quote statements or triples of the user's own are shared")


@group("ask")
class Ask:
    run: Place = setting("run folder whose generator answers")


@group("serve")
class Serve:
    address: Text = setting("address that the service listens on; any but 127.0.0.1 needs a token")
    port: int = setting("port that the service listens on", ge=1, le=65535)
    token_for: Text | None = setting("name of a person who gets a token for the service; null: nobody")
    revoke: Text | None = setting("name of a person whose token for the service ends; null: nobody")
    slurm: Parts = setting("options of sbatch for each job of the service: partition, gpus, mem, time, account")
    hosts: list[Text] = fact("names that browsers reach the service by, besides its address")
    slots: int = setting("jobs of the service that run at once", ge=1, le=1024)
    threads: int | None = fact("threads of each job of the service; null: as many as it takes", ge=1, le=1024)
    roots: list[Place] = setting("folders that submitted jobs may name files in")
    engine: Literal["local", "slurm"] = setting("jobs are processes of this machine, or jobs of SLURM")


# Data


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

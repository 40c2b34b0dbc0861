"""Settings of all jobs, and those of each recipe."""

from typing import Literal

from mitigate.settings import Function, Name, Numbers, Parts, Place, Text, Wanted, fact, group, setting

MANY = 1_000_000
Device = Literal["auto", "cpu", "cuda"]


@group("")
class Common:
    """The settings at the top. `texts`, `head` and `relation` are those of recipes that have them."""

    seed: int = setting("number that fixes all random draws", ge=0, le=4294967295, serve="value")
    train: bool = setting("whether the model is trained; false: it is probed as it is", serve="value")
    verbose: bool = setting(
        "print every figure as a table, and all notices; false: a verdict, four figures with their cost and the "
        "page's path",
        where=True,
    )
    dry_run: bool = setting("print the stages and which of them have results, and stop", where=True)
    optimized_metric: Text = setting("metric that a sweep optimises, such as neutral_template/NRM", "NRM", where=True)
    texts: list[Text] | Text = setting(
        "texts to label: a list, one text, @FILE, a table's file, or - for standard input", [], serve="file"
    )
    head: Text | None = setting(
        "head to ask about; null: questions are read from the terminal, or from standard input", None
    )
    relation: Text | None = setting("relation to ask about, by its name or the beginning of it", None)


@group("filter")
class Filter:
    splits: Literal["train", "all"] = setting(
        "splits that the policy filters; all: dev and test too, as the paper did", serve="value"
    )


@group("paths")
class Paths:
    outputs: Place = setting("folder of the run folders", where=True)
    cache: Place = setting("folder of labels and downloads, shared by all runs", where=True)


@group("tracking")
class Tracking:
    mode: Literal["auto", "online", "offline", "none"] = setting(
        "how Weights & Biases records; auto: online where there is a key", where=True
    )
    project: Text = setting("project in Weights & Biases", where=True)
    entity: Text | None = setting("user or team in Weights & Biases; null: the account's default", where=True)
    statements: bool = setting("whether the user's own texts are uploaded", where=True)
    model: bool = setting("whether the trained model is uploaded", where=True)


@group("recipe")
class Recipe:
    """What every recipe has. reads: groups and top-level settings that decide what it finds: the run folder's name is a
    hash of these; None: all."""

    name: Name = fact("name of the recipe, part of the run folder's name")
    run: Function = fact("function that runs the recipe; it takes the configuration", where=True)
    reads: list[Name] | None = fact("groups and settings that results depend on", None, where=True)


@group("recipe")
class Shows(Recipe):
    """A recipe with a page of targets."""

    shown: list[Text] = setting("targets whose bars the report draws", where=True, serve="words")


@group("recipe")
class Audit(Shows):
    targets: Wanted | None = setting(
        "targets to measure: all, data, a list such as [lawyer,nurse] or FILE.csv; null: the list or file of "
        "probe.targets, else what the resource's kind asks for",
        serve="words or file",
    )


@group("recipe")
class Export(Recipe):
    """recipe=filter."""

    format: Literal["tsv", "csv", "jsonl", "parquet"] = setting(
        "format of the two files of kept and of dropped triples", serve="value"
    )


@group("recipe")
class Labels(Recipe):
    occlusion: bool = setting("whether texts are also labelled without each of their words", serve="value")
    column: Text | None = setting(
        "column of the texts in a table; null: statement, text or sentence, or the only one", serve="words"
    )


@group("recipe")
class Agreement(Recipe):
    statements: int | None = setting(
        "rated statements of each source that are drawn by seed; null: all", ge=1, le=MANY, serve="value"
    )
    terms: int | None = setting(
        "unseen identity terms that are drawn by seed, in unseen sentences alone; null: all terms and sentences", ge=1
    )


@group("recipe")
class Plausibility(Recipe):
    """recipe=classifier classifier=plausibility."""

    probes: list[Place] = fact("run folders whose probed triples are classified as plausible or not", [])


@group("recipe.validity")
class Validity:
    half: Literal["all", "first", "second"] = setting(
        "half of the targets whose ratings people_valid learns from; all: both"
    )
    base: Place | None = fact("causal language model that it reads with: a folder, or a name on the hub", None)


@group("recipe")
class People(Recipe):
    """recipe=classifier classifier=people."""

    base: Place | None = setting(
        "causal language model that heads of crowd_lm are fitted to: a folder, or a name on the hub; null: none"
    )
    validity: Validity = fact()


@group("recipe")
class Stories(Shows):
    post_train: bool = setting("whether the story generator first learns the resource", serve="value")
    prompts: Place | None = setting(
        "file of your own prompts, or a folder of BOLD's; null: the project's templates", where=True, serve="file"
    )
    most_prompts: int | None = setting(
        "prompts of a target, drawn by the seed, the same templates for all; null: all", ge=1, le=MANY, serve="value"
    )
    instruction: Text | None = setting(
        "text with {prompt} in it, which a story generator is given; null: the prompt, or a request to continue it"
    )
    temperature: float = setting("temperature of sampling", gt=0, le=100, serve="value")
    top_k: int = setting("tokens to draw from; 0: all", ge=0, le=MANY, serve="value")
    max_tokens: int = setting("longest story, in tokens", ge=1, le=100_000, serve="value")
    fewest: int = fact("fewest sentences of a story", 3, ge=1, le=1000)
    most: int = fact("most sentences of a story", 5, ge=1, le=1000)


@group("compare.primary")
class Primary:
    harm: list[Text] = setting(
        "metrics of harm that a claim may rest on: the first that all runs have, such as [neutral_template/NRM]"
    )
    quality: list[Text] = setting(
        "metrics of quality that a claim may rest on: the first that all runs have, such as [quality/valid/all]"
    )


@group("compare")
class Compare:
    runs: list[Place] = setting("run folders to compare", where=True)
    baseline: Text | list[Place] | None = setting(
        "baseline: a run folder, a list of them, or a policy; null: the policy none", where=True
    )
    primary: Primary = fact()
    gate: bool = setting(
        "end with an exit status by the primary endpoints: 0 shown to hold, 4 shown to fail, 3 not enough evidence",
        where=True,
    )
    margins: Numbers = setting("largest loss of quality that still counts as kept, by metric")


@group("humans")
class Humans:
    relations: list[Name] = setting("relations that people are asked about")
    size: int = setting("statements of each model, at most", ge=1, le=10_000_000)
    raters: int = setting("raters of each statement", ge=1, le=10_000)
    anchors: int = fact("most statements that were rated before and are rated again", 150, ge=1, le=MANY)
    anchors_from: Place | None = setting("run folder with the earlier ratings", where=True)
    pay: Text | None = setting("what raters are paid, in a sentence that they read")
    contact: Text | None = setting("whom raters can write to")
    survey: Place | None = setting("run folder of the survey", where=True)
    answers: list[Place] = setting("CSV files of answers: rater, item, label and perhaps quality", where=True)
    sentences: Place | None = setting("file of sentences, one a line", where=True)
    bias_labels: Place | None = setting("file of bias labels: 1 favouritism, 2 neutral, 3 prejudice", where=True)
    quality_labels: Place | None = setting("file of quality labels: 1 makes sense, 0 does not", where=True)


@group("kge")
class Kge:
    sensitive: Text = setting(
        "sensitive attribute of people: a name of data.attributes, or a relation of the graph by its name or id; two "
        "of them, joined by & in spaces, make an intersection",
        serve="words",
    )
    values: list[Text] = setting(
        "value a and value b of the attribute, by name or id; of a single one, b is all other values; of an "
        "intersection each names both values, joined by & in spaces",
        serve="words",
    )
    fewest: int = setting(
        "fewest people of value a or b that a profession must have in the graph", ge=1, le=10**9, serve="value"
    )
    fewest_of_each: int = fact("fewest people of value a, and of value b, that it must have besides", 0, ge=0)
    seeds: int = setting("number of trainings; their seeds are seed, seed + 1 and so on", ge=1, le=1000, serve="value")
    people: list[Text] = setting(
        "pairs of two people, one of value a and one of value b, to be compared; none: the best known ones"
    )
    runs: list[Place] = setting(
        "finished runs of other models on the same question, whose rankings are compared with this one's"
    )
    mitigations: list[Name] = setting("mitigations to be measured: regularise, project, perturb", serve="value")
    device: Device = setting("device that embeddings are trained on", where=True)
    checkpoint_every: float = fact(
        "seconds of training from one checkpoint to the next", 60.0, gt=0, le=MANY, where=True
    )


@group("frames")
class Frames:
    start: Literal["minilm", "model"] = setting(
        "what the model starts from: all-MiniLM-L6-v2, or the GPT-1 or GPT-2 of a folder", serve="value"
    )
    weights: Place | None = setting(
        "folder of the weights that the model starts from, in the Hugging Face format", where=True
    )
    reading: Literal["both", "left"] = setting(
        "what a post's words look at: each other, or earlier ones only", serve="value"
    )
    dropout: float = fact("share of inputs set to 0 in training", 0.1, ge=0, lt=1)
    epochs: float = setting("passes over the training posts", gt=0, le=1000, serve="value")
    fold_epochs: float = fact("passes over the test posts of four folds", 2.0, gt=0, le=1000)
    batch_size: int = setting("posts of a batch", ge=1, le=100_000, serve="value")
    lr: float = setting("learning rate on the training posts", gt=0, le=1, serve="value")
    fold_lr: float = fact("learning rate on the test posts of four folds", 3e-4, gt=0, le=1)
    samples: int = setting("candidates that are drawn for each post; 0: greedy", ge=0, le=1000, serve="value")
    device: Device = fact("device that the model is trained on", "auto", where=True)
    checkpoint_every: float = fact(
        "seconds of training from one checkpoint to the next", 60.0, gt=0, le=MANY, where=True
    )


@group("share")
class Share:
    run: Place = setting("run folder of recipe=mitigate or recipe=filter whose files go to the Hugging Face hub")
    repo: Text = setting("name of the repository on the hub: NAME or ORGANISATION/NAME")
    private: bool = setting("whether only its owners can read the repository")
    statements: bool = setting("whether files that quote statements or triples of the user's own are shared")


@group("ask")
class Ask:
    run: Place = setting("run folder whose generator answers")
    against: Place | None = setting("second run folder, whose answers stand beside those of the first")
    format: Literal["text", "json"] = setting("text: a table; json: a JSON object a line for each question")


@group("serve")
class Serve:
    address: Text = setting("address that the service listens on; any but 127.0.0.1 needs a token")
    port: int = setting("port that the service listens on", ge=1, le=65535)
    token: Text | None = setting("token that requests must show; null: none")
    token_for: Text | None = setting("name of a person who gets a token for the service; null: nobody")
    revoke: Text | None = setting("name of a person whose token for the service ends; null: nobody")
    slurm: Parts = setting("what SLURM gives each job of the service: partition, gpus, memory in GiB, minutes")
    hosts: list[Text] = setting("names that browsers reach the service by, besides its address")
    slots: int = setting("jobs of the service that run at once", ge=1, le=1024)
    threads: int | None = setting("threads of each job of the service; null: as many as it takes", ge=1, le=1024)
    roots: list[Place] = setting("folders that submitted jobs may name files in")
    models: list[Place] = setting(
        "pretrained models that submitted jobs may name as model.base: names on the hub, folders or GGUF files"
    )
    engine: Literal["local", "slurm"] = setting(
        "where the jobs of the service run: as processes of this machine, or as jobs of SLURM"
    )

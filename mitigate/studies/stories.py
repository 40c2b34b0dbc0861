"""recipe=stories: a story generator probed as in the harms paper (Section 4.2), labelled sentence by sentence: a
language model as it is, one that first learns the sentences of a resource, a chat model behind an address, or a file of
stories.

A refused prompt has no story: it is counted, by group, and never labelled."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import polars as pl

from mitigate import files
from mitigate.errors import MitigateError, counted, one_of, whole_sentences
from mitigate.finished import source_of
from mitigate.load.corpus import digest_of_relations, relations_in_training, triples_of
from mitigate.load.statements import BETWEEN
from mitigate.load.stream import Counts, Loaded, Streamed, describe, report
from mitigate.load.table import Column as FileColumn
from mitigate.load.table import read_table
from mitigate.load.targets import Wanted, targets_of_statements, those_about
from mitigate.measure.base import key_of
from mitigate.measure.compare import no_conclusion
from mitigate.measure.harms import Measurement, tally, wordings
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.results import Results
from mitigate.measure.stories import measure_stories, refusals, shares
from mitigate.models.chat_api import Endpoint, without_reasoning
from mitigate.models.hf import LanguageModel, Seq2Seq
from mitigate.policies import Policy, apply_policy, check_relations, choice_of
from mitigate.probe.beams import find_device
from mitigate.probe.stories import Sampling, Wording, ask_stories, sample_stories, story_of
from mitigate.recipes.config import Config, Scorers, build, check_trained, find_start
from mitigate.recipes.job import GROUPS, Job, open_job, say, say_notes, say_verdict
from mitigate.report import sections
from mitigate.report.page import OPEN, Fold, Number, Page, Part, Section, write
from mitigate.report.sections import crossed, figure
from mitigate.report.table import Column, Table, figures, grouped, number, p_value, text
from mitigate.score.labeller import Labeller
from mitigate.score.labels import long_texts
from mitigate.stages import Result, as_parquet, statement_lines
from mitigate.train import launch
from mitigate.train.base_model import Start, origin_facts
from mitigate.train.comet import Settings
from mitigate.train.generator import as_it_is, as_language_model, train_on_sentences
from mitigate.train.settings import Api
from mitigate.triples import Parts
from mitigate.words.prompts import ANSWERED, CUT, FAILED, OUTCOMES, OWN, PROMPTS, REASONING, REFUSED, prompts
from mitigate.words.relations import with_own
from mitigate.words.targets import (
    CATEGORIES,
    LISTED,
    PAPER,
    as_targets,
    choose_targets,
    list_of,
    notice_of_own,
    targets,
)
from mitigate.words.word_forms import article, plain

SAMPLING = ("temperature", "top_k", "max_tokens", "fewest", "most")
CONTINUE = "Continue this text with three to five sentences: {prompt}"  # the project's templates begin a text


def run(config: Config) -> float | None:
    """Generate stories, or read them, and measure; returns the metric that `optimized_metric` names."""
    probe, recipe, scorers = find_probe(config), config.recipe, Scorers(config.score).labelling
    begins = getattr(config.model, "prompt", None) == "chat" and recipe.prompts is None and not recipe.post_train
    instruction = recipe.instruction or (CONTINUE if begins and not is_file(config) else "{prompt}")
    given = {name: getattr(recipe, name) for name in SAMPLING}
    sampling = Sampling(seed=config.seed, instruction=instruction, **given)
    targets, target_list = probe.targets.select("target", "category"), list_of(probe.targets)
    labeller = config.labeller(scorers, target_list)
    measure, intervals = config.measure, Bootstrap(resamples=config.measure.resamples, seed=config.seed)
    # A sentence has no relation, and so one template only.
    labels = wordings([one.name for one in scorers], ["paper"])
    how = Measurement(targets, labels, target_list, intervals, measure.empty_targets)
    content = as_parquet(probe.prompts) + as_parquet(targets) + probe.digest.encode() + target_list.digest.encode()
    source = files.digest_of(content)
    num_prompts = probe.prompts["row"].n_unique()
    say_notes([*probe.notices, *notice_of_own(targets)])
    say(f"  {counted(num_prompts, 'prompt')} about {counted(targets.height, 'target')}; stories of {probe.generator}")
    if probe.endpoint:
        say(
            f"  requests    {num_prompts:,} to {probe.endpoint.url}, without repeats, fewer where parts are stored; "
            f"{num_prompts * sampling.max_tokens:,} tokens of answers at most"
        )

    learnt = f"{config.policy.name}-{config.data.name}-" if probe.resource else ""
    name = f"stories-{learnt}{config.model.name}-seed{config.seed}"
    if not probe.is_generated:
        name = f"stories-{config.data.name}-{config.score.regard or config.score.sentiment}"
    with open_job(config, name, source, tracked=tracked(config, probe)) as job:
        stories = read_or_generate(job, probe, sampling)
        sentences = job.stage("score", label_sentences, stories, labeller, most=sampling.most)
        about = {
            "seed": config.seed,
            "data": config.data.name,
            "fingerprint": source,
            "model": probe.generator,
            "policy": config.policy.name if probe.resource else None,
        }
        training = job.results.get("train")
        job.measure(measure_stories, stories, sentences, how, facts=about, fewest=sampling.fewest, training=training)

        def facts() -> dict[str, Any]:
            labelling = {f"{scorer.name} scorer": scorer.fingerprint for scorer in scorers}
            return facts_of(job, probe, sampling, config.data.name) | {"masking": labeller.masking} | labelling

        report = job.stage(
            "report",
            write_report,
            job.results["results"],
            job.results["metrics"],
            stories,
            sentences,
            how,
            probe.notices,
            generator=probe.generator,
            demonstration=probe.resource is not None and probe.resource.described["data"]["demonstration"],
            fewest=sampling.fewest,
            sampled=probe.is_generated,
            chosen=config.shown_targets(targets),
            after=[job.folder.name],
            using=lambda work: {"folder": work.folder, "about": job.about(facts())},
        )
        if job.is_new():
            metrics, findings = job.figures, report.facts()
            job.record_metrics(metrics, also={"verdict": findings["verdict"]})
            columns = ["target", "category", "statement", *how.wordings]
            job.record_statements(sentences.table().select(columns))
            job.record_plots()
            if job.sends_model and probe.resource is not None:  # weights that were trained here
                job.tracking.artifact(
                    f"model-{job.folder.name}", "model", job.folder / "model", {"metrics": metrics.flat}
                )
            say_verdict(findings["verdict"])
            brief = ("statements", *sections.FIRST, "refused")
            say("\n" + sections.console(metrics.table, REFUSALS, brief=brief, verbose=not job.brief))
            say_notes(findings["notices"])
            if probe.endpoint is not None:
                say(f"  requests    {cost_in_words(stories.table())}")
            say(f"  report      {job.folder / 'stories.html'}")
    return None if config.dry_run else job.figures.get(config.optimized_metric)


# Read and check everything


@dataclass(frozen=True)
class Resource:
    """The training of the generator before it is probed."""

    corpus: Loaded | Streamed
    policy: Policy
    labeller: Labeller  # that labels it
    settings: Settings  # of the training on it
    accelerator: str
    described: dict[str, dict[str, Any]]  # data and model


@dataclass(frozen=True)
class Probe:
    """Prompts with the generator that continues them; or, without start and endpoint, a file's prompts and stories."""

    prompts: pl.DataFrame  # columns PROMPTS
    targets: pl.DataFrame
    generator: str  # in a few words
    digest: str = ""  # the hash of its weights and training, or its address
    notices: Sequence[str] = ()  # of the file, or of the resource
    start: Start | None = None  # the model that generates
    device: str = "cpu"
    endpoint: Endpoint | None = None  # that generates in its place
    wording: Wording = field(default_factory=Wording)  # of requests to it
    resource: Resource | None = None  # None: the model is probed as it is

    @property
    def is_generated(self) -> bool:
        """Return whether the stories are generated here."""
        return self.start is not None or self.endpoint is not None


def is_file(config: Config) -> bool:
    """Return whether the stories are from a file."""
    return config.data.name == "stories" and config.data.path is not None


def find_probe(config: Config) -> Probe:
    """Prompts and generator, with all faults of settings and input raised here. No endpoint is asked yet."""
    if is_file(config):
        return _of_file(config)
    model, policy = config.model, Scorers(config.score).policy(config.policy)
    fault = "puts control tokens before heads, and stories have none" if policy.tags() is not None else ""
    if choice_of(policy):
        fault = "acts on the search for tails, and stories are sampled: their figures would be called the policy's"
    if fault:
        raise MitigateError(f"policy={policy.name} {fault}. Set policy=none, or one that filters")
    if isinstance(model, Api):
        check_trained(model, bool(config.recipe.post_train), policy)
        if model.prompt not in (allowed := ("chat", "text")):
            raise one_of("model.prompt", str(model.prompt), allowed)
        if model.system is not None and model.prompt != "chat":
            raise MitigateError(f"model.system needs model.prompt=chat, not {model.prompt}")
        endpoint: Endpoint = build(model.endpoint, "model.endpoint")
        rows, chosen, notices = find_prompts(config)
        wording = Wording(model.prompt, model.system)
        generator = f"{model.name} at {urlsplit(endpoint.url).hostname}"
        return Probe(rows, chosen, generator, endpoint.url, notices, endpoint=endpoint, wording=wording)
    device = find_device(config.probe.device)
    base = "/".join(Path(model.base).parts[-2:]) if Path(model.base).is_dir() else model.base
    if config.recipe.post_train:
        return _after_training(config, policy, base, device)
    check_trained(model, False, policy)
    start = find_start(model, False)
    check_continues(start)
    rows, chosen, notices = find_prompts(config)
    return Probe(rows, chosen, base, start.weights, notices, start, device)


def _of_file(config: Config) -> Probe:
    wanted = config.probed_targets()
    if config.recipe.prompts is not None:
        raise MitigateError(
            f"the stories of data.path={config.data.path} have prompts of their own; leave recipe.prompts out"
        )
    own = PAPER if wanted in LISTED else list_of(wanted)  # targets that prompts of the file may name
    loaded: Loaded = build(config.data.load, "data.load", _partial_=True)(target_list=own)
    chosen = targets_of_statements(wanted, loaded.rows)
    rows, notices = those_about(loaded.rows, chosen)
    return Probe(rows, chosen, config.title, notices=[*loaded.notices, *notices])


def _after_training(config: Config, policy: Policy, base: str, device: str) -> Probe:
    """A generator that is trained on a resource first."""
    if config.data.name == "stories":
        raise MitigateError(
            "data=stories has no triples that a generator could learn first (recipe.post_train=true): name a resource "
            "(data=sample or data=cn100k), or set train=false policy=none, or give stories with data.path=FILE"
        )
    if getattr(config.model, "prompt", None) == "chat":
        raise MitigateError(
            "a generator that learns texts first (recipe.post_train=true) continues texts and answers no chat; leave "
            "model.prompt=chat out, or set recipe.post_train=false"
        )
    settings, where = config.training()
    if launch.count_devices(where["accelerator"], where["devices"]) > 1:
        raise MitigateError(f"recipe=stories trains on one device, not on trainer.devices={where['devices']}")
    if where["strategy"] == "fsdp":
        raise MitigateError("recipe=stories trains on one device as it is; leave trainer.strategy=fsdp out")
    launch.check(settings, **where)
    corpus = triples_of(config.load_data())
    relations_in_training(corpus.rows)  # raises where there is none
    check_relations(policy, with_own(corpus.own_relations))
    rows, chosen, notices = find_prompts(config, corpus.rows)
    start = find_start(config.model, True)
    check_continues(start)
    scorers = Scorers(config.score)
    labelling = [*scorers.of_roles, *scorers.of_policy(policy)]
    labeller = config.labeller(labelling, list_of(chosen), corpus.own_relations)
    resource = Resource(corpus, policy, labeller, settings, where["accelerator"], config.described())
    content = as_parquet(corpus.rows) + as_parquet(chosen.select("target", "category"))
    digest = start.weights + files.digest_of(content + digest_of_relations(corpus.own_relations))
    generator = f"{base} after {config.data.name}, policy {config.policy.name}"
    notices = [*corpus.notices, *notices]
    return Probe(rows, chosen, generator, digest, notices, start, device, resource=resource)


def check_continues(start: Start) -> None:
    """Raise MitigateError for a model that does not continue a text."""
    fault = f"model.path={start.folder} holds tails, which continue no text" if start.folder.is_file() else ""
    if start.code == Seq2Seq.load:
        fault = "stories continue a prompt, which a sequence-to-sequence model does not: it maps one text to another"
    if fault:
        raise MitigateError(f"{fault}. Give a causal language model: model=hf model.base=NAME")


def find_prompts(config: Config, train: pl.DataFrame | None = None) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """The prompts of the project's templates or of the user's file, the targets that they are about, and notices.
    train: triples whose targets are those of probe.targets=data."""
    wanted, recipe = config.probed_targets(), config.recipe
    choose = partial(choose_targets, wanted, train, config.probe.fewest)
    if recipe.prompts is None:
        chosen = choose()
        return prompts(chosen, list_of(chosen)), chosen, []
    of_file, oddities = read_prompts(recipe.prompts)
    rows, chosen, notices = prompts_of_file(of_file, wanted, choose)
    return rows, chosen, [*oddities, *notices]


# Prompts of a user's file: each names the target that it is about, or has a slot for any target


PROMPT_COLUMNS: dict[str, str | FileColumn] = {
    "target": FileColumn(("target", "group"), optional=True),
    "category": FileColumn(("category",), optional=True),
    "template": FileColumn(("template", "id"), optional=True),
    "prompt": "prompt",
}
EXPECTED = "expected columns prompt, target (or group), category, template (or id)"
SLOT = re.compile(r"\{(a )?target\}", re.IGNORECASE)


def read_prompts(path: str | Path) -> tuple[pl.DataFrame, list[str]]:
    """The prompts of a file (row, and PROMPT_COLUMNS), and a sentence for each oddity. Targets are in the form of
    lists, null for any target; prompts that differ in their target alone have one template, in the place of a name
    their text with slots; it is null for a prompt by itself."""
    place, counts, rows, categories = Path(path), Counts(), list[tuple](), dict[str, str]()
    table, notices = read_table(place, PROMPT_COLUMNS, remedy=f"; {EXPECTED}")
    for row in table.iter_rows(named=True):
        target, category, template, text = ((row.get(name) or "").strip() for name in PROMPT_COLUMNS)
        word, has_slot = plain(target), bool(SLOT.search(text))
        category = category or targets().get(word, "own")
        category = plain(category) if plain(category) in CATEGORIES else category
        fault = None if text else "a blank prompt"
        if other := re.search(r"\{[^{}]*\}", SLOT.sub("", text)):
            fault = f"unknown slot {other[0]!r}; allowed: {{target}}, {{a target}}"
        elif text and not word and not has_slot:
            how = "name one in a column target, or give the prompt a slot such as {target}"
            fault = f"no target: {how}: {text[:60]!r}"
        elif word and categories.setdefault(word, category) != category:
            fault = f"the target {word!r} has the category {category!r}, and {categories[word]!r} above; use one"
        report(place, [(row["row"], fault)] if fault else [], counts)
        rows.append((row["row"], word or None, category, template or (text if has_slot else None), text))
    describe(counts, None)  # raises MitigateError for the faults together
    if not rows:
        raise MitigateError(f"{place} has no prompts; {EXPECTED}")
    return pl.DataFrame(rows, {"row": pl.UInt32, **dict.fromkeys(PROMPT_COLUMNS, pl.String)}, orient="row"), notices


def fill(template: str, target: str) -> str:
    """The template about a target: {target}, {a target} with its article; {Target} and {A target} with a capital."""

    def word(slot: re.Match[str]) -> str:
        filled = f"{article(target)} {target}" if slot[1] else target
        return filled[:1].upper() + filled[1:] if slot[0][1].isupper() else filled

    return SLOT.sub(word, template)


def prompts_of_file(
    rows: pl.DataFrame, wanted: Wanted, choose: Callable[[], pl.DataFrame]
) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """The prompts (words.prompts.PROMPTS) of a file's rows (read_prompts), the targets (columns TARGETS) that they are
    about, and notices.

    wanted: the setting of targets; "all" and "data" are those of the rows. choose: returns the wanted targets, for
    rows that name none, which are about each of them. Raises MitigateError where no row is about a wanted target."""
    of_targets, of_all = rows.drop_nulls("target"), rows.filter(pl.col("target").is_null())
    categories = dict(of_targets.select("target", "category").iter_rows())
    is_chosen, notices = wanted is not None and wanted not in LISTED, list[str]()
    chosen = choose() if is_chosen or of_all.height else as_targets([])
    of_file = pl.col("target").replace_strict(categories, default="own", return_dtype=pl.String)
    chosen = chosen.with_columns(category=pl.when(category="own").then(of_file).otherwise("category"))
    if is_chosen and of_targets.height:
        of_targets, notices = those_about(of_targets, chosen)
    elif not is_chosen:
        chosen = pl.concat([as_targets(categories), chosen]).unique("target", keep="first", maintain_order=True)
    of_each = of_all.drop("target", "category").join(chosen.select("target", "category"), how="cross")
    about = pl.concat([of_targets, of_each], how="diagonal").sort("row", maintain_order=True)
    texts = [fill(*row) for row in about.select("prompt", "target").iter_rows()]
    number = pl.int_range(1, pl.len() + 1, dtype=pl.UInt32)
    filled = about.with_columns(pl.Series("prompt", texts, pl.String), kind=pl.lit(OWN), row=number)
    is_named = pl.col("target").is_in(filled["target"].unique().implode())
    return filled.select(list(PROMPTS)), chosen.filter(is_named), notices


def tracked(config: Config, probe: Probe) -> dict[str, list[str]]:
    """The names that W&B groups and tags the run by: data and policy only where the generator was trained on them, or
    the stories are data; a model only where they were generated here."""
    groups = {"data"} if not probe.is_generated else {"policy", "data", "model"} if probe.resource else {"model"}
    return {group: [str(getattr(config, group).name)] for group in GROUPS if group in groups}


def facts_of(job: Job, probe: Probe, sampling: Sampling, data: str) -> dict[str, Any]:
    """The origin of the stories, for the page."""
    facts: dict[str, Any] = {"stories": probe.generator}
    if probe.is_generated:
        facts["drawn"] = ", ".join(f"{name} {getattr(sampling, name)}" for name in (*SAMPLING, "instruction"))
    if probe.start is not None:
        facts |= {"weights": probe.start.weights, **origin_facts(probe.start)}
    if probe.endpoint is not None:
        stories, endpoint = job.results["probe"].table(), probe.endpoint
        form = {"chat": "a chat", "text": "a text to be continued"}[probe.wording.prompt]
        facts["asked"] = f"{endpoint.name} at {endpoint.url}, {form}"
        facts["answered by"] = ", ".join(sorted({name for name in stories["model"] if name})) or "nothing"
        facts |= {"system prompt": probe.wording.system} if probe.wording.system else {}
        more = ", ".join(f"{name} {value}" for name, value in (endpoint.body or {}).items())
        facts |= {"further fields of requests": more} if more else {}
        facts["requests"] = cost_in_words(stories)
    if probe.resource is not None:
        policy, read = probe.resource.policy.name, job.results["ledger"].table().filter(split="train")
        facts["read"] = source_of({"name": data, **probe.resource.described["data"]})
        facts["policy"] = f"{policy}: kept {read.filter(pl.col('weight') > 0).height:,} of {read.height:,}"
        facts["training"] = job.results["train"].facts()
    return facts


def cost_in_words(stories: pl.DataFrame) -> str:
    """Requests, repeats and tokens of the result of ask_stories."""
    tries, sent, given = (int(stories[name].sum()) for name in ("tries", "prompt_tokens", "answer_tokens"))
    repeats = tries - stories.height
    return f"{counted(tries, 'request')}, {repeats:,} of them repeats; {sent:,} tokens in prompts, {given:,} in answers"


# Train and generate


def read_or_generate(job: Job, probe: Probe, sampling: Sampling) -> Result:
    """The stories, a row each, of a file or of the generator, which is trained first if there is a resource."""
    if probe.endpoint is not None:
        how = (probe.prompts, probe.endpoint, probe.wording, sampling)
        return job.stage("probe", ask_stories, *how, using=lambda work: {"parts": work.parts()})
    if probe.start is None:
        return job.stage("probe", read_stories, probe.prompts)
    if (resource := probe.resource) is not None:
        labelled = job.stage("corpus", Labeller.label, resource.labeller, resource.corpus.rows)
        ledger = job.stage("ledger", apply_policy, resource.policy, labelled, list_of(probe.targets))
        using = job.training("train", "model", accelerator=resource.accelerator)
        trained = job.stage("train", train_on_sentences, ledger, probe.start, resource.settings, using=using)
    else:
        trained = job.stage("train", as_it_is, probe.start)
    return job.stage(
        "probe",
        generate_stories,
        probe.prompts,
        probe.start,
        sampling,
        after=[trained],
        using=lambda work: {
            "model": None if resource is None else work.folder / "model",
            "parts": work.parts(),
            "device": probe.device,
        },
    )


def read_stories(stories: pl.DataFrame) -> pl.DataFrame:
    """The stories of a file, prompts (words.prompts.PROMPTS) with `story`, without reasoning, and with `outcome`."""
    texts = [without_reasoning(story) for story in stories["story"]]
    outcomes = [story_of(story, 1)[1] for story in stories["story"]]
    return stories.with_columns(story=pl.Series(texts, dtype=pl.String), outcome=pl.Series(outcomes, dtype=pl.String))


def generate_stories(
    prompts: pl.DataFrame, start: Start, how: Sampling, *, model: Path | None = None, parts: Parts, device: str = "cpu"
) -> pl.DataFrame:
    """Generate a story for each prompt (words.prompts.prompts), as probe.stories.sample_stories.

    model: the folder of the trained start; None: the start as it is. parts: stories that are saved already. Raises
    MitigateError for prompts that are too long for the model."""
    generator = as_language_model(start.load()) if model is None else LanguageModel.load(model)
    return sample_stories(generator, prompts, how, parts=parts, device=device)


def label_sentences(stories: pl.DataFrame, labeller: Labeller, *, most: int) -> pl.DataFrame:
    """Mask and label the first `most` whole sentences of each story, a row each: its columns (PROMPTS), with
    `sentence`, from 1, and `statement`, the sentence. A story without one, and a refusal, has no row.

    stories: prompts with `story` and `outcome`. Raises MitigateError where none has a whole sentence."""
    whole = pl.col("story").map_elements(lambda story: whole_sentences(story)[:most], return_dtype=pl.List(pl.String))
    answered = stories.filter(outcome=ANSWERED).with_columns(statement=whole)
    if answered.is_empty():
        outcomes = ", ".join(f"{outcome} {count:,}" for outcome, count in stories["outcome"].value_counts().iter_rows())
        raise MitigateError(
            f"none of the {stories.height:,} stories has a whole sentence ({outcomes}), so nothing can be measured; "
            "allow longer ones with recipe.max_tokens, or take other prompts or another model"
        )
    rows = answered.select(*PROMPTS, "statement").explode("statement")
    rows = rows.with_columns(sentence=pl.int_range(1, pl.len() + 1).over("row", "target"))
    return labeller.label(rows).sort("row", maintain_order=True)


# Report


def notices_of(
    metrics: Mapping[str, Any], stories: pl.DataFrame, sentences: pl.DataFrame, how: Measurement, fewest: int
) -> list[str]:
    """Limits of the figures that a reader must know first."""
    notices, outcomes = list[str](), dict(stories["outcome"].value_counts().iter_rows())
    if refused := outcomes.get(REFUSED):
        table = refusals(stories, how.targets).drop_nulls("refused").sort("refused", "target")
        least, most = table.row(0, named=True), table.row(-1, named=True)
        notices.append(
            f"Refused: {counted(refused, 'prompt')} of {stories.height:,}, from {least['refused']:.0f} % about "
            f"“{least['target']}” to {most['refused']:.0f} % about “{most['target']}”. Refusals are not labelled; harm "
            "is measured in the other answers."
        )
    if reasoning := outcomes.get(REASONING):
        notices.append(
            f"{counted(reasoning, 'answer')} of {stories.height:,} ended in reasoning, without a story; allow longer "
            "ones with recipe.max_tokens."
        )
    if failed := outcomes.get(FAILED):
        why = ", ".join(sorted(set(stories.filter(outcome=FAILED)["why"])))
        notices.append(f"Requests about {counted(failed, 'prompt')} of {stories.height:,} failed ({why}): no story.")
    notices += how.notices(tally(sentences, how.wordings))
    if cut := outcomes.get(CUT):
        notices.append(f"No whole sentence in {counted(cut, 'answer')} of {stories.height:,}: no story.")
    if short := metrics["stories/short"]:
        notices.append(f"{short:,} of {metrics['stories']:,} stories have fewer than {fewest} whole sentences.")
    return notices + long_texts(sentences["masked"])


SIGNS = {"prejudice": "negative", "favouritism": "positive"}
MEANS = {"prejudice": "O-", "favouritism": "O+"}
REFUSALS = ("refused", "D_refused")
BY_CHANCE = {"D_O": "disparity", "by_chance_D_O": "by chance", "p_D_O": "p", "stories": "% of stories"}
PER_KIND, SHOWN = 6, 60  # stories of a kind that are examples; prompts, and targets, in a table of the page
MORE = "Measure more or longer stories (recipe.max_tokens), or train the generator longer."
LIMIT = "Sentences are labelled one by one, without meaning across them. Those not about the target count too."
BY_SEED = "Stories are drawn by chance: with another seed each target has other stories."
BY_PHRASE = "A refusal in words is known by stock phrases in English. A refusal in other words is labelled as a story."


def write_report(
    figures: pl.DataFrame,
    flat: Mapping[str, Any],
    stories: pl.DataFrame,
    sentences: pl.DataFrame,
    how: Measurement,
    before: Sequence[str],
    *,
    fewest: int,
    sampled: bool,
    folder: Path,
    about: Mapping[str, Any],
    **fields: Any,
) -> dict[str, Any]:
    """Write the page, its tables and pictures, statements.tsv and stories.txt. before: notices of the input;
    sampled: whether the stories were generated here; fields: further ones of the page. Returns its verdict and
    notices."""
    labels, metrics = list(how.wordings), Results.of(figures, flat)
    per_story = shares(sentences, labels).join(stories.select("row", "target", "story"), on=["row", "target"])
    frames = how.tables(tally(sentences, labels))
    other = stories.filter(pl.col("outcome") != ANSWERED).select(*PROMPTS, "outcome", "story")
    tables = {"targets": how.target_list.table(how.targets), "measures": metrics.overall, "stories": per_story}
    tables |= {f"targets_{column}": frame for column, frame in frames.items()} | {"without_story": other}
    made = page(
        metrics,
        scorers=how.scorers,
        frames=frames,
        statements=sentences,
        per_story=per_story,
        outcomes=stories["outcome"],
        notices=[*before, *notices_of(metrics, stories, sentences, how, fewest), *([BY_SEED] * sampled)],
        tables=tables,
        **fields,
        **about,
    )
    write(made, folder, "stories.html")
    files.write(folder / "statements.tsv", statement_lines(sentences))
    # Lines `prompt|||story`, refusals too, as recipe=stories reads them with data=stories.
    one_line = [pl.col(name).str.replace_all(r"\s+", " ") for name in ("prompt", "story")]
    rows = stories.filter(pl.col("story") != "").unique("row", keep="first", maintain_order=True)
    lines = rows.select(pl.concat_str(one_line, separator=BETWEEN)).to_series()
    files.write(folder / "stories.txt", "".join(f"{line}\n" for line in lines))
    return {"verdict": f"{made.state}. {made.hedge}", "notices": list(made.notices)}


def page(
    results: Results,
    generator: str,
    *,
    scorers: Sequence[str],
    frames: Mapping[str, pl.DataFrame],
    statements: pl.DataFrame,
    per_story: pl.DataFrame,
    outcomes: pl.Series,
    chosen: Sequence[str],
    **about: Any,
) -> Page:
    """generator: the model or file of the stories; scorers: that of the first screen first; frames: of targets by label
    column; statements: labelled sentences; per_story: measure.stories.shares of each story, with its text; outcomes: of
    all prompts; chosen: targets whose bars are drawn; about: further fields of Page."""
    rows, first = results.table, scorers[0]
    state, hedge = verdict(results, generator, scorers)
    naming, distinct = (number(results[name], 0) for name in ("naming_target", "distinct_sentences"))
    repeats = f"{naming} % of the stories name their target again. {distinct} % of the sentences are distinct."
    return Page(
        state=state,
        hedge=hedge,
        picture=sections.shares_picture(rows, first),
        numbers=first_numbers(rows, first),
        sections=[
            sections.measures(rows, REFUSALS),
            Section("Answers", _answers(rows, outcomes, frames, scorers)),
            Section("Differences between targets", [_differences(rows)]),
            sections.gallery(frames, scorers, chosen),
            sections.target_section(frames, statements, scorers, scorers),
            Section("Stories", [_examples(per_story, scorers)]),
        ],
        limits=[
            *(repeats, LIMIT, BY_PHRASE, *sections.LIMITS),
            *sections.left_out(frames[first]["target"].to_list()),
        ],
        **about,
    )


def verdict(results: Results, generator: str, scorers: Sequence[str]) -> tuple[str, str]:
    """The state: whether targets differ by more than chance; and its hedge: in what (Bonferroni), and of how many."""
    polarised = " and ".join(f"{results[key_of('polarised', scorer)]:.1f} % by {scorer}" for scorer in scorers)
    about = counted(results["targets"] - results["empty_targets"], "target")
    hedge = f"Of {results['statements']:,} sentences in {results['stories']:,} stories from {generator} about {about}, "
    hedge += f"{polarised} are not neutral."
    if refused := results.get("refused"):
        hedge += f" {number(refused, 1)} % of the prompts were refused."
    if reason := no_conclusion({"": [results]}):
        return OPEN, f"{reason.partition(': ')[2].capitalize()} {MORE} {hedge}"
    pairs = [(f"{word} {scorer}", f"p_D_{MEANS[share]}", scorer) for scorer in scorers for share, word in SIGNS.items()]
    tested = {name: row["value"] for name, key, scorer in pairs if (row := figure(results.table, key, scorer))}
    if beyond := [name for name, p in tested.items() if p < 0.05 / len(tested)]:
        return "Targets differ by more than chance", f"In {', '.join(beyond)}. {hedge}"
    return "Targets not shown to differ beyond chance" if tested else "Stories about a single target", hedge


def first_numbers(rows: pl.DataFrame, scorer: str) -> list[Number]:
    """The share of refused prompts, or where none is the neutral mean; the share of stories with a negative sentence;
    and the disparity beside that by chance."""
    numbers, refused = sections.neutral_number(rows, scorer), figure(rows, "refused")
    if refused and refused["value"]:
        cell = sections.shown(refused, 1, " %")
        numbers = [Number("refused prompts", cell.text, ", ".join([*cell.below, "mean over targets"]))]
    measures = ("stories-", "D_O-", "by_chance_D_O-", "p_D_O-")
    share, *compared = ((figure(rows, name, scorer) or {"value": None})["value"] for name in measures)
    numbers.append(Number("negative stories ↓", f"{number(share, 1)} %", f"with a negative sentence by {scorer}"))
    if None not in compared:
        spread, chance = (number(value**0.5, 1) for value in compared[:2])
        note = f"points, standard deviation of O−; {chance} by chance, p {p_value(compared[2])}"
        numbers.append(Number("spread over targets ↓", spread, note))
    return numbers


def _answers(
    rows: pl.DataFrame, outcomes: pl.Series, frames: Mapping[str, pl.DataFrame], scorers: Sequence[str]
) -> list[Part]:
    """Outcomes of the prompts, and refusals beside harm for each target; nothing where each has its story."""
    counts = dict(outcomes.value_counts().iter_rows())
    if set(counts) <= {ANSWERED}:
        return []
    answers = [
        {"outcome": name, "meaning": meaning, "prompts": counts[name], "share": 100 * counts[name] / len(outcomes)}
        for name, meaning in OUTCOMES.items()
        if name in counts
    ]
    columns = [text("outcome"), text("meaning"), Column("prompts", "prompts", 0), Column("%", "share")]
    parts: list[Part] = [Table("Outcomes of the prompts", columns, answers, kind="narrow")]
    refused = rows.filter(by="target", measure="refused").sort("value", "group", descending=[True, False])
    table = refused.select("value", "low", "high", prompts="n", target="group").head(SHOWN)
    if REFUSED in counts:
        columns = [text("target"), Column("prompts", "prompts", 0), Column("refused, %", "value", bounds="")]
        for scorer in scorers:
            of_scorer = frames[scorer].select("target", **{f"{scorer} {share}": share for share in SIGNS})
            table = table.join(of_scorer, on="target", how="left", maintain_order="left")
            columns += figures(1, **{f"{scorer} {share}": f"{scorer}, {word}, %" for share, word in SIGNS.items()})
        caption = "Refusals and harm: percent of a target's prompts, with the exact 95 % interval, and of the "
        parts.append(Table(caption + "sentences of its other answers.", columns, table))
    return parts


def _differences(rows: pl.DataFrame) -> Table | None:
    """Disparity beside chance."""
    caption = "Disparity over targets, and that of stories permuted among the targets of their prompt (p: how many "
    caption += "of these are as large)."
    signs = {MEANS[share][-1]: word for share, word in SIGNS.items()}
    whole = rows.filter(pl.col("measure").is_in([name + sign for name in BY_CHANCE for sign in signs]), by="all")
    down, across = lambda row: f"{signs[row['measure'][-1]]} {row['scorer']}", lambda row: row["measure"][:-1]
    return crossed(caption, whole, BY_CHANCE, down=down, across=across, first="sentences")


def _examples(per_story: pl.DataFrame, scorers: Sequence[str]) -> Fold:
    """The stories of each kind with the largest shares of sentences that are not neutral."""
    neutral = pl.mean_horizontal(f"{scorer}_neutral" for scorer in scorers)
    most = per_story.sort(neutral, "row", maintain_order=True).group_by("kind", maintain_order=True).head(PER_KIND)
    percent = figures(0, **{f"{scorer}_neutral": f"neutral by {scorer}, %" for scorer in scorers})
    columns = [text("prompt", kind="sentence"), text("story", kind="sentence"), *percent]
    kinds = grouped(most.rows(named=True), lambda row: row["kind"])
    table = Table("Extremes, not a sample; stories.txt has all stories.", columns, kinds)
    return Fold("The stories of each kind with the fewest neutral sentences", [table], warning=True)

"""Stories of a generator, and their sentences: prompts of a user's file, and the generator, as it is or trained on the
sentences of a resource, all of them or those that a policy keeps, as CSG on ConceptNet (Guan et al. 2020)."""

import hashlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from mitigate.errors import MitigateError
from mitigate.files import replacing_folder
from mitigate.load.statements import BETWEEN
from mitigate.load.targets import Wanted, those_about
from mitigate.probe.chat_stories import ANSWER
from mitigate.probe.stories import Sampling, sample_stories
from mitigate.score.labeller import Labeller
from mitigate.train.base_model import Start
from mitigate.train.comet import Settings
from mitigate.train.generator import begin_training
from mitigate.train.stories import Texts, fit
from mitigate.triples import Parts
from mitigate.words.outside_text import counted, whole_sentences
from mitigate.words.prompts import OWN, PROMPTS
from mitigate.words.targets import LISTED, as_targets, named
from mitigate.words.template_slots import fill, fits
from models.hf import LanguageModel, Seq2Seq

SENTENCES = 5  # of a training text, as many as of a story
__all__ = ["Sampling", "generate_stories"]


def train_on_sentences(
    ledger: pl.DataFrame, start: Start, settings: Settings, *, model: Path, checkpoints: Path, **how: Any
) -> dict[str, Any]:
    """Train the start as a language model on the statements of the ledger's valid triples, by their weights, and save
    it in the folder `model`. Returns the fields of train.comet.Fitted.

    ledger: what apply_policy returns. checkpoints: a folder from which a killed training resumes if it holds one of
    this fingerprint. how: fingerprint, accelerator and log, as train.stories.fit takes them. Raises MitigateError where
    nothing is left to train on."""
    rows = ledger.filter(pl.col("weight") > 0, "valid")
    generator = as_language_model(start.load())
    begin_training(generator)
    train, dev = (paragraphs(rows.filter(split=split)) for split in ("train", "dev"))
    fitted = fit(generator, train, settings, checkpoints, dev=dev, **how)
    generator.end_training()
    with replacing_folder(model) as part:
        generator.save(part, as_comet=False)
    return fitted._asdict()


def check_tells(start: Start) -> None:
    """Raise MitigateError for a model that does not continue a text."""
    if start.code == Seq2Seq.load:
        raise MitigateError(
            "stories continue a prompt, which a sequence-to-sequence model does not: it maps one text to another. Give "
            "a causal language model: model=hf model.base=NAME"
        )
    if start.folder.is_file():
        raise MitigateError(
            f"model.path={start.folder} holds tails, which continue no text. Give a causal language model: model=hf "
            "model.base=NAME"
        )


def as_language_model(loaded: Any) -> LanguageModel:
    """Return a loaded model as one that continues any text: the decoder of a COMeT is a language model once it is saved
    as one."""
    if isinstance(loaded, LanguageModel):
        return loaded
    with tempfile.TemporaryDirectory(prefix="mitigate-") as folder:
        loaded.save(Path(folder))
        return LanguageModel.load(Path(folder))


def paragraphs(rows: pl.DataFrame) -> Texts:
    """Join rows of a ledger to texts: the statements about one head, up to SENTENCES a text, with the mean of their
    weights."""
    place = (pl.int_range(pl.len()).over("head") // SENTENCES).alias("place")
    texts = rows.group_by("head", place, maintain_order=True).agg(
        text=pl.col("statement").str.join(". ") + ".", weight=pl.col("weight").cast(pl.Float64).mean()
    )
    return Texts(texts["text"].to_list(), texts["weight"].to_numpy())


def generate_stories(
    prompts: pl.DataFrame, start: Start, how: Sampling, *, model: Path | None = None, parts: Parts, device: str = "cpu"
) -> pl.DataFrame:
    """Generate a story for each prompt (words.prompts.prompts): the prompts with `story`, its whole sentences, "" for
    none.

    model: the folder of the trained start; None: the start as it is. parts: stories that are saved already. Raises
    MitigateError for prompts that are too long for the model."""
    generator = as_language_model(start.load()) if model is None else LanguageModel.load(model)
    return sample_stories(generator, prompts, how, parts=parts, device=device)


def label_sentences(stories: pl.DataFrame, labeller: Labeller, *, most: int) -> pl.DataFrame:
    """Mask and label the first `most` sentences of each story.

    stories: prompts with `story`, as generate_stories returns. Raises MitigateError where none has a whole sentence."""
    found = sentences(stories, most)
    if found.is_empty():
        raise MitigateError(
            f"none of the {stories.height:,} stories has a whole sentence, so nothing can be measured; allow "
            "longer ones with recipe.max_tokens, or take another model"
        )
    return labeller.label(found).sort("row", maintain_order=True)


def sentences(stories: pl.DataFrame, most: int) -> pl.DataFrame:
    """The first `most` whole sentences of each story, a row each: its columns, with `sentence`, from 1, and
    `statement`, the sentence. A story without one has no row."""
    whole = pl.col("story").map_elements(lambda story: whole_sentences(story)[:most], return_dtype=pl.List(pl.String))
    found = stories.with_columns(statement=whole).filter(pl.col("statement").list.len() > 0)
    found = found.drop("story", *ANSWER, strict=False)
    return found.explode("statement").with_columns(sentence=pl.int_range(1, pl.len() + 1).over("row", "target"))


def export(stories: pl.DataFrame) -> str:
    """Write the stories as lines `prompt|||story`, as recipe=stories reads them with data=stories."""
    one_line = [pl.col(name).str.replace_all(r"\s+", " ") for name in ("prompt", "story")]
    rows = stories.filter(pl.col("story") != "").unique("row", keep="first", maintain_order=True)
    return "".join(f"{line}\n" for line in rows.select(pl.concat_str(one_line, separator=BETWEEN)).to_series())


def as_read(stories: pl.DataFrame) -> pl.DataFrame:
    """Return the stories of a file unchanged: prompts (words.prompts.PROMPTS) with `story`."""
    return stories


def prompts_of_file(
    rows: pl.DataFrame, wanted: Wanted, choose: Callable[[], pl.DataFrame], *, most: int | None = None, seed: int = 1
) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """The prompts (words.prompts.PROMPTS) of a file's rows (load.prompts.PROMPTS), the targets (columns TARGETS) that
    they are about, and notices.

    wanted: the setting of targets; "all" and "data" are those of the rows. choose: returns the wanted targets, for
    rows that name none, which are about each of them. most: prompts of a target; the same templates are drawn for all
    targets. Raises MitigateError where no row is about a wanted target."""
    of_targets, open_rows = rows.drop_nulls("target"), rows.filter(pl.col("target").is_null())
    in_file = as_targets(
        dict(of_targets.select("target", "category").unique("target", maintain_order=True).iter_rows())
    )
    is_chosen = wanted is not None and wanted not in LISTED
    chosen = choose() if is_chosen or open_rows.height else as_targets([])
    categories = dict(in_file.select("target", "category").iter_rows())
    of_file = pl.col("target").replace_strict(categories, default="own", return_dtype=pl.String)
    chosen = chosen.with_columns(category=pl.when(category="own").then(of_file).otherwise("category"))
    notices: list[str] = []
    if is_chosen and of_targets.height:
        of_targets, notices = those_about(of_targets, chosen)
    elif not is_chosen:
        chosen = pl.concat([in_file, chosen]).unique("target", keep="first", maintain_order=True)
    of_each = open_rows.drop("target", "category").join(chosen.select("target", "category"), how="cross")
    about = pl.concat([of_targets, of_each], how="diagonal")
    found, left_out = _filled(about.sort("row", maintain_order=True))
    if left_out:
        notices.append(
            f"{named(left_out)}: left out of templates in which they have no grammatical place (a pronoun in place of "
            "{target}, or another word in a template of pronouns alone)"
        )
    if found.is_empty():
        raise MitigateError(f"no prompt is left: {'; '.join(notices)}. Give other targets (probe.targets) or prompts")
    if most is not None:
        kept = _drawn(found, most, seed)
        notices += [f"{counted(kept.height, 'prompt')} of {found.height:,} drawn: at most {most:,} of a target"]
        found = kept
    is_named = pl.col("target").is_in(found["target"].unique().implode())
    return found.with_columns(row=pl.int_range(1, pl.len() + 1, dtype=pl.UInt32)), chosen.filter(is_named), notices


def _filled(about: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """The prompts with their slots filled, and the targets left out of one of them."""
    rows, left_out = [], dict[str, None]()
    for row, target, category, template, prompt, is_template in about.select(
        "row", "target", "category", "template", "prompt", "is_template"
    ).iter_rows():
        if is_template and not fits(prompt, target):
            left_out[target] = None
            continue
        rows.append((row, target, category, OWN, template, fill(prompt, target) if is_template else prompt))
    return pl.DataFrame(rows, PROMPTS, orient="row"), list(left_out)


def _drawn(prompts: pl.DataFrame, most: int, seed: int) -> pl.DataFrame:
    """At most so many prompts of each target. The order of templates is the same for all targets."""
    order = pl.coalesce("template", "prompt").map_elements(
        lambda text: hashlib.sha256(f"{seed}\t{text}".encode()).hexdigest(), return_dtype=pl.String
    )
    kept = prompts.with_columns(order=order).sort("order", maintain_order=True).group_by("target", maintain_order=True)
    return kept.head(most).sort("row", maintain_order=True).select(list(PROMPTS))

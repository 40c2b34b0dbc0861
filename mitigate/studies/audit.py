"""recipe=audit: the harms of a resource as it is (harms paper, Section 3): read the rows about targets, label and count
them, measure, report.

A resource of any size is read a chunk at a time. The rows of a chunk are written at once, so that after a kill only
missing chunks are read, and every fault of the file is found before anything is labelled."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
from scipy.stats import binomtest

from mitigate import files
from mitigate.errors import MitigateError, counted, one_of
from mitigate.files import frame_of
from mitigate.finished import source_of
from mitigate.load.corpus import digest_of_relations
from mitigate.load.stream import CHUNK, Chunk, Counts, Kind, Loaded, Streamed
from mitigate.load.targets import (
    SENSES,
    Match,
    Wanted,
    about_targets,
    sentences_about_targets,
    targets_of_statements,
    those_about,
)
from mitigate.measure.harms import Measurement, tally, total, wordings
from mitigate.measure.intervals import Bootstrap
from mitigate.measure.results import Results, measured
from mitigate.progress import progress
from mitigate.recipes.config import Config, Scorers
from mitigate.recipes.job import open_job, say, say_notes, say_verdict
from mitigate.report import sections
from mitigate.report.page import Fold, Number, Page, Part, Section, write
from mitigate.report.table import Cell, Column, Table, figures, span, text
from mitigate.report.table import number as as_number
from mitigate.score.base import check_name
from mitigate.score.labeller import Labeller, label_masked, mask
from mitigate.score.labels import long_texts, not_english
from mitigate.stages import PartFolder, as_parquet, digest_of_values, statement_lines
from mitigate.triples import FAVOURITISM, NEUTRAL, OTHER, PREJUDICE, ROLES, TEMPLATES, Parts
from mitigate.words.identity_terms import read_further_terms, read_terms
from mitigate.words.targets import TargetList, ambiguity_notice, as_targets, choose_targets, list_of, notice_of_own

WHERE = ("_target_", "root", "path", "relations", "on_bad_line")  # loader options that Resource.fingerprint covers
FINDERS = {"triples": about_targets, "sentences": sentences_about_targets}
COUNTS = {"kind": pl.String, "what": pl.String, "count": pl.Int64}
ROWS, ABOUT_A_TARGET, STATEMENTS = (("counted", what) for what in ("rows", "about a target", "statements"))
MOST = 200_000  # statements that examples, the export and the record in W&B are chosen from
REPEATED = "repeated statement about a target, each of which counts"
UNLISTED, NAMED = "not a target", 5
DRAWN = "Examples are of {:,} statements, chosen by chance from {:,}; figures are of all of them."


def run(config: Config) -> float | None:
    """Measure the harms of what `data` names; returns the metric that `optimized_metric` names."""
    loaded, named, measure = config.load_data(), config.named_targets(), config.measure
    options = {name: value for name, value in config.data.load.items() if name not in WHERE}
    digest, size, own_relations = loaded.digest, loaded.size, loaded.own_relations
    resource, chosen = resource_of(loaded, named, splits=config.filter.splits, options=options)
    del loaded  # the rows of a large file would be in memory twice
    targets, target_list = chosen.select("target", "category"), list_of(chosen)
    match: Match = measure.match or ("paper" if measure.masking == "paper" else "exact")
    search = Search(targets, match, target_list)
    scorers, given = Scorers(config.score), given_labels(config.data.label_column)
    labeller = config.labeller([] if given else scorers.labelling, target_list, own_relations)
    templates = resource.templates(measure.template)
    columns = {given: (given, "paper")} if given else wordings([one.name for one in labeller.scorers], templates)
    intervals = Bootstrap(resamples=measure.resamples, seed=config.seed)
    how = Measurement(targets, columns, target_list, intervals, measure.empty_targets)
    content = digest.encode() + as_parquet(targets) + target_list.digest.encode()
    source = files.digest_of(content + digest_of_relations(own_relations))
    is_theirs = (
        named is None
        and measure.template != "neutral"
        and measure.empty_targets == "zero"
        and bool({*ROLES} & {*how.scorers})
    )
    paper = config.data.paper if is_theirs else None
    title, described = config.title, config.described(["data"])["data"]
    say_notes(notice_of_own(targets))
    say(f"  {title}: {size}, {counted(targets.height, 'target')}")

    name = f"audit-{config.data.name}-{given or config.score.regard or config.score.sentiment}"
    with open_job(config, name, source) as job:
        rows = job.stage(
            "read",
            read_rows,
            resource,
            search,
            using=lambda work: {"rows": work.parts("rows"), "counted": work.parts(), "title": title},
        )
        tallied = job.stage(
            "tally",
            count_statements,
            labeller,
            columns,
            given=given,
            after=[rows],
            using=lambda work: {
                "rows": PartFolder(work.folder / "rows"),
                "num_rows": sum_counts([rows.table()])[STATEMENTS],
                "statements": work.parts("statements"),
            },
        )
        about = {"seed": config.seed, "data": config.data.name, "fingerprint": source}
        job.measure(measure_resource, tallied, rows, how, facts=about)
        facts = {
            "data": source_of({"name": config.data.name, **described}),
            "data fingerprint": source,
            "masking": labeller.masking,
            "targets without statements": {"zero": "count as 0 %", "exclude": "left out"}[how.empty_targets],
            "match": "as the file says" if resource.kind == "statements" else match,
            **{f"{scorer.name} scorer": scorer.fingerprint for scorer in labeller.scorers},
        }
        notes = frame_of("paper_audit_notes.csv", infer_schema=False)  # on differences from the paper's figures
        report = job.stage(
            "report",
            write_report,
            job.results["results"],
            job.results["metrics"],
            tallied,
            how,
            resource,
            rows,
            stated=paper_figures(paper) if paper else None,
            explained=notes.filter(resource=paper)["note"].to_list() if paper else [],
            title=title,
            demonstration=DEMONSTRATED if described["demonstration"] else False,
            chosen=config.shown_targets(targets),
            after=[tallied, job.folder.name],
            using=lambda work: {"folder": work.folder, "about": job.about(facts)},
        )
        if job.is_new():
            metrics = job.figures
            job.record_metrics(metrics)
            if job.records_texts:
                statements, _ = choice(job.folder / "statements", config.seed)
                job.record_statements(statements.select("target", "category", "statement", *how.wordings))
            job.record_plots()
            say_verdict(report.facts()["verdict"])
            say("\n" + sections.console(metrics.table, ["D_R"], verbose=not job.brief))
            say_notes(report.facts()["notices"])
            say(f"  report      {job.folder / 'audit.html'}")
    return None if config.dry_run else job.figures.get(config.optimized_metric)


def given_labels(name: str | None) -> str | None:
    """The column of labels that the file gives, if any. Raises MitigateError for a name with another meaning in tables
    or metrics."""
    if not name:
        return None
    try:
        check_name(name.lower())
    except MitigateError as error:
        raise MitigateError(f"data.label_column={name.lower()}: {error}") from error
    return name.lower()


# The resource, in chunks


@dataclass(frozen=True, eq=False)
class Resource:
    """A resource to audit."""

    loaded: Loaded | Streamed
    options: Mapping[str, Any] = field(default_factory=dict)  # of the loader of a Streamed, which decide its rows
    splits: str = "train"  # whose valid triples count: "train", or "all"

    @property
    def kind(self) -> Kind:
        """Triples, sentences, or statements whose targets are given."""
        return self.loaded.kind

    @property
    def fingerprint(self) -> str:
        """The hash of what decides the rows: the content, and for a file the settings of reading it."""
        if isinstance(self.loaded, Loaded):
            return digest_of_values(self.loaded.digest, self.splits)
        how = (self.loaded.kind, self.loaded.on_bad_line, self.loaded.parse, dict(self.options), self.splits)
        return digest_of_values(self.loaded.digest, *how, self.loaded.own_relations)

    def chunks(self, finished: Callable[[int], bool] = lambda _: False) -> Iterator[tuple[int, float, Chunk | None]]:
        """Yield chunks as Streamed.chunks, of triples those that count."""
        for number, share, chunk in self.loaded.chunks(finished):
            if chunk is not None and self.kind == "triples":
                chunk = counting(chunk, self.splits)
            yield number, share, chunk

    def templates(self, template: str | None = None) -> Sequence[str]:
        """The templates to measure with: the given one, or all of the resource. Raises MitigateError for another."""
        allowed = TEMPLATES if self.kind == "triples" else TEMPLATES[:1]
        if template is None:
            return allowed
        if template not in TEMPLATES:
            raise one_of("measure.template", template, TEMPLATES)
        if template not in allowed:
            raise MitigateError(
                f"measure.template={template} needs triples: a plain statement does not mark the words of its "
                "relation; set measure.template=paper, or give the triples (data=triples)"
            )
        return (template,)


def resource_of(
    loaded: Loaded | Streamed, wanted: Wanted = None, *, splits: str = "train", options: Mapping[str, Any] | None = None
) -> tuple[Resource, pl.DataFrame]:
    """Return a resource of what a loader returned, and the targets (target, category) to measure over.

    wanted: as in words.targets.choose_targets; None: those named in statements, the 329 for triples. splits: "train",
    or "all" for the valid triples of dev and test too. options: of the loader of a file of any size, such as the names
    of its columns. Raises MitigateError for targets that do not exist."""
    if loaded.kind == "statements" and isinstance(loaded, Loaded):
        targets = targets_of_statements(wanted, loaded.rows)
        rows, notices = those_about(loaded.rows, targets)
        return Resource(replace(loaded, rows=rows, notices=[*loaded.notices, *notices])), targets
    resource = Resource(loaded, options or {}, splits)
    if wanted != "data":
        return resource, choose_targets("all" if wanted is None else wanted)
    if isinstance(loaded, Streamed):
        raise MitigateError(
            "recipe.targets=data needs a resource that is read as a whole; leave it out: the measures skip targets "
            "without statements"
        )
    return resource, choose_targets("data", counting(Chunk(loaded.rows, Counts()), splits).rows)


def counting(chunk: Chunk, splits: str) -> Chunk:
    """Keep the valid triples of the splits that count, and count the others as left out."""
    valid = chunk.rows.filter("valid")
    left_out = Counts({("left out", "labelled 0 (not valid)"): chunk.rows.height - valid.height})
    if splits == "all":
        return Chunk(valid, +(chunk.counts + left_out))
    train, others = valid.filter(split="train"), "valid triples of other splits; filter.splits=all counts them too"
    left_out["left out", others] = valid.height - train.height
    return Chunk(train, +(chunk.counts + left_out))


def counts_table(counts: Counts) -> pl.DataFrame:
    """Return counts as a table (kind, what, count)."""
    return pl.DataFrame([(*key, count) for key, count in counts.items()], schema=COUNTS, orient="row")


def sum_counts(parts: Iterable[pl.DataFrame]) -> Counts:
    """Sum tables of counts."""
    counts = Counts()
    for part in parts:
        for kind, what, count in part.iter_rows():
            counts[kind, what] += count
    return counts


# Read the rows about targets


@dataclass(frozen=True)
class Search:
    """The targets that rows are searched for, and how."""

    targets: pl.DataFrame  # (target, category)
    match: Match = "exact"
    target_list: TargetList | None = None  # the forms of own targets; None: as `targets` have them


def read_rows(
    resource: Resource, search: Search, *, title: str = "the resource", rows: Parts, counted: Parts
) -> pl.DataFrame:
    """Save the rows about a target, each with its target and category, as parts `rows`, a part for each
    chunk. Returns counts (kind, what, count): of rows left out, by reason, of all rows, of rows about a target, and of
    statements.

    title: name of the resource in messages. counted: parts with the counts of each chunk, needed until the result is
    saved. Raises MitigateError for bad lines, unless they are to be left out, and where nothing is about a target."""
    with progress("read", 1.0, "rows") as advance:
        for number, share, chunk in resource.chunks(finished=lambda number: number in rows and number in counted):
            if chunk is None:
                advance(0, to=share)
                continue
            statements, num_about = about(resource, chunk.rows, search)
            rows.save(number, statements)
            sizes = Counts({ROWS: chunk.rows.height, ABOUT_A_TARGET: num_about, STATEMENTS: statements.height})
            counted.save(number, counts_table(chunk.counts + sizes + unlisted(resource, chunk.rows, search)))
            advance(chunk.height, to=share)
    counts = sum_counts(counted)
    if num_repeated := repeats(rows):
        counts["noted", REPEATED] += num_repeated
    left_out = "; ".join(resource.loaded.describe(counts))  # raises for bad lines
    if not counts[ABOUT_A_TARGET]:
        others = {"exact": "contains finds them inside phrases", "paper": "exact finds them in the plural"}
        remedy = f"; measure.match={others[search.match]}" if search.match in others else ""
        raise MitigateError(
            f"no statement in {title} ({counts[ROWS]:,} rows) is about any of the {search.targets.height:,} "
            f"targets{remedy}; recipe.targets=[...] sets others" + (f". Besides, {left_out}" if left_out else "")
        )
    return counts_table(counts)


def about(resource: Resource, rows: pl.DataFrame, search: Search) -> tuple[pl.DataFrame, int]:
    """A row for each row and each target it is about; and the number of rows about a target. Capitals of sentences,
    which tell polish from Polish, are folded afterwards, as in the paper's release."""
    if resource.kind == "statements":
        return rows, rows.drop_nulls("target")["row"].n_unique()  # their file says what they are about
    placed = rows.with_row_index("_place")  # generations of one line have one row number
    statements = FINDERS[resource.kind](placed, search.targets, search.match, search.target_list)
    num_about = statements["_place"].n_unique()
    if resource.kind == "sentences":
        statements = statements.with_columns(pl.col("statement").str.to_lowercase())
    return statements.drop("_place", *SENSES, strict=False), num_about


def unlisted(resource: Resource, rows: pl.DataFrame, search: Search) -> Counts:
    """The number of rows about each group of people that is not among the targets (identity_terms)."""
    if resource.kind == "statements" or search.match == "paper":
        return Counts()
    listed = search.target_list or list_of(search.targets)
    others = _others(frozenset(listed.every_form))
    statements = FINDERS[resource.kind](rows, others, search.match, list_of(others))
    return Counts({(UNLISTED, word): count for word, count in statements["target"].value_counts().iter_rows()})


@cache
def _others(listed: frozenset[str]) -> pl.DataFrame:
    """The groups of identity_terms that have no form in the list, as targets."""
    terms = pl.concat([read_terms().select("term", "plural"), read_further_terms().select("term", "plural")])
    forms = dict(terms.unique("term", maintain_order=True).iter_rows())
    others = {term: [plural] for term, plural in forms.items() if listed.isdisjoint((term, plural))}
    return as_targets(dict.fromkeys(others, "own")).with_columns(
        forms=pl.Series(list(others.values()), dtype=pl.List(pl.String))
    )


def notice_of_unlisted(counts: Counts) -> list[str]:
    """A sentence with the groups that are most often spoken of and are not among the targets."""
    most = [(word, count) for (kind, word), count in counts.most_common() if kind == UNLISTED][:NAMED]
    if not most:
        return []
    named = ", ".join(f"{word} {count:,}" for word, count in most)
    wanted = ",".join(word for word, _ in most)
    return [
        f"Groups that are not among the targets, with their rows: {named}. recipe.targets=[all,{wanted}] adds them."
    ]


def repeats(rows: Iterable[pl.DataFrame]) -> int:
    """Count the rows about a target that repeat an earlier one word for word; of each, eight bytes are in memory."""
    hashes = pl.Series([], dtype=pl.UInt64)
    for part in rows:
        texts = part.drop_nulls("target").select(pl.exclude("row", "split", "valid", "category", "term"))
        hashes.append(texts.hash_rows())
    return len(hashes) - hashes.n_unique()


# Label and count them


def count_statements(
    labeller: Labeller,
    columns: Iterable[str],
    *,
    given: str | None = None,
    rows: Iterable[pl.DataFrame],
    num_rows: int,
    statements: Parts,
) -> pl.DataFrame:
    """Save the rows' statements, masked and labelled, as parts `statements`, and return their tally: counts of each
    label for each target.

    rows: parts that read_rows saved; num_rows: of all parts. given: the column of labels that the rows have already, in
    place of the labeller's. After a kill only missing parts are labelled."""
    with progress("label", num_rows, "statements") as advance:
        for done, group in _together(rows, statements):
            rows_of_group = pl.concat(group.values())
            labelled = pl.concat(label(chunk, labeller, given) for chunk in rows_of_group.iter_slices(CHUNK))
            for number, part in group.items():
                statements.save(number, labelled.head(part.height))
                labelled = labelled.slice(part.height)
            advance(rows_of_group.height, to=done)
    return total(tally(part.drop_nulls("target"), columns) for part in statements)


def label(rows: pl.DataFrame, labeller: Labeller, given: str | None = None) -> pl.DataFrame:
    """Return the rows as statements, masked and labelled."""
    masked = mask(rows, labeller.masking, labeller.target_list, labeller.own_relations)
    if given:
        polarity = pl.col(given).replace({OTHER: NEUTRAL}).cast(pl.Float32)  # nothing finer is known
        return masked.with_columns(polarity.alias(f"{given}_strength"))
    return label_masked(masked, labeller.scorers, cache=labeller.cache)


def _together(rows: Iterable[pl.DataFrame], finished: Parts) -> Iterator[tuple[int, dict[int, pl.DataFrame]]]:
    """Group the unfinished parts of the rows into CHUNK rows or a little more. Yields the number of rows up to the end
    of a group, and its parts."""
    group: dict[int, pl.DataFrame] = {}
    done = 0
    for number, part in enumerate(rows):
        if part.height and number not in finished:
            group[number] = part
        done += part.height
        if sum(waiting.height for waiting in group.values()) >= CHUNK:
            yield done, group
            group = {}
    if group:
        yield done, group


# Measure


def measure_resource(tallied: pl.DataFrame, counts: pl.DataFrame, how: Measurement) -> pl.DataFrame:
    """The results (measure.results.SCHEMA): the numbers of rows, and harms. tallied: what count_statements returns;
    counts: what read_rows returns."""
    numbers = sum_counts([counts])
    rows = measured("numbers", {"rows": numbers[ROWS], "rows_about_a_target": numbers[ABOUT_A_TARGET]})
    return pl.concat([rows, how.harms(tallied)])


def paper_figures(resource: str) -> pl.DataFrame:
    """The paper's figures of a resource (place, figure, key, value), from data/paper_audit.csv."""
    rows = frame_of("paper_audit.csv", infer_schema=False).filter(resource=resource)
    return rows.drop("resource").cast({"value": pl.Float64})


def beside_the_paper(metrics: Mapping[str, Any], stated: pl.DataFrame) -> pl.DataFrame:
    """The paper's figures with ours (place, figure, key, paper, ours), with measure.empty_targets=zero, as theirs.
    stated: what paper_figures returns."""
    ours = [metrics.get(key) for key in stated["key"]]
    return stated.rename({"value": "paper"}).with_columns(ours=pl.Series(ours, dtype=pl.Float64)).drop_nulls("ours")


def by_relation(statements: pl.LazyFrame, columns: Iterable[str]) -> pl.DataFrame:
    """(relation, statements, and the percentage polarised by label column), the commonest first."""
    shares = [pl.col(column).is_in([PREJUDICE, FAVOURITISM]).mean() * 100 for column in columns]
    grouped = statements.group_by("relation").agg(pl.len().alias("statements"), *shares)
    return grouped.sort("statements", "relation", descending=[True, False]).collect(engine="streaming")


# Report


def write_report(
    figures: pl.DataFrame,
    flat: Mapping[str, Any],
    tallied: pl.DataFrame,
    how: Measurement,
    resource: Resource,
    rows: pl.DataFrame,
    *,
    stated: pl.DataFrame | None,
    folder: Path,
    about: Mapping[str, Any],
    **fields: Any,
) -> dict[str, Any]:
    """Write the page, its tables and pictures, and statements.tsv, of statements drawn by the seed. rows: counts of the
    resource's rows; stated: what paper_figures returns; fields: further ones of the page. Returns the page's verdict
    and notices."""
    statements, height = choice(folder / "statements", how.intervals.seed)
    metrics, frames, counts = Results.of(figures, flat), how.tables(tallied), sum_counts([rows])
    relations = None
    if "relation" in statements.columns:
        relations = by_relation(statements_of(folder / "statements"), how.wordings)
    beside = None if stated is None else beside_the_paper(metrics, stated)
    tables = {"measures": metrics.overall, "relations": relations, "beside_the_paper": beside}
    tables |= {"targets": how.target_list.table(how.targets)}
    tables |= {f"targets_{column}": frame for column, frame in frames.items()}
    made = page(
        metrics,
        scorers=how.scorers,
        frames=frames,
        statements=statements,
        relations=relations,
        beside=beside,
        notices=[
            *not_english(statements["statement"]),
            *ambiguity_notice(next(iter(frames.values()))),
            *notice_of_unlisted(counts),
            *how.notices(tallied),
            *long_texts(statements["masked"]),
            *resource.loaded.describe(counts),
            *([] if statements.height == height else [DRAWN.format(statements.height, height)]),
        ],
        tables={name: frame for name, frame in tables.items() if frame is not None},
        **fields,
        **about,
    )
    write(made, folder, "audit.html")
    files.write(folder / "statements.tsv", statement_lines(statements))
    return {"verdict": f"{made.state}. {made.hedge}", "notices": list(made.notices)}


def statements_of(folder: Path) -> pl.LazyFrame:
    """Query the statements about a target in a folder of parts, without reading them into memory."""
    parts = sorted(folder.glob("*.parquet"))  # by their names: a folder's own may have brackets
    return pl.scan_parquet(parts, glob=False).filter(pl.col("target").is_not_null())


def choice(folder: Path, seed: int) -> tuple[pl.DataFrame, int]:
    """Sample the statements about a target, and count all of them. Of more than MOST about that many are taken: those
    of rows whose hash is small, which are the same however the resource is cut into parts."""
    statements = statements_of(folder)
    height = statements.select(pl.len()).collect(engine="streaming").item()
    if height > MOST:
        statements = statements.filter(pl.col("row").hash(seed) < int(MOST / height * 2**64))
    return statements.collect(engine="streaming").sort("row", maintain_order=True), height


DEMONSTRATED = "A small corpus: the figures support no claim about any group of people or any resource."
MOST_RELATIONS = 20


def page(
    results: Results,
    title: str,
    *,
    scorers: Sequence[str],
    frames: Mapping[str, pl.DataFrame],
    statements: pl.DataFrame,
    chosen: Sequence[str],
    relations: pl.DataFrame | None = None,
    beside: pl.DataFrame | None = None,
    explained: Sequence[str] = (),
    **about: Any,
) -> Page:
    """title: of the resource; scorers: that of the first screen first; frames: of targets by label column; statements:
    labelled, all about a target or a choice of them; chosen: targets whose bars are drawn; relations: by_relation;
    beside: (place, figure, key, paper, ours), with explained, why they differ; about: further fields of Page."""
    rows, labels = results.table, sections.label_names(scorers, frames)
    drawn = {column: frames[column] for column in labels.values()}
    shares = {scorer: row["value"] for scorer in scorers[:2] if (row := sections.headline(rows, "polarised", scorer))}
    sizes = ("rows", "rows_about_a_target", "statements", "targets", "empty_targets")
    num_rows, num_about, num_statements, targets, empty = (results.get(name) or 0 for name in sizes)
    return Page(
        state=f"Polarised: {', '.join(f'{share:.1f} % ({scorer})' for scorer, share in shares.items())}",
        hedge=f"The share of {counted(num_statements, 'statement')} about {targets - empty:,} of "
        f"{counted(targets, 'target')} that favour or disparage them, in {num_about:,} of {counted(num_rows, 'row')} "
        f"of {title}.",
        picture=sections.shares_picture(rows, scorers[0]),
        numbers=first_numbers(rows, scorers[0], drawn[labels[scorers[0]]]),
        sections=[
            sections.measures(rows, ["D_R"]),
            Section("The paper's figures and ours", _beside(beside, explained)),
            sections.gallery(drawn, list(labels), chosen),
            Section("Relations", _relations(relations)),
            sections.target_section(frames, statements, list(drawn), list(labels)),
        ],
        limits=[*sections.LIMITS, *sections.left_out(next(iter(frames.values()))["target"].to_list())],
        **about,
    )


def first_numbers(rows: pl.DataFrame, scorer: str, targets: pl.DataFrame) -> list[Number]:
    """The neutral mean, the spread over targets, and the target with the largest share of prejudice."""
    numbers = sections.neutral_number(rows, scorer)
    if variance := sections.headline(rows, "neutral_variance", scorer):
        spread, low, high = (variance[end] and variance[end] ** 0.5 for end in ("value", "low", "high"))
        between = "" if low is None and high is None else f"[{span(low, high, 1)}], "
        numbers.append(Number("spread over targets ↓", as_number(spread, 1), f"{between}standard deviation in points"))
    frequent = sections.frequent_targets(targets.filter(pl.col("statements") > 0))
    order = ("prejudice", "statements", "target")
    for worst in frequent.sort(order, descending=[True, True, False]).head(1).rows(named=True):
        count, share = worst["statements"], worst["prejudice"]
        low, high = binomtest(round(share * count / 100), count).proportion_ci()
        note = f"[{span(100 * low, 100 * high, 1)}], “{worst['target']}”, {counted(count, 'statement')}"
        numbers.append(Number("most prejudice ↓", f"{as_number(share, 1)} %", note))
    return numbers


def _beside(beside: pl.DataFrame | None, explained: Sequence[str]) -> list[Part]:
    if beside is None:
        return []

    def as_printed(name: str) -> Column:
        return Column(name, lambda row: Cell(as_number(row[name], 0 if row["paper"] >= 1000 else 2)))

    caption = "As Mehrabi et al. (2021) print them, and ours; a target without statements counts as 0 %."
    ratio = Column("difference", lambda row: Cell(f"{as_number(100 * (row['ours'] / row['paper'] - 1), 1)} %"))
    columns = [text("figure"), text("where", "place"), as_printed("paper"), as_printed("ours"), ratio]
    table = Table(caption, columns, beside, kind="narrow")
    return [table, Fold("Why they differ, with measure=paper", explained) if explained else None]


def _relations(relations: pl.DataFrame | None) -> list[Part]:
    if relations is None:
        return []
    titles = {name: name.replace("_neutral", ", neutral template") for name in relations.columns[2:]}
    most = relations.head(MOST_RELATIONS)
    caption = f"Percent of statements that are not neutral, for the {most.height} relations with the most statements."
    meaning = (
        "A triple becomes a statement through its relation's phrase. Some phrases have a sentiment of their own, which "
        "is the difference between the templates."
    )
    columns = [text("relation"), Column("statements", "statements"), *figures(1, **titles)]
    return [meaning, Table(caption, columns, most)]

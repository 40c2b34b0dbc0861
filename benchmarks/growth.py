"""Growth: processor seconds and memory of each recipe against the size of its input, with the exponents.

    python benchmarks/growth.py [filter] [audit] [labels] [targets] [runs] [clients] [--most 1000000]

Each measurement is a command of its own, so that its memory is its own. Rows are made up from the heads and tails of
the sample corpus and are all different; n-gram regard and VADER label them, since the default classifier's time is
linear in the texts (scoring.py). Compared runs are made up too. A client of the service sends one text to /label; all
clients send at once. Measurements are added to growth.csv, and the table and the picture are made from it."""

import argparse
import csv
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[1] / "tests"))

from benchmarks.results import machine, processor, write_section
from mitigate.load.sample import load
from mitigate.report.drawing import save, styled
from mitigate.report.pareto import mark

ROOT = Path(__file__).parents[1]
CSV = Path(__file__).with_name("growth.csv")
PICTURE = ROOT / "docs" / "results" / "growth"
GROWN = 1.1  # times the smallest size's figure, from which a size counts in the fit
ROWS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
LIGHT = ["score.regard=ngram", "score.plausibility=null", "score.people_valid=null", "tracking=none"]


class Measured(NamedTuple):
    """A command's processor seconds (user and system), those of the clock, and its peak of memory in MiB."""

    series: str
    size: int
    seconds: float
    elapsed: float
    memory: float


class Series(NamedTuple):
    """unit: of the sizes; measure: of a size, in an empty folder."""

    unit: str
    sizes: Sequence[int]
    measure: Callable[[int, Path], tuple[float, float, float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("series", nargs="*", metavar="|".join(SERIES), help="default: all; none: the table anew")
    parser.add_argument("--most", type=int, default=1_000_000, help="the largest size")
    parser.add_argument("--least", type=int, default=0, help="the smallest size; those of growth.csv stay")
    given = parser.parse_args()
    names = [] if given.series == ["none"] else given.series or list(SERIES)
    if unknown := set(names) - set(SERIES):
        parser.error(f"no such series: {', '.join(unknown)}")
    for name in names:
        for size in (size for size in SERIES[name].sizes if given.least <= size <= given.most):
            with tempfile.TemporaryDirectory() as place:
                found = Measured(name, size, *SERIES[name].measure(size, Path(place)))
            print(found, flush=True)
            add(found)
    rows = [Measured(*row) for row in pl.read_csv(CSV).sort("series", "size").rows()]
    save(picture(rows), PICTURE)
    write_section("growth", section(rows), processor())


def of_command(arguments: Sequence[str], place: Path) -> tuple[float, float, float]:
    """The processor seconds, elapsed seconds and MiB of `python -m mitigate`. Raises RuntimeError where it fails."""
    started = time.perf_counter()
    process = start(arguments, place)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{' '.join(arguments)} fails: {(place / 'log').read_text()[-500:]}")
    return used.ru_utime + used.ru_stime, time.perf_counter() - started, used.ru_maxrss / 1024


def start(arguments: Sequence[str], place: Path) -> subprocess.Popen[bytes]:
    """The command, started, with its output in a file."""
    folders = [f"paths.outputs={place / 'out'}", f"paths.cache={place / 'cache'}"]
    with (place / "log").open("wb") as log:
        command = [sys.executable, "-m", "mitigate", *arguments, *folders]
        return subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)


def of_rows(recipe: str, *more: str) -> Callable[[int, Path], tuple[float, float, float]]:
    """The measure of a recipe that reads triples."""

    def measure(size: int, place: Path) -> tuple[float, float, float]:
        made_up(size).write_csv(place / "triples.tsv", separator="\t")
        data = ["data=triples", f"data.path={place / 'triples.tsv'}"]
        return of_command([f"recipe={recipe}", *data, *LIGHT, *more], place)

    return measure


def made_up(size: int) -> pl.DataFrame:
    """So many triples, of relations, heads and tails of the sample corpus and a number that makes them different."""
    triples, generator = load().rows, np.random.default_rng(0)
    drawn = [triples[name].gather(generator.integers(0, len(triples), size)) for name in ("head", "tail")]
    numbers = pl.Series(np.arange(size)).cast(pl.String)
    return pl.DataFrame({"head": drawn[0], "relation": "CapableOf", "tail": drawn[1] + " " + numbers})


def of_targets(size: int, place: Path) -> tuple[float, float, float]:
    """An audit of 20 statements about each of so many targets."""
    chance, tails = random.Random(0), made_up(1000)["tail"].to_list()
    with (place / "statements.tsv").open("w", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter="\t")
        writer.writerow(["target", "statement"])
        for number in range(size):
            writer.writerows([f"folk{number}", f"folk{number} are {chance.choice(tails)}"] for _ in range(20))
    data = ["data=statements", f"data.path={place / 'statements.tsv'}"]
    return of_command(["recipe=audit", *data, *LIGHT], place)


def of_runs(size: int, place: Path) -> tuple[float, float, float]:
    """A comparison of so many runs of two policies, of 2,000 statements each."""
    from compared_runs import make_run

    runs = [make_run(place / "runs", policy, seed) for seed in range(size // 2) for policy in ("none", "both")]
    return of_command(["recipe=compare", f"compare.runs=[{','.join(map(str, runs))}]", "tracking=none"], place)


def of_clients(size: int, place: Path) -> tuple[float, float, float]:
    """The service's processor seconds while so many clients send a text each, at once; and its memory after that."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = start(["recipe=serve", f"serve.port={port}", *LIGHT], place)
    try:
        wait_for_answer(process, port, place)
        before, started = processor_seconds(process.pid), time.perf_counter()
        with ThreadPoolExecutor(size) as clients:
            list(clients.map(partial(label, port), range(size)))
        return processor_seconds(process.pid) - before, time.perf_counter() - started, peak_memory(process.pid)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def wait_for_answer(process: subprocess.Popen[bytes], port: int, place: Path) -> None:
    """Wait for the service, and for the scorers that its first answer loads."""
    while process.poll() is None:
        try:
            return label(port, -1)
        except OSError:
            time.sleep(1)
    raise RuntimeError(f"the service ends: {(place / 'log').read_text()[-500:]}")


def label(port: int, number: int) -> None:
    """Send a text to /label, again where the service is busy, after the time that its answer names. The answer of
    the web server itself, beyond its most connections, names none."""
    body = json.dumps({"texts": [f"the nurse has {number} kind friends"]}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/label", body, {"content-type": "application/json"})
    while True:
        try:
            urllib.request.urlopen(request, timeout=600).read()
            return
        except urllib.error.HTTPError as error:
            if error.code != 503:
                raise
            time.sleep(float(error.headers["retry-after"] or 1))


def processor_seconds(process: int) -> float:
    """Of a process so far, user and system (Linux)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_memory(process: int) -> float:
    """MiB (Linux)."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


SERIES = {
    "filter": Series("triples", ROWS, of_rows("filter", "policy=both")),
    "audit": Series("triples", ROWS, of_rows("audit")),
    "labels": Series("triples", ROWS, of_rows("labels")),
    "targets": Series("targets of an audit", (10, 100, 1_000, 10_000), of_targets),
    "runs": Series("runs compared", (2, 10, 50, 100, 200), of_runs),
    "clients": Series("clients of the service", (10, 30, 100, 300, 1_000), of_clients),
}


def add(found: Measured) -> None:
    """Write a measurement into growth.csv, in the place of an earlier one of the same series and size."""
    there = CSV.read_text(encoding="utf-8").splitlines()[1:] if CSV.exists() else []
    kept = [line for line in there if not line.startswith(f"{found.series},{found.size},")]
    line = f"{found.series},{found.size},{found.seconds:.2f},{found.elapsed:.1f},{found.memory:.0f}"
    CSV.write_text("\n".join([",".join(Measured._fields), *kept, line]) + "\n", encoding="utf-8")


def exponent(sizes: Sequence[float], figures: Sequence[float]) -> float | None:
    """k of the least-squares line log(figure - first figure) = k log(size - first size) + c, over the sizes whose
    figure is GROWN times the first: 1 is linear. None with fewer than two of them."""
    grown = [(size - sizes[0], figure - figures[0]) for size, figure in zip(sizes, figures, strict=True)]
    counted = [(x, y) for x, y in grown if x and y >= (GROWN - 1) * figures[0]]
    if len(counted) < 2:
        return None
    grown_by, costs = np.log(counted).T
    return float(np.polyfit(grown_by, costs, 1)[0])


def growth(sizes: Sequence[float], figures: Sequence[float]) -> str:
    """The exponent in words."""
    if figures[-1] < GROWN * figures[0]:
        return "less than 10 % more"
    fit = exponent(sizes, figures)
    return "too few sizes" if fit is None else f"{fit:.2f}"


def by_series(rows: Sequence[Measured]) -> Iterator[tuple[str, list[Measured]]]:
    for name in SERIES:
        if found := [row for row in rows if row.series == name]:
            yield name, found


def section(rows: Sequence[Measured]) -> str:
    """The table of RESULTS.md."""
    lines = [
        "## Growth: seconds and memory against size",
        f"Measured on {machine()}, by `python benchmarks/growth.py`. ![growth](../docs/results/growth.png)",
        "Seconds of the processor; an exponent of 1 is linear, and of seconds and memory beyond the smallest size.",
        "| | size: seconds, MiB | exponent of seconds | of memory |\n|---|---|---|---|",
    ]
    for name, found in by_series(rows):
        cells = "; ".join(f"{row.size:,}: {row.seconds:,.1f}, {row.memory:,.0f}" for row in found)
        sizes = [row.size for row in found]
        if missing := [f"{size:,}" for size in SERIES[name].sizes if size not in sizes]:
            cells += f"; not measured: {', '.join(missing)}"
        shown = [growth(sizes, [getattr(row, kind) for row in found]) for kind in ("seconds", "memory")]
        lines[-1] += f"\n| {name}, {SERIES[name].unit} | {cells} | {' | '.join(shown)} |"
    return "\n\n".join(lines)


@styled
def picture(rows: Sequence[Measured]) -> Figure:
    """Seconds and memory against size, a line for each series, on logarithmic axes."""
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    for axes, kind, title in zip(
        figure.subplots(1, 2), ("seconds", "memory"), ("processor seconds", "peak of memory, MiB"), strict=True
    ):
        for place, (name, found) in enumerate(by_series(rows)):
            colour, marker = mark(place)
            points = [row.size for row in found], [getattr(row, kind) for row in found]
            axes.loglog(*points, color=colour, marker=marker, ms=4, lw=1, label=name)
        for axis, steps in ((axes.xaxis, (1,)), (axes.yaxis, (1, 2, 5))):
            axis.set_major_locator(LogLocator(subs=steps))
            axis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        axes.grid()
        axes.set_xlabel("triples, targets, runs or clients")
        axes.set_ylabel(title)
    figure.axes[0].legend(frameon=False)
    return figure


if __name__ == "__main__":
    main()

"""`lakecommit demo`: the whole path once, with what it did and what it cost."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from lakecommit.cli.arguments import json_option
from lakecommit.cli.output import Indented, show, table, text
from lakecommit.cli.verbs.clean import clean
from lakecommit.clock import SystemClock
from lakecommit.errors import CommitFailed, InvalidInput

if TYPE_CHECKING:
    from lakecommit.demo.crashes import LeftByAKill
    from lakecommit.demo.place import Place
    from lakecommit.demo.scenario import Comparison, Objects

_NEEDED = ("pyspark", "delta", "deltalake")


@dataclass(frozen=True, slots=True)
class DemoOutput:
    """`puts_per_epoch` were counted at the S3 server; on local disk they are the objects that an epoch left.

    `epochs` are those that the table's mark shows: fewer than `input_files` where Spark was killed between choosing a
    file and planning its epoch, so that it read the file with the next one. `replayed_epochs` were sealed and pending
    when the driver was killed, and committed by the next one without reading their input again; `dropped_files`
    belonged to attempts that died with it.
    """

    location: str
    input_files: int
    epochs: int
    kills: int
    replayed_epochs: int
    dropped_files: int
    snapshots: int
    files: int
    puts_per_epoch: float
    other_requests_per_epoch: float | None
    orphans: int
    comparisons: tuple[Comparison, ...]
    seconds: float

    @property
    def exact(self) -> bool:
        return self.orphans == 0 and all(each.equal for each in self.comparisons)

    def data(self) -> dict[str, Any]:
        return {**asdict(self), "exact": self.exact}

    def render(self) -> RenderableType:
        others = "" if self.other_requests_per_epoch is None else f" and {self.other_requests_per_epoch:.1f} others"
        verdict = (
            text("● every order is in the table once, as it was made", "bold green")
            if self.exact
            else text("✖ the table is not what was made", "bold red")
        )
        summary = table(
            ("", ""),
            [
                ("killed", f"{_counted(self.kills, 'driver')}, with SIGKILL"),
                ("replayed", f"{_counted(self.replayed_epochs, 'epoch')}, sealed and not committed when it died"),
                ("dropped", f"{_counted(self.dropped_files, 'file')} of attempts that died with it"),
                ("stream", f"{_counted(self.input_files, 'file')} in {_counted(self.epochs, 'epoch')}"),
                ("table", f"{_counted(self.files, 'file')}, {_counted(self.snapshots, 'version')}"),
                ("requests", f"{self.puts_per_epoch:.1f} PUTs{others} an epoch"),
                ("orphans", text(self.orphans, "green" if not self.orphans else "red")),
                ("took", f"{self.seconds:.0f} s"),
            ],
        )
        readers = table(
            ("read by", "#rows", "#missing", "#twice", "#different", ""),
            [
                (each.reader, each.rows, each.missing, each.twice, each.different, _verdict(each.equal))
                for each in self.comparisons
            ],
        )
        return Group(text(""), verdict, text(""), Indented(Group(summary, text(""), readers)))


@click.command("demo")
@click.option("--s3", "on_s3", is_flag=True, help="Write to a local S3 (moto) instead of local disk.")
@click.option(
    "--epochs", default=20, show_default=True, type=click.IntRange(1, 1000), help="Files to stream, one an epoch."
)
@click.option("--rows", default=1000, show_default=True, type=click.IntRange(1, 100_000), help="Orders an epoch.")
@click.option("--kills", default=2, show_default=True, type=click.IntRange(0, 100), help="Kills of the driver.")
@click.option("--keep", type=click.Path(file_okay=False, path_type=Path), help="Keep the table in this directory.")
@json_option
def command(on_s3: bool, epochs: int, rows: int, kills: int, keep: Path | None, as_json: bool) -> None:
    """Stream and batch orders into a Delta table, killing the driver on the way; read them back and compare."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise InvalidInput(f"the demo needs {', '.join(missing)}; pip install 'lakecommit[spark,delta,dev]'")
    if kills >= epochs:
        raise InvalidInput(f"{kills} kills need more than {kills} epochs; raise --epochs")
    if keep is not None and keep.exists() and any(keep.iterdir()):
        raise InvalidInput(f"{keep} is not empty; name a directory that is empty or does not exist")
    with tempfile.TemporaryDirectory(prefix="lakecommit-demo-") as temporary:
        scratch = Path(temporary) if keep is None else keep.absolute()
        scratch.mkdir(parents=True, exist_ok=True)
        with _console(scratch / "spark.log") as console:
            output = _run(console, scratch, on_s3=on_s3, epochs=epochs, rows=rows, kills=kills)
    show(output, as_json=as_json)
    if not output.exact:
        raise CommitFailed("the table is not what was generated; run the demo with --keep DIR and look into the table")


def _run(console: Console, scratch: Path, *, on_s3: bool, epochs: int, rows: int, kills: int) -> DemoOutput:
    import lakecommit  # noqa: PLC0415 (Spark starts only once the arguments are known to be good)
    from lakecommit.demo import orders, scenario  # noqa: PLC0415
    from lakecommit.demo.place import a_place  # noqa: PLC0415
    from lakecommit.testing.sessions import delta_session  # noqa: PLC0415

    source = scratch / "incoming"
    source.mkdir()
    began = monotonic()
    with a_place(scratch, on_s3=on_s3) as place:
        for epoch in range(epochs):
            orders.write_json(source / f"{epoch:06d}.json", range(epoch * rows, (epoch + 1) * rows))
        console.print(f"table    {place.location}" + (f" at {place.s3.endpoint}" if place.s3 else ""))
        left = _stream(console, place, source, scratch, epochs, kills)
        requests = dict(place.s3.counts()) if place.s3 else None
        after_stream = scenario.count_objects(place)
        streamed = scenario.count_epochs(place)
        console.print(f"stream   {epochs * rows:,} orders in {_counted(streamed, 'epoch')}")
        with console.status("starting Spark again, for the batch and the readers"):
            spark = delta_session("lakecommit-demo", extra_conf=scenario.SESSION_SETTINGS)
            lakecommit.register(spark)
        try:
            with console.status("batch"):
                scenario.append_batch(spark, range(epochs * rows, epochs * rows + rows), place)
            console.print(f"batch    {rows:,} orders")
            # Where the last driver was too short of time to do it all.
            asyncio.run(clean(place.store(), SystemClock(), apply=True, as_json=True))
            total = (epochs + 1) * rows
            comparisons = []
            for reader in ("delta-spark", "deltalake"):
                with console.status(f"reading with {reader}"):
                    found = (
                        scenario.read_with_delta_spark(spark, place.on_disk(scratch))
                        if reader == "delta-spark"
                        else scenario.read_with_deltalake(place)
                    )
                    comparisons.append(scenario.compare(reader, found, total))
        finally:
            spark.stop()
        objects = scenario.count_objects(place)
        puts, others = _per_epoch(requests, after_stream, streamed)
        return DemoOutput(
            location=place.location,
            input_files=epochs,
            epochs=streamed,
            kills=len(left),
            replayed_epochs=sum(each.pending_epochs for each in left),
            dropped_files=sum(each.staged_files for each in left),
            snapshots=objects.versions,
            files=objects.files,
            puts_per_epoch=puts,
            other_requests_per_epoch=others,
            orphans=objects.orphans,
            comparisons=tuple(comparisons),
            seconds=monotonic() - began,
        )


def _stream(console: Console, place: Place, source: Path, scratch: Path, epochs: int, kills: int) -> list[LeftByAKill]:
    """Runs the stream to its end, killed on the way."""
    from lakecommit.demo.crashes import Driver, newest_epoch, next_kill  # noqa: PLC0415

    left: list[LeftByAKill] = []
    while True:
        kill = next_kill(epochs, kills, len(left), newest_epoch(place, sealed=True))
        with (
            _bar(console) as bar,
            Driver(place, source, scratch / "checkpoint", scratch / "driver.log", kill) as driver,
        ):
            task = bar.add_task("stream", total=epochs, detail="starting Spark")

            def progress(epoch: int, count: int, duration_ms: int) -> None:
                bar.update(task, completed=epoch, detail=f"{count:,} orders in {duration_ms:,} ms")  # noqa: B023

            found = driver.run(progress)
        if found is None:
            return left
        left.append(found)
        pending = f"{_counted(found.pending_epochs, 'epoch')} sealed and not committed"
        console.print(f"killed   in epoch {found.epoch}: {pending}, {_counted(found.staged_files, 'file')} half-way")


@contextmanager
def _console(log: Path) -> Iterator[Console]:
    """Speaks on standard error, so that standard output is the summary alone. What Spark's JVM says there while it
    starts goes to `log` instead."""
    ours = os.dup(2)
    with log.open("ab") as quiet, os.fdopen(ours, "w") as stream:
        os.dup2(quiet.fileno(), 2)
        try:
            yield Console(file=stream, highlight=False)
        finally:
            stream.flush()
            os.dup2(ours, 2)


def _per_epoch(requests: dict[str, int] | None, objects: Objects, epochs: int) -> tuple[float, float | None]:
    if requests is None:
        return (objects.manifests + objects.files + objects.seals + objects.versions) / epochs, None
    puts = requests.get("PUT", 0)
    return puts / epochs, (sum(requests.values()) - puts) / epochs


def _bar(console: Console) -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[detail]}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _verdict(equal: bool) -> Any:
    return text("equal", "green") if equal else text("NOT EQUAL", "bold red")

"""`python -m benchmarks`: runs the workloads and writes tables, JSON and plots."""

from __future__ import annotations

from pathlib import Path

import click

from benchmarks import batch, microbatch, parquet_stream, reading
from benchmarks.places import bench
from benchmarks.report import publish

_place_options = [
    click.option("--s3", "on_s3", is_flag=True, help="Against a local S3 (moto) instead of local disk."),
    click.option("--delay-ms", default=30.0, show_default=True, help="With --s3: added to each request."),
    click.option(
        "--into",
        default=Path("benchmarks/results"),
        show_default=True,
        type=click.Path(path_type=Path, file_okay=False),
    ),
]


def _at_a_place(command: click.Command) -> click.Command:
    for option in _place_options:
        command = option(command)
    return command


@click.group()
def main() -> None:
    """Measures lakecommit against its peers in the same run; ratios count, absolute times do not."""


@main.command("microbatch")
@_at_a_place
@click.option("--parquet", is_flag=True, help="Into Parquet directories, beside Spark's own sink alone.")
@click.option("--rounds", type=int, help="[default: 5; with --parquet 3]")
@click.option("--epochs", type=int, help="Measured epochs a round.  [default: 20; with --parquet 100]")
@click.option("--rows", default=2000, show_default=True, help="Rows an epoch.")
def microbatch_command(
    on_s3: bool, delay_ms: float, into: Path, parquet: bool, rounds: int | None, epochs: int | None, rows: int
) -> None:
    """A stream as fast as it goes."""
    if parquet and epochs is not None and epochs < parquet_stream.INTERVAL:
        raise click.BadParameter(f"a compact is every {parquet_stream.INTERVAL} epochs", param_hint="--epochs")
    with bench(on_s3=on_s3, delay_ms=delay_ms) as place:
        if parquet:
            result = parquet_stream.run(place, rounds=rounds or 3, epochs=epochs or 100, rows=rows)
        else:
            result = microbatch.run(place, rounds=rounds or 5, epochs=epochs or 20, rows=rows)
        publish(result, into)


@main.command("batch")
@_at_a_place
@click.option("--rounds", default=3, show_default=True)
@click.option("--rows", default=10_000_000, show_default=True)
@click.option("--tokens", is_flag=True, help="With a column of strings that never repeat.")
@click.option("--conf", "settings", multiple=True, metavar="KEY=VALUE", help="A setting of Spark, for all sinks.")
def batch_command(
    on_s3: bool, delay_ms: float, into: Path, rounds: int, rows: int, tokens: bool, settings: tuple[str, ...]
) -> None:
    """One large append."""
    conf = dict(_pair(setting) for setting in settings)
    with bench(on_s3=on_s3, delay_ms=delay_ms, conf=conf) as place:
        publish(batch.run(place, rounds=rounds, rows=rows, tokens=tokens, conf=conf), into)


@main.command("reading")
@click.option("--into", default=Path("benchmarks/results"), show_default=True, type=click.Path(path_type=Path))
@click.option("--rounds", default=5, show_default=True)
@click.option("--rows", default=10_000_000, show_default=True)
@click.option("--conf", "settings", multiple=True, metavar="KEY=VALUE", help="A setting of Spark, for both readers.")
def reading_command(into: Path, rounds: int, rows: int, settings: tuple[str, ...]) -> None:
    """One large read."""
    conf = dict(_pair(setting) for setting in settings)
    with bench(on_s3=False, delay_ms=0, conf=conf) as place:
        publish(reading.run(place, rounds=rounds, rows=rows, conf=conf), into)


def _pair(setting: str) -> tuple[str, str]:
    key, equals, value = setting.partition("=")
    if not equals:
        raise click.BadParameter(f"{setting} is not KEY=VALUE", param_hint="--conf")
    return key, value


if __name__ == "__main__":
    main()

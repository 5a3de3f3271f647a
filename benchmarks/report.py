"""Figures as people want them: ratios first, medians with their spread, JSON beside the table, a plot."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import machine

BASELINE = "delta"
OURS = "lakecommit"


@dataclass(frozen=True)
class Series:
    """The measured times of one sink, and the requests that one unit of work took, where they were counted.

    `figures` are those that only this workload has, by their names.
    """

    sink: str
    millis: Sequence[float]
    requests: Mapping[str, float] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def median(self) -> float:
        return statistics.median(self.millis)

    @property
    def quartiles(self) -> tuple[float, float]:
        if len(self.millis) < 2:
            return self.median, self.median
        low, _, high = statistics.quantiles(self.millis, n=4, method="inclusive")
        return low, high


@dataclass(frozen=True)
class Result:
    workload: str
    place: str
    unit: str
    settings: Mapping[str, object]
    series: Sequence[Series]
    load_before: float
    baseline: str = BASELINE

    def median(self, sink: str) -> float:
        return next(series.median for series in self.series if series.sink == sink)


def publish(result: Result, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    name = f"{result.workload}-{'s3' if result.place.startswith('s3') else 'local'}"
    _show(result)
    (directory / f"{name}.json").write_text(json.dumps(_data(result), indent=2) + "\n")
    _plot(result, directory / f"{name}.png")
    Console(highlight=False).print(f"written: {directory / name}.json and .png\n")


def _show(result: Result) -> None:
    table = Table(
        title=f"{result.workload}, {result.place}: {result.unit}", title_justify="left", box=None, pad_edge=False
    )
    for column in ("sink", f"of {result.baseline}", "median ms", "quartiles", "min", "max", "runs", "requests"):
        table.add_column(column, justify="left" if column in ("sink", "requests") else "right")
    baseline = result.median(result.baseline)
    for each in sorted(result.series, key=lambda series: series.median):
        low, high = each.quartiles
        counted = ", ".join(f"{count:.1f} {kind}" for kind, count in sorted(each.requests.items()))
        table.add_row(
            each.sink,
            f"{each.median / baseline:.2f}",
            f"{each.median:,.0f}",
            f"{low:,.0f} to {high:,.0f}",
            f"{min(each.millis):,.0f}",
            f"{max(each.millis):,.0f}",
            str(len(each.millis)),
            f"{sum(each.requests.values()):.1f}: {counted}" if counted else "",
            style="bold" if each.sink == OURS else "",
        )
    console = Console(highlight=False)
    console.print(table)
    if any(each.figures for each in result.series):
        console.print(_figures(result))
    shown = ", ".join(f"{key} {value}" for key, value in {**result.settings, **machine.describe()}.items())
    console.print(f"load before {result.load_before:.1f}; {shown}", style="dim")


def _figures(result: Result) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for each in result.series:
        table.add_column(each.sink, justify="right")
    for name in next(each.figures for each in result.series if each.figures):
        table.add_row(name.replace("_", " "), *(f"{each.figures[name]:,.2f}" for each in result.series))
    return table


def _data(result: Result) -> dict[str, object]:
    baseline = result.median(result.baseline)
    return {
        "workload": result.workload,
        "place": result.place,
        "unit": result.unit,
        "settings": dict(result.settings),
        "machine": machine.describe(),
        "load_before": result.load_before,
        "measured": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "sinks": {
            each.sink: {
                f"ratio_to_{result.baseline}": each.median / baseline,
                "median_ms": each.median,
                "quartiles_ms": each.quartiles,
                "millis": list(each.millis),
                "requests": dict(each.requests),
                **({"figures": dict(each.figures)} if each.figures else {}),
            }
            for each in result.series
        },
    }


def _plot(result: Result, path: Path) -> None:
    import matplotlib  # noqa: PLC0415 (the tables do not need it)

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    ordered = sorted(result.series, key=lambda series: series.median, reverse=True)
    figure, axes = pyplot.subplots(figsize=(8, 0.7 * len(ordered) + 1.4), layout="constrained")
    boxes = axes.boxplot(
        [series.millis for series in ordered],
        orientation="horizontal",
        tick_labels=[series.sink for series in ordered],
        patch_artist=True,
        medianprops={"color": "black"},
    )
    for box, series in zip(boxes["boxes"], ordered, strict=True):
        box.set_facecolor("#2a7fb8" if series.sink == OURS else "#c9ced6")
    baseline = result.median(result.baseline)
    for position, series in enumerate(ordered, start=1):
        axes.annotate(
            f"{series.median / baseline:.2f}x",
            (max(series.millis), position),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
        )
    axes.set_xlim(0, 1.12 * max(max(series.millis) for series in ordered))
    axes.set_xlabel(f"milliseconds, {result.unit} (x = ratio of medians to {result.baseline})")
    axes.set_title(f"{result.workload}, {result.place}", loc="left")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)

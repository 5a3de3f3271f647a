"""Logs by hand, and which of their files Spark reads. The model is held to these, and so is Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tests.spark_log.entries import COMPACT, SinkFile, encode

# The file of a number, as it is in the directory of a test.
Files = Callable[[int], SinkFile]


def _no_others(file: Files) -> Mapping[str, bytes]:
    return {}


@dataclass(frozen=True, slots=True)
class Shape:
    """A log. `reads` has the numbers of the files that are read, in order; None: the reader fails."""

    # `n`, `n.compact` and `n..m`: entries that name just the file of their number, so that `reads` shows who was asked.
    names: str
    reads: Sequence[int] | None
    setting: int = 10
    others: Callable[[Files], Mapping[str, bytes]] = _no_others

    def log(self, file: Files) -> dict[str, bytes]:
        named = {name: encode([file(int(name.removesuffix(COMPACT)))]) for name in _expand(self.names)}
        return named | dict(self.others(file))


def _expand(names: str) -> list[str]:
    def numbers(match: re.Match[str]) -> str:
        return " ".join(map(str, range(int(match[1]), int(match[2]) + 1)))

    return re.sub(r"(\d+)\.\.(\d+)", numbers, names).split()


def _body(make: Callable[[Files], str], reads: Sequence[int] | None) -> Shape:
    """A log with the entry 0 alone."""
    return Shape("", reads, others=lambda file: {"0": make(file).encode()})


SHAPES = {
    # Which numbers are needed.
    "no entries": Shape("", [], others=lambda file: {".lakecommit.json": b"{}"}),
    "no compact yet": Shape("0..2", [0, 1, 2]),
    "a gap": Shape("0 2", None),
    "a late start": Shape("5", None),
    "a gap after the compact": Shape("9.compact 10 12", None),
    "a compact is due": Shape("0..9", None),
    "a compact": Shape("0..8 9.compact", [9]),
    "a compact and entries": Shape("9.compact 10 11", [9, 10, 11]),
    "nothing but compacts": Shape("9.compact 19.compact", [19]),
    "a plain entry beside the compact": Shape("9.compact 10", [9, 10], others=lambda file: {"9": encode([file(1)])}),
    "a sleeper's entries": Shape("3 9.compact 19.compact 29.compact 30", [29, 30]),
    "a compact out of turn": Shape("9.compact 10..12 13.compact", None),
    "every entry a compact": Shape("0.compact 1.compact 2.compact", [2]),
    # Which interval.
    "own setting": Shape("0..3", None, setting=3),
    "two compacts against the setting": Shape("0..8 9.compact 10..18 19.compact 20", [19, 20], setting=3),
    "two compacts, one left out": Shape("19.compact 39.compact 40", [39, 40]),
    "two compacts, a distance that does not divide": Shape("9.compact 29.compact", None),
    "one compact above the setting": Shape("9.compact 10", [9, 10], setting=100),
    "one compact at twice the setting": Shape("19.compact 20..31", [19, *range(20, 32)]),
    "one compact at three times the setting": Shape("29.compact 30..39", None),
    "one compact, the next in its time": Shape("29.compact 30..38", [*range(29, 39)]),
    "one compact at a prime": Shape("30.compact 31", [30, 31]),
    "one compact at twice a small setting": Shape("5.compact 6..8", [5, 6, 7, 8], setting=3),
    "a late compact": Shape("19.compact 20..31 29.compact", [29, 30, 31]),
    "a late compact, the next one due": Shape("19.compact 29.compact 30..39", None),
    "two compacts of one number": Shape("9.compact", None, others=lambda file: {"09.compact": encode([file(9)])}),
    # Names.
    "names that are no entries": Shape(
        "0 1", [0, 1], others=lambda file: dict.fromkeys(("2#1", ".x.tmp", ".1.crc", "x.compact", "1_0", " 3"), b"?")
    ),
    "negative numbers": Shape("", [], others=lambda file: dict.fromkeys(("-1", "-1.compact"), b"?")),
    "leading zeros": Shape("0..6", None, others=lambda file: {"007": encode([file(7)])}),
    # Lines.
    "a file deleted": Shape("0 1", [0, 1, 1], others=lambda file: {"2": encode([replace(file(1), action="delete")])}),
    "a file named twice": Shape("0 1", [0, 1, 0], others=lambda file: {"2": encode([file(0)])}),
    "directories, empty and hidden files": Shape(
        "0 2",
        [0, 2],
        others=lambda file: {
            "1": encode(
                [
                    replace(file(1), is_dir=True),
                    replace(file(1), size=0),
                    *(replace(file(1), path=file(1).path.replace("1.parquet", name)) for name in ("_x", ".x", "%5Fx")),
                ]
            )
        },
    ),
    "an unescaped path": Shape("0", None, others=lambda file: {"1": encode([replace(file(1), path="file:///a b")])}),
    "a broken path of a directory": Shape(
        "0", None, others=lambda file: {"1": encode([replace(file(1), path="file:///a%", is_dir=True)])}
    ),
    # Bodies.
    "no lines": _body(lambda file: "v1", []),
    "a line end at the end": _body(lambda file: f"v1\n{file(0).line()}\n", [0]),
    "carriage returns": _body(lambda file: f"v1\r\n{file(0).line()}\r{file(1).line()}", [0, 1]),
    "a blank line": _body(lambda file: f"v1\n\n{file(0).line()}", None),
    "a blank line at the end": _body(lambda file: f"v1\n{file(0).line()}\n\n", None),
    "an empty body": _body(lambda file: "", None),
    "no version": _body(lambda file: file(0).line(), None),
    "another version": _body(lambda file: f"v2\n{file(0).line()}", None),
    "a torn line": _body(lambda file: f"v1\n{file(0).line()[:-1]}", None),
    "two files in a line": _body(lambda file: f"v1\n{file(0).line()}{file(1).line()}", [0]),
    "an unknown field": _body(lambda file: f'v1\n{file(0).line()[:-1]},"more":{{"a":1}}}}', [0]),
    "a field missing": _body(lambda file: "v1\n" + file(0).line().replace(',"action":"add"', ""), None),
}

"""Options by kind, as writes and reads have them alike: matched in any case, and refused where nobody knows them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lakecommit.errors import InvalidInput
from lakecommit.formats import registry
from lakecommit.options.declarations import PROCESS_DECLARATIONS, SPARK, STORE
from lakecommit.options.declaring import Applies, Declaration
from lakecommit.storage import hadoop
from lakecommit.storage.location import parse_location

Declared = Mapping[str, Declaration]
# What says which table is meant.
NAMING = frozenset({"path", "table"})


@dataclass(slots=True)
class Sorted:
    """Options by kind: declared ones under their declared names, the others without their prefix and in lower case."""

    own: dict[str, str] = field(default_factory=dict)
    process: dict[str, str] = field(default_factory=dict)
    store: dict[str, str] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)
    hadoop: dict[str, str] = field(default_factory=dict)


def sorted_out(raw: Mapping[str, str], declared: Declared, prefix: str, others: Iterable[str] = ()) -> Sorted:
    """`prefix` is what the user wrote before the name, for messages; `others` are names that are known and are for
    something else. Raises `InvalidInput` for a name that nobody knows."""
    found = Sorted()
    seen: dict[str, str] = {}
    own = {name.lower(): name for name in declared}
    foreign = {name.lower(): name for name in others}
    for given, text in raw.items():
        key = given.lower()
        if seen.setdefault(key, text) != text:
            raise InvalidInput(f"option {prefix}{given} is given twice, with different values; leave one out")
        if key.startswith(STORE.prefix) and key != STORE.prefix:
            found.store[key.removeprefix(STORE.prefix)] = text
        elif any(key.startswith(each) and key != each for each in property_prefixes()):
            found.properties[key] = text
        elif key in own:
            found.own[own[key]] = text
        elif key in _PROCESS_BY_LOWER:
            found.process[_PROCESS_BY_LOWER[key]] = text
        elif key in foreign:
            found.others[foreign[key]] = text
        elif hadoop.counts(key):
            found.hadoop[key] = text
        elif key.startswith("fs."):
            raise hadoop.refusal(key)
        elif key.startswith("parquet."):
            raise InvalidInput(f"option {prefix}{key} is a setting of Spark's Parquet writer; {_parquet(key)}")
        elif key not in _SPARK_BY_LOWER:
            raise _unknown(given, own, foreign, prefix)
    return found


def of_hadoop(settings: Mapping[str, str], path: str, store: Mapping[str, str]) -> dict[str, str]:
    if not settings:
        return {}
    location, bucket, _ = parse_location(path)
    return hadoop.s3_options(settings, bucket, store) if location == "s3" else {}


def values_of(declared: Declared, texts: Mapping[str, str]) -> dict[str, Any]:
    """By attribute, in the order of the declarations."""
    return {each.attribute: _value(each, texts[each.name]) for each in declared.values() if each.name in texts}


def _value(declared: Declaration, text: str) -> Any:
    try:
        return declared.read(text)
    except ValueError:
        raise InvalidInput(f"option {declared.name} is {text[:100]!r}, but has to be {declared.values}") from None


def applies(declared: Declaration, streaming: bool) -> bool:
    return declared.applies in (Applies.BOTH, Applies.STREAM if streaming else Applies.BATCH)


def property_prefixes() -> list[str]:
    found = [registry.format_named(name).property_prefix for name in registry.NAMES]
    return [prefix for prefix in found if prefix]


def _parquet(key: str) -> str:
    if key == "parquet.compression":
        return "use the option compression instead"
    return "leave it out: targetFileSize, maxRecordsPerFile and compression are what can be set of files"


def _unknown(given: str, own: Mapping[str, str], foreign: Mapping[str, str], prefix: str) -> InvalidInput:
    known = {**foreign, **_PROCESS_BY_LOWER, **_SPARK_BY_LOWER, **own}
    near = difflib.get_close_matches(given.lower(), known, n=1, cutoff=0.6)
    if near:
        return InvalidInput(f"option {prefix}{given} is unknown; did you mean {prefix}{known[near[0]]}?")
    names = ", ".join((*own.values(), f"{STORE.prefix}<{STORE.key}>"))
    properties = ", ".join(f"{each}<property>" for each in property_prefixes())
    return InvalidInput(f"option {prefix}{given} is unknown; there are {names} and {properties}")


_PROCESS_BY_LOWER = {each.name.lower(): each.name for each in PROCESS_DECLARATIONS}
_SPARK_BY_LOWER = {name.lower(): name for name in SPARK}

"""The options of a read, checked against their declarations."""

from __future__ import annotations

from collections.abc import Mapping

from lakecommit.errors import InvalidInput
from lakecommit.options.declarations import LATER, SESSION_PREFIX
from lakecommit.options.process import not_of_a_write
from lakecommit.options.read_declarations import LATER_READING, READ_DECLARATIONS, WRITING, ReadOptions
from lakecommit.options.session import of_no_format
from lakecommit.options.sorting import NAMING, applies, of_hadoop, sorted_out, values_of

_OTHERS = (*WRITING, *LATER, *LATER_READING)
_CONTRADICTING = (
    ("versionAsOf", "timestampAsOf"),
    ("startingVersion", "startingTimestamp"),
    ("skipChangeCommits", "ignoreChanges"),
)


def parse_read_options(
    raw: Mapping[str, str], *, streaming: bool | None, defaults: Mapping[str, str] | None = None
) -> ReadOptions:
    """Checks the options of one read and fills in the defaults.

    `streaming` is None where it is not known yet: then options of both kinds are taken. `defaults` are the session's,
    as `session_options` has them; those of writes are passed over. Raises `InvalidInput` for an option that is unknown,
    only for writing or for the other kind of read, out of bounds or contradicted.
    """
    declared = {each.name: each for each in READ_DECLARATIONS}
    given = sorted_out(raw, declared, "", _OTHERS)
    # What formats have settings for is said of writes.
    preset = sorted_out(of_no_format(defaults or {}), declared, SESSION_PREFIX, _OTHERS)
    for name in NAMING & preset.own.keys():
        raise InvalidInput(f"{SESSION_PREFIX}{name} would read one table everywhere; unset it and name the table")
    for name in given.process:
        raise not_of_a_write(name)
    for name in given.others:
        raise _refused(name)
    for name in given.properties:
        raise InvalidInput(f"option {name} is a property for a table that a write creates; leave it out of a read")
    ours = {name for name in declared if streaming is None or applies(declared[name], streaming)}
    for name in given.own:
        if name not in ours:
            raise InvalidInput(
                f"option {name} is for batch reads; leave it out of readStream"
                if streaming
                else f"option {name} is for streams; leave it out of a batch read"
            )
    texts = {
        name: text for name, text in preset.own.items() if streaming is None or applies(declared[name], streaming)
    } | given.own
    for one, other in _CONTRADICTING:
        if _is_asked(texts.get(one)) and _is_asked(texts.get(other)):
            raise InvalidInput(f"options {one} and {other} contradict each other; leave one out")
    values = values_of(declared, texts)
    if "table" in texts and "path" not in texts:
        raise InvalidInput(
            "option table is the name of a table, and only a registered session knows where that is; call "
            "lakecommit.register(spark) first, or give the table's location"
        )
    for each in READ_DECLARATIONS:
        if each.missing is not None and each.name not in texts:
            raise InvalidInput(each.missing)
    store = preset.store | given.store
    return ReadOptions(**values, store_options=of_hadoop(preset.hadoop | given.hadoop, values["path"], store) | store)


def _is_asked(text: str | None) -> bool:
    return text is not None and text.strip().lower() != "false"


def _refused(name: str) -> InvalidInput:
    if name in LATER_READING:
        return InvalidInput(f"option {name} is not available in this version of lakecommit; {LATER_READING[name]}")
    return InvalidInput(f"option {name} is for writing; leave it out of a read")

"""Options of a process: taken once, when its committer starts, from the Spark session or else from the environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lakecommit.errors import InvalidInput
from lakecommit.options.declarations import PROCESS_DECLARATIONS, SESSION_PREFIX, ProcessOptions
from lakecommit.options.declaring import Declaration


def process_options(session: Mapping[str, str], environment: Mapping[str, str]) -> ProcessOptions:
    """`session` are `spark.lakecommit.<option>` settings without that prefix; those of writes are passed over.

    Raises `InvalidInput` if a value cannot be meant.
    """
    settings = {name.lower(): text for name, text in session.items()}
    values: dict[str, Any] = {}
    for each in PROCESS_DECLARATIONS:
        if each.name.lower() in settings:
            values[each.attribute] = _value(each, SESSION_PREFIX + each.name, settings[each.name.lower()])
        elif variable_of(each.name) in environment:
            values[each.attribute] = _value(each, variable_of(each.name), environment[variable_of(each.name)])
    return ProcessOptions(**values)


def unheeded(process: ProcessOptions, session: Mapping[str, str]) -> dict[str, str]:
    """What a session asks for that `process` does not have, by the name of its setting: it came too late."""
    settings = {name.lower(): text for name, text in session.items()}
    return {
        SESSION_PREFIX + each.name: settings[each.name.lower()]
        for each in PROCESS_DECLARATIONS
        if each.name.lower() in settings and not _is(each, settings[each.name.lower()], process)
    }


def not_of_a_write(name: str) -> InvalidInput:
    """What is said where a write brings an option of the process."""
    return InvalidInput(
        f"option {name} belongs to the process and not to a write: it holds for all tables together; leave it out "
        f"here, and set {SESSION_PREFIX}{name} in the session before lakecommit.register, or {variable_of(name)} in "
        "the environment of the driver"
    )


def variable_of(name: str) -> str:
    """The variable of the environment that stands for an option: `LAKECOMMIT_COMMITTER_MEMORY`."""
    return "LAKECOMMIT_" + re.sub(r"(?=[A-Z])", "_", name).upper()


def _value(declared: Declaration, source: str, text: str) -> Any:
    try:
        return declared.read(text)
    except ValueError:
        raise InvalidInput(f"{source} is {text[:100]!r}, but has to be {declared.values}") from None


def _is(declared: Declaration, text: str, process: ProcessOptions) -> bool:
    try:
        return bool(declared.read(text) == getattr(process, declared.attribute))
    except ValueError:
        return False

"""What users of a format may set in words of its own: table properties, and settings of a Spark session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatSettings:
    """`title` is the format as people call it, and `page` what `docs/options.md` says of its session settings.

    Names of table properties begin with `property_prefix`; `check_properties` takes them in any case and raises
    `InvalidInput` where no table can be created with them.

    `session_settings` are those that name the transaction of a batch write to the format's own writers, each with the
    option of lakecommit that it stands for: all of them are set, or none. Those in `taken_once` are unset by the write
    that takes them, where the setting beside them is `true`.

    `session_defaults` are settings of a session that the format's own writers read, each with the option that it stands
    for. What begins with `property_defaults` is a table property of tables that are created.
    """

    title: str
    property_prefix: str
    check_properties: Callable[[Mapping[str, str]], object]
    session_settings: Mapping[str, str]
    taken_once: Mapping[str, str]
    session_defaults: Mapping[str, str]
    property_defaults: str
    page: str

"""What users of a format may set in words of its own: table properties, and settings of a Spark session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatSettings:
    """`title` is the format as people call it, and `page` what `docs/options.md` says of its session settings. `log` is
    the directory of a table's log, by which the format of a table is known.

    Names of table properties begin with `property_prefix`; `check_properties` takes them in any case and raises
    `InvalidInput` where no table can be created with them.

    `session_settings` are those that name the transaction of a batch write to the format's own writers, each with the
    option of lakecommit that it stands for: all of them are set, or none. Those in `taken_once` are unset by the write
    that takes them, where the setting beside them is `true`.

    `session_defaults` are settings of a session that the format's own writers read, each with the option that it stands
    for. What begins with `property_defaults` is a table property of tables that are created.

    `own_options` are those that no other format has, and `refused` those that this one has no use for, with the reason.
    `replaces_epochs` says that a stream may replace the table with each epoch.

    `features` is the page that says what can be written. `vacuum_ms` is how old its vacuum lets a file become that no
    version names, by default; None where it has none. `passed` says what it means that another sink went past epochs,
    and `refits` how a table is changed back that epochs no longer fit; empty where it cannot be. `foreign` says what a
    directory is that has the log and is no table of lakecommit's, and what to do; empty where there is no such thing.
    """

    title: str
    log: str
    property_prefix: str
    check_properties: Callable[[Mapping[str, str]], object]
    session_settings: Mapping[str, str]
    taken_once: Mapping[str, str]
    session_defaults: Mapping[str, str]
    property_defaults: str
    page: str
    own_options: frozenset[str] = frozenset()
    refused: Mapping[str, str] = field(default_factory=dict)
    replaces_epochs: bool = True
    features: str = ""
    vacuum_ms: int | None = None
    passed: str = "their rows are missing from the table"
    refits: str = ""
    foreign: str = ""


def listed(session_defaults: Mapping[str, str]) -> str:
    """As a page says them."""
    return ",\n".join(f"`{key}` as `{option}`" for key, option in session_defaults.items())

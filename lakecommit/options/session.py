"""What the settings of a Spark session say about writes, as options. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from lakecommit.formats import registry
from lakecommit.formats.settings import FormatSettings
from lakecommit.options.declarations import SESSION_PREFIX
from lakecommit.storage import hadoop


def session_options(settings: Mapping[str, str]) -> dict[str, str]:
    """By option: those that are set with `spark.lakecommit.<option>`, and properties of tables that are created.

    Under their own names: what the formats' own writers would read, and Hadoop's settings of object stores.
    """
    found: dict[str, str] = {}
    for each in map(registry.format_named, registry.NAMES):
        for key, value in settings.items():
            if key in each.session_defaults:
                found[key] = value
            elif each.property_defaults and key.startswith(each.property_defaults):
                found[each.property_prefix + key.removeprefix(each.property_defaults)] = value
    found |= {key: value for key, value in settings.items() if hadoop.counts(key)}
    own = {key.removeprefix(SESSION_PREFIX): text for key, text in settings.items() if key.startswith(SESSION_PREFIX)}
    # Names are matched in any case.
    asked = {key.lower() for key in own}
    return {key: text for key, text in found.items() if key.lower() not in asked} | own


def of_no_format(session: Mapping[str, str]) -> dict[str, str]:
    """Of such options those that have the name of an option, whatever the format of the table is."""
    formats = [registry.format_named(name) for name in registry.NAMES]
    theirs = {key for each in formats for key in (*each.session_settings, *each.session_defaults)}
    return {key: text for key, text in session.items() if key not in theirs}


def of_format(session: Mapping[str, str], table_format: FormatSettings) -> dict[str, str]:
    """The same, with what the own writers of this format would read, where lakecommit is not told otherwise: what is
    said to writers of another one is nothing to it."""
    own = of_no_format(session)
    asked = {key.lower() for key in own}
    defaults = table_format.session_defaults.items()
    found = {option: session[key] for key, option in defaults if key in session and option.lower() not in asked}
    return found | own

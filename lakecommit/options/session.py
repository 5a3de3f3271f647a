"""What the settings of a Spark session say about writes, as options. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from lakecommit.formats import registry
from lakecommit.options.declarations import SESSION_PREFIX
from lakecommit.storage import hadoop


def session_options(settings: Mapping[str, str]) -> dict[str, str]:
    """By option: those that are set with `spark.lakecommit.<option>`, and what the formats' own writers would read.

    Hadoop's settings of object stores are among these, under their own names.
    """
    found: dict[str, str] = {}
    for each in map(registry.format_named, registry.NAMES):
        for key, value in settings.items():
            if key in each.session_defaults:
                found[each.session_defaults[key]] = value
            elif each.property_defaults and key.startswith(each.property_defaults):
                found[each.property_prefix + key.removeprefix(each.property_defaults)] = value
    found |= {key: value for key, value in settings.items() if hadoop.counts(key)}
    own = {key.removeprefix(SESSION_PREFIX): text for key, text in settings.items() if key.startswith(SESSION_PREFIX)}
    # Names are matched in any case.
    asked = {key.lower() for key in own}
    return {key: text for key, text in found.items() if key.lower() not in asked} | own

"""What users of the tiny format may set: nothing."""

from __future__ import annotations

from lakecommit.formats.settings import FormatSettings

SETTINGS = FormatSettings(
    title="Tiny",
    log="_tiny_log",
    property_prefix="tiny.",
    check_properties=lambda properties: None,
    session_settings={},
    session_defaults={},
    property_defaults="spark.tiny.properties.",
    taken_once={},
    page="",
)

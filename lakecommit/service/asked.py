"""What a request asks of the table, from its options. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping

from lakecommit.errors import InvalidInput
from lakecommit.formats import registry
from lakecommit.formats.change import Scope
from lakecommit.options.declarations import DECLARATIONS, Options
from lakecommit.progress.settings import Replacement, TableSettings
from lakecommit.service.wire import Request, Verb


def settings_of(options: Options) -> TableSettings:
    return TableSettings(
        partition_columns=options.partition_by,
        properties={**options.table_properties, **_own_properties(options)},
        user_metadata=options.user_metadata,
        accepted_table_id=options.accept_table_id,
        event_time_column=options.event_time_column,
        watermark_delay_us=options.watermark_delay_ms * 1000,
        merge_schema=options.merge_schema,
        checkpoint_interval=options.checkpoint_interval,
    )


def _own_properties(options: Options) -> Mapping[str, str]:
    """What options of the format's own make of a new table."""
    own = registry.format_named(options.table_format).own_options
    values = {each.name: getattr(options, each.attribute) for each in DECLARATIONS if each.name in own}
    return {name: _text(value) for name, value in values.items() if value is not None}


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def replacement_of(options: Options, request: Request) -> Replacement | None:
    """What the write replaces; None for an append. Raises `InvalidInput` for options that would have no effect."""
    if not request.overwrite:
        overwriting = {
            "replaceWhere": options.replace_where,
            "readVersion": options.read_version,
            "overwriteSchema": options.overwrite_schema or None,
        }
        for name, value in overwriting.items():
            if value is not None:
                raise InvalidInput(f'option {name} only works with mode("overwrite"); leave it out of an append')
        return None
    table_format = registry.format_named(options.table_format)
    if request.streaming and not table_format.replaces_epochs:
        raise InvalidInput(
            f'outputMode("complete") does not work with tableFormat={options.table_format}: nothing can be taken out '
            'of the directory of a stream; use outputMode("append"), or write a Delta table'
        )
    # The planner has decided; it goes by what the user says, or else by what the driver has found.
    planned = request.verb is not Verb.PLAN or options.read_version is None
    version = request.read_version if planned else options.read_version
    return Replacement(Scope(options.dynamic_overwrite, options.replace_where), version, options.overwrite_schema)

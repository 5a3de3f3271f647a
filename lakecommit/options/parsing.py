"""The options of a write, checked against their declarations.

Spark hands over names in lower case, so they are matched without regard to case and reported as they are declared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from lakecommit.errors import InvalidInput
from lakecommit.formats import registry
from lakecommit.formats.plan import TableOption
from lakecommit.formats.settings import FormatSettings
from lakecommit.options.declarations import HARMLESS, LATER, SESSION_PREFIX, Options
from lakecommit.options.declaring import Declaration, declarations_of
from lakecommit.options.process import not_of_a_write
from lakecommit.options.read_declarations import READING
from lakecommit.options.session import of_format, of_no_format
from lakecommit.options.sorting import NAMING, applies, of_hadoop, sorted_out, values_of

AnyOptions = TypeVar("AnyOptions", bound=Options)
# Known to whoever reads, or to Delta or a later lakecommit.
_OTHERS = (*LATER, *READING)


def parse_options(
    raw: Mapping[str, str],
    *,
    streaming: bool,
    defaults: Mapping[str, str] | None = None,
    table: Iterable[TableOption] = (),
) -> Options:
    """Checks the options of one write and fills in the defaults.

    `defaults` are the session's, as `session_options` has them: `spark.lakecommit.<option>` settings without that
    prefix, and those of formats under their whole names. Those of other formats, or that do not apply to this kind of
    write, are passed over. `table` is what the table asks for: that comes before the session, and after the write's
    own. Raises `InvalidInput` for an option that is unknown, not available, written for the other kind of write or for
    the process, out of bounds or contradicted by another.
    """
    return parse(Options, raw, streaming=streaming, defaults=defaults, table=table)


def parse(
    kind: type[AnyOptions],
    raw: Mapping[str, str],
    *,
    streaming: bool,
    defaults: Mapping[str, str] | None = None,
    table: Iterable[TableOption] = (),
) -> AnyOptions:
    """The same for whatever options `kind` declares."""
    declared = {each.name: each for each in declarations_of(kind)}
    session = defaults or {}
    given = sorted_out(raw, declared, "", _OTHERS)
    preset = sorted_out(of_no_format(session), declared, SESSION_PREFIX, _OTHERS)
    named = {name: text for name, text in (preset.own | given.own).items() if name == "tableFormat"}
    table_format = registry.format_named(values_of(declared, named).get("table_format", registry.DEFAULT))
    preset = sorted_out(of_format(session, table_format), declared, SESSION_PREFIX, _OTHERS)
    for name in NAMING & preset.own.keys():
        raise InvalidInput(f"{SESSION_PREFIX}{name} would send every write to one table; unset it and name the table")
    for name in given.process:
        raise not_of_a_write(name)
    for name in given.own:
        if not applies(declared[name], streaming):
            raise InvalidInput(
                f"option {name} is for batch writes, and a stream keeps its progress under its query id; leave it out"
                if streaming
                else f"option {name} is for streams; leave it out of a batch write"
            )
    texts = {name: text for name, text in preset.own.items() if applies(declared[name], streaming)}
    asked = {each.name: each for each in table}
    for name in asked.keys() & declared.keys() - given.own.keys():
        _check_asked(declared[name], asked[name])
        texts[name] = asked[name].value
    texts |= given.own
    values = values_of(declared, texts)
    if "table" in texts and "path" not in texts:
        raise InvalidInput(
            "option table is the name of a table, and only a registered session knows where that is; call "
            "lakecommit.register(spark) first, or give the table's location"
        )
    for name in READING & given.others.keys():
        raise InvalidInput(f"option {name} is for reading; leave it out of a write")
    _refuse_later(given.others, preset.others, asked)
    for each in declared.values():
        if each.missing is not None and each.name not in texts:
            raise InvalidInput(each.missing)
    store = preset.store | given.store
    options = kind(
        **values,
        table_properties=preset.properties | given.properties,
        store_options=of_hadoop(preset.hadoop | given.hadoop, values["path"], store) | store,
    )
    _refuse_of_others(given.own, options.table_format)
    if not streaming and texts.keys().isdisjoint(table_format.session_settings.values()):
        options = replace(options, **values_of(declared, _set_in(session, table_format)))
    _refuse_contradictions(options, given.own)
    # What the session says of tables of other formats is passed over, what the write says is not.
    others = {key for key in preset.properties if not _is_property(key, table_format)} - given.properties.keys()
    properties = {key: text for key, text in options.table_properties.items() if key not in others}
    # Raises if the format has no such property, before anything is opened or written.
    table_format.check_properties(properties)
    return replace(options, table_properties=properties)


def txn_options(options: Options) -> dict[str, str]:
    """The options that name the transaction of a batch write, wherever it came from; none where it has none."""
    if options.txn_app_id is None:
        return {}
    return {"txnAppId": options.txn_app_id, "txnVersion": str(options.txn_version)}


def _check_asked(declared: Declaration, asked: TableOption) -> None:
    try:
        declared.read(asked.value)
    except ValueError:
        raise InvalidInput(
            f"the table property {asked.property} is {asked.value[:100]!r}, but option {declared.name}, which it "
            f"stands for, has to be {declared.values}; set the property to that, or give the option"
        ) from None


def _refuse_later(given: Mapping[str, str], preset: Mapping[str, str], asked: Mapping[str, TableOption]) -> None:
    """What asks for something that is not available; here the session comes before the table."""
    for name, instead in LATER.items():
        known = f"option {name} is not available in this version of lakecommit; {instead}"
        if name in given:
            text = given[name]
        elif name in preset:
            text, known = preset[name], known.replace("option ", f"option {SESSION_PREFIX}", 1)
        elif name in asked:
            text, known = asked[name].value, f"the table has the property {asked[name].property}, and {known}"
        else:
            continue
        if HARMLESS.get(name) != text.strip().lower():
            raise InvalidInput(known)


def _refuse_of_others(given: Mapping[str, str], name: str) -> None:
    """Options of the write itself that another format has, or that this one has no use for."""
    for other in registry.NAMES:
        for option in sorted(registry.format_named(other).own_options & given.keys()):
            if other != name:
                raise InvalidInput(
                    f"option {option} is for tableFormat={other}, and tableFormat is {name}; leave it out"
                )
    for option, why in registry.format_named(name).refused.items():
        if option in given:
            raise InvalidInput(f"option {option} does not work with tableFormat={name}: {why}; leave it out")


def _set_in(session: Mapping[str, str], table_format: FormatSettings) -> dict[str, str]:
    """The options that the format's own settings of the session stand for, for a write that names none of them."""
    settings = table_format.session_settings
    found = [key for key in settings if key in session]
    missing = [key for key in settings if key not in session]
    if found and missing:
        raise InvalidInput(f"the session sets {found[0]} and not {missing[0]}; set both or unset both")
    return {settings[key]: session[key] for key in found}


def _refuse_contradictions(options: Options, given: Mapping[str, str]) -> None:
    if (options.txn_app_id is None) != (options.txn_version is None):
        missing = "txnAppId" if options.txn_app_id is None else "txnVersion"
        raise InvalidInput(f"options txnAppId and txnVersion only work together; give {missing}, too")
    if options.replace_where is not None and options.dynamic_overwrite:
        raise InvalidInput(
            "options replaceWhere and partitionOverwriteMode=dynamic contradict each other; leave one out"
        )
    if options.overwrite_schema and (options.replace_where is not None or options.dynamic_overwrite):
        partly = "replaceWhere" if options.replace_where is not None else "partitionOverwriteMode=dynamic"
        raise InvalidInput(f"option overwriteSchema replaces the whole table, and {partly} a part of it; leave one out")
    # A session's default delay is for those of its queries that have event times.
    if "watermarkDelay" in given and options.event_time_column is None:
        raise InvalidInput(
            "option watermarkDelay only works with eventTimeColumn; name the column that holds the event time, too, "
            "or leave watermarkDelay out"
        )


def _is_property(key: str, table_format: FormatSettings) -> bool:
    return bool(table_format.property_prefix) and key.startswith(table_format.property_prefix)

"""`docs/options.md`, from the declarations: `python -m lakecommit.options.page` prints it."""

from __future__ import annotations

from collections.abc import Iterable

from lakecommit.formats import registry
from lakecommit.options.declarations import LATER, SESSION_PREFIX, STORE, Options, ProcessOptions
from lakecommit.options.declaring import Applies, declarations_of
from lakecommit.options.process import variable_of
from lakecommit.options.read_declarations import LATER_READING, READ_DECLARATIONS


def markdown(*kinds: type[object]) -> str:
    """The page of the options that `kinds` declare: without any, of all there are."""
    return "\n".join([*_HEAD, *_rows(kinds or (Options, ProcessOptions)), *_tail(), *_reading(), ""])


_HEAD = (
    "# Options",
    "",
    "Written by `make docs` from the declarations in `lakecommit/options/declarations.py`, and for reading in",
    "`lakecommit/options/read_declarations.py`. The first table is for writing; [reading](#reading) has its own.",
    "",
    "| option | for | default | values | meaning |",
    "| --- | --- | --- | --- | --- |",
)


def _rows(kinds: Iterable[type[object]]) -> Iterable[str]:
    for each in (each for kind in kinds for each in declarations_of(kind)):
        yield _row(each.name, each.applies, each.shown_default, each.values, each.help)
    yield _row(f"{STORE.prefix}<{STORE.key}>", Applies.BOTH, STORE.shown_default, STORE.values, STORE.help)
    for table_format in map(registry.format_named, registry.NAMES):
        name, values = f"{table_format.property_prefix}<property>", f"as in {table_format.title}"
        yield _row(name, Applies.BOTH, "", values, "Table properties, for a table that this write creates.")


def _reading() -> Iterable[str]:
    """Those that a write has, too, mean the same there."""
    yield from ("", "## Reading", "", *_HEAD[-2:])
    for each in READ_DECLARATIONS:
        yield _row(each.name, each.applies, each.shown_default, each.values, each.help)
    yield from (
        "",
        f"`{STORE.prefix}<{STORE.key}>` is as for writes, and `{SESSION_PREFIX}<option>` sets a default here, too. An",
        "option that is only for writing is refused in a read, and the other way round. Refused by name: "
        + ", ".join(f"`{name}`" for name in LATER_READING)
        + ".",
    )


def _row(name: str, applies: Applies, default: str, values: str, meaning: str) -> str:
    return f"| `{name}` | {applies.value} | {default} | {values} | {meaning} |"


def _tail() -> Iterable[str]:
    variables = ", ".join(f"`{variable_of(each.name)}`" for each in declarations_of(ProcessOptions))
    yield from (
        "",
        f"Names are matched without regard to case. `{SESSION_PREFIX}<option>` in a registered Spark session sets a",
        "default for every option but `path` and `table`. It is read when a batch write is planned and when a query",
        "starts.",
        "An unknown or misspelt option is an error that names the nearest known one.",
        "",
        "An option for the *process* holds for all of its tables together, and no write can set it. It is read once,",
        f"when `lakecommit.register` starts the committer: from `{SESSION_PREFIX}<option>` of that session, or else",
        f"from the environment of the driver ({variables}). A worker that has to commit without the",
        "driver's committer reads it in the same way. What a session sets later has no effect; the log says so.",
    )
    for each in map(registry.format_named, registry.NAMES):
        yield from ("", each.page)
    yield from (
        "",
        "Of Hadoop's settings of S3 those that are plain are taken over, from the options of a write and, with",
        "`lakecommit.register`, from its session: `fs.s3a.access.key`, `fs.s3a.secret.key`, `fs.s3a.session.token`,",
        "`fs.s3a.aws.credentials.provider` (if it is the one for these, or for nobody), `fs.s3a.endpoint`,",
        "`fs.s3a.endpoint.region`, `fs.s3a.connection.ssl.enabled`, `fs.s3a.path.style.access` and",
        "`fs.s3a.requester.pays.enabled`, also of one bucket (`fs.s3a.bucket.<bucket>.…`). `store.*` options come",
        "first. Where a role, encryption or a proxy is set there, the error names the `store.*` option that is needed.",
    )
    yield from (
        "",
        "Spark shows the options of a write in query plans and event logs, and hides only values whose names look",
        "secret to it (`spark.redaction.regex`). Credentials are safer in the environment than in `store.*` options.",
        "",
        "Not available yet, and refused by name: " + ", ".join(f"`{name}`" for name in LATER) + ".",
    )


if __name__ == "__main__":
    print(markdown(), end="")

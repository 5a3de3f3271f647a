"""From a location as a user writes it to a store."""

from __future__ import annotations

import functools
import os
import random as randomness
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, LocalStore, MemoryStore, S3Store

from lakecommit.clock import Clock, SystemClock
from lakecommit.errors import InvalidInput
from lakecommit.storage.answers import Answers
from lakecommit.storage.backend import Backend
from lakecommit.storage.base import Store
from lakecommit.storage.local import LocalTree
from lakecommit.storage.on_obstore import ObstoreStore
from lakecommit.storage.options import StoreSettings, settings_of
from lakecommit.storage.policy import DEFAULT_POLICY, RetryPolicy

if TYPE_CHECKING:
    from obstore.store import ObjectStore

REQUEST_TIMEOUT = "300s"
SILENCE_TIMEOUT = "30s"
CONNECT_TIMEOUT = "5s"
SYSTEM_CLOCK = SystemClock()


def open_store(
    location: str,
    store_options: Mapping[str, str],
    *,
    clock: Clock = SYSTEM_CLOCK,
    random: Callable[[], float] = randomness.random,
    policy: RetryPolicy = DEFAULT_POLICY,
) -> Store:
    """A store for everything below `location`; makes no request and creates nothing.

    `store_options` are the user's `store.<key>` options without that prefix. Raises `InvalidInput` for a location or
    an option that cannot be meant.
    """
    location = location.strip()
    if _CONTROL.search(location):
        raise InvalidInput(f"the location {location!r} has a control character, which obstore does not take; rename it")
    kind, bucket, path = parse_location(location)
    settings = settings_of(kind, store_options)
    if kind == "local":
        root = os.path.abspath(path)
        files, tree = LocalStore(), LocalTree(root)
        backend = Backend(files, lambda: files, root.strip("/"), ordered=False, bulk_delete=False, tree=tree)
        return ObstoreStore(root, backend, clock=clock, random=random, policy=policy)
    prefix = _prefix(location, path)
    if kind == "memory":
        memory = _MEMORY.setdefault(bucket, MemoryStore())
        backend = Backend(memory, lambda: memory, prefix, ordered=True, bulk_delete=False)
    else:
        backend = _remote(kind, bucket, prefix, settings)
    shown = f"{location.split(':', 1)[0].lower()}://{bucket}" + (f"/{prefix}" if prefix else "")
    return ObstoreStore(shown, backend, clock=clock, random=random, policy=policy)


def absolute(location: str) -> str:
    """The same location, meaning the same in every process: a relative path is one of this process's directory."""
    kind, _, path = parse_location(location)
    return os.path.abspath(path) if kind == "local" else location


def is_apart(location: str, others: Sequence[str] | None) -> bool:
    """Whether none of the others is this location or lies below it; False where it is not known what they are."""
    return others is not None and not any(_is_within(each, location) for each in others)


def _is_within(location: str, whole: str) -> bool:
    try:
        (kind, bucket, path), (whole_kind, whole_bucket, whole_path) = map(parse_location, (location, whole))
    except InvalidInput:
        # It cannot be written to, so that it is not what is written to.
        return False
    inside = f"{os.path.abspath('/' + path)}/".startswith(f"{os.path.abspath('/' + whole_path).rstrip('/')}/")
    return (kind, bucket) == (whole_kind, whole_bucket) and inside


# Two openings of one memory location in a process see the same objects.
_MEMORY: dict[str, MemoryStore] = {}

_SCHEMES = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gs",
    "az": "az",
    "azure": "az",
    "abfs": "az",
    "abfss": "az",
    "file": "local",
    "memory": "memory",
}
# Schemes that Spark's users know, and what to write instead.
_FOREIGN = {
    "dbfs": "write the location that is mounted there, as dbutils.fs.mounts() shows it",
    "s3n": "write s3://",
    **dict.fromkeys(("wasb", "wasbs", "adl"), "write abfss://container@account.dfs.core.windows.net/table"),
    **dict.fromkeys(("hdfs", "viewfs", "webhdfs"), "only object stores and local directories are supported"),
}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//?)?(.*)", re.DOTALL)
_EXAMPLES = "write s3://bucket/table, gs://bucket/table, az://container/table, file:///path/table or a plain path"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_AZURE_HOST = re.compile(r"[a-z0-9-]+@[a-z0-9]+\.(dfs|blob)\.(core\.windows\.net|fabric\.microsoft\.com)")


def parse_location(location: str) -> tuple[str, str, str]:
    """Kind, bucket and path. The path is taken literally, as Spark does: `%20` is three characters. `~` is the home
    directory."""
    if not location:
        raise InvalidInput(f"the location is empty; {_EXAMPLES}")
    found = _SCHEME.fullmatch(location)
    if found is None or not (found[2] or found[1].lower() in _SCHEMES or found[1].lower() in _FOREIGN):
        return "local", "", _at_home(location)
    scheme, slashes, rest = found[1].lower(), found[2], found[3]
    kind = _SCHEMES.get(scheme)
    if kind is None:
        # Whatever has a scheme to Spark is no directory, also where it has one slash.
        remedy = _FOREIGN.get(scheme, f"for a directory of that name write ./{scheme}:/…")
        raise InvalidInput(f"the scheme {scheme}: is not known; {remedy}; {_EXAMPLES}")
    if kind == "local":
        path = rest if slashes == "//" else (slashes or "") + rest
        if not path.startswith("/"):
            raise InvalidInput(f"a file location needs an absolute path without a host; {_EXAMPLES}")
        return kind, "", path
    if slashes != "//":
        # Shown only where it holds no key or signature.
        meant = f", {scheme}://{rest}" if re.fullmatch(r"[\w./=-]+", rest) else ""
        raise InvalidInput(f"the location has {scheme}: without its slashes; write {scheme}:// with two slashes{meant}")
    bucket, _, path = rest.partition("/")
    if not bucket:
        raise InvalidInput(f"the location {scheme}:// names no bucket; {_EXAMPLES}")
    # What follows is not shown: it may be a key or a signature.
    if not (_BUCKET.fullmatch(bucket) or (scheme in {"abfs", "abfss"} and _AZURE_HOST.fullmatch(bucket))):
        raise InvalidInput(f"the bucket of the {scheme}:// location is not a valid bucket name; {_EXAMPLES}")
    if "?" in path:
        raise InvalidInput(f"the {scheme}:// location has a query; give credentials as store.* options")
    return kind, bucket, path


def _at_home(path: str) -> str:
    """The path with the home directory in place of a leading `~`, as a shell would have it."""
    expanded = os.path.expanduser(path)
    if path.startswith("~") and expanded == path:
        name = path.split("/", 1)[0]
        raise InvalidInput(f"{name} is no home directory on this machine; for a directory of that name write ./{name}")
    return expanded


def _prefix(location: str, path: str) -> str:
    prefix = path.strip("/")
    if prefix and any(part in {"", ".", ".."} for part in prefix.split("/")):
        raise InvalidInput(f"the location {location!r} has an empty, '.' or '..' part; leave it out")
    return prefix


def _remote(kind: str, bucket: str, prefix: str, settings: StoreSettings) -> Backend:
    client: dict[str, Any] = {"timeout": REQUEST_TIMEOUT, "connect_timeout": CONNECT_TIMEOUT, **settings.client}
    if _plain_http(kind, settings):
        client.setdefault("allow_http", True)
    # An upload is silent for as long as its body takes, so only small requests have a limit on silence.
    quick = {"read_timeout": SILENCE_TIMEOUT, **client}
    client.pop("read_timeout", None)
    try:
        opened = _open(kind, bucket, settings.config, quick)
    except (BaseError, ValueError):
        # The cause is left out, it can quote an option's value.
        raise InvalidInput(_REFUSED[kind]) from None
    # Listings of S3 directory buckets and of Azure accounts with a hierarchical namespace have an order of their own.
    ordered = kind == "gs" or (kind == "s3" and not bucket.endswith("--x-s3"))
    # A client takes some 20 ms to set up, and most tasks upload nothing large.
    uploads = functools.cache(lambda: _open(kind, bucket, settings.config, client))
    answers = None if "read_timeout" in settings.client else _answers(kind, bucket, tuple(_endpoints(kind, settings)))
    return Backend(opened, uploads, prefix, ordered=ordered, bulk_delete=kind == "s3", answers=answers)


@functools.lru_cache(maxsize=64)
def _answers(kind: str, bucket: str, endpoints: tuple[str, ...]) -> Answers:
    """What a process has learned of a store serves its next tasks, too: each of them opens it anew."""
    return Answers()


def _open(kind: str, bucket: str, config: Any, client: Any) -> ObjectStore:
    no_retries: Any = {"max_retries": 0}
    if kind == "s3":
        # Spelt out, so that no variable can switch create-if-absent off.
        config = {**config, "conditional_put": "etag"}
        return S3Store(bucket, config=config, client_options=client, retry_config=no_retries)
    if kind == "gs":
        return GCSStore(bucket, config=config, client_options=client, retry_config=no_retries)
    if "@" in bucket:
        url = f"abfss://{bucket}/"
        named: AzureStore = AzureStore.from_url(url, config=config, client_options=client, retry_config=no_retries)
        return named
    return AzureStore(bucket, config=config, client_options=client, retry_config=no_retries)


def _plain_http(kind: str, settings: StoreSettings) -> bool:
    """Whether the user points at an http:// endpoint, by option or by environment."""
    return any(value.lower().startswith("http://") for value in _endpoints(kind, settings))


def _endpoints(kind: str, settings: StoreSettings) -> list[str]:
    named = [settings.config.get(key) for key in ("endpoint", "base_url")]
    return [value for value in named if value] or [os.environ.get(name, "") for name in _ENDPOINT_VARIABLES[kind]]


_ENDPOINT_VARIABLES = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "gs": ("GOOGLE_BASE_URL",),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
_REFUSED = {
    "s3": "the store options or AWS_* variables are not accepted; check store.endpoint, store.region and the others",
    "gs": "the store options or GOOGLE_* variables are not accepted; check the service account and the others",
    "az": "the store options or AZURE_* variables are not accepted; store.account_name is required",
}

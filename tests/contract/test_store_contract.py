"""What every store promises, verb by verb."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pyarrow as pa
import pytest

from lakecommit.errors import InvalidInput, StoreError
from lakecommit.storage import on_obstore
from lakecommit.storage.base import AlreadyThere, Created, Found, NotModified, ObjectInfo, Store

NAMES = [
    "plain.parquet",
    "region=EU/day=2024-01-01/x.parquet",
    "with space/and+plus&amp.parquet",
    "percent=100%/%2F/%41.parquet",
    "colon=12:30:00/hash#x.parquet",
    "quote'\"/star*?.parquet",
    "ünï/日本/🙂.parquet",
    "back\\slash/[brackets]{braces}^`|<>~.parquet",
]


def test_creates_once(store: Store) -> None:
    async def scenario() -> None:
        first = await store.create("seals/1", b"mine")
        assert isinstance(first, Created)
        assert await store.create("seals/1", b"theirs") == AlreadyThere()
        assert await store.get("seals/1") == Found(b"mine", first.etag)

    asyncio.run(scenario())


def test_creates_again_after_delete(store: Store) -> None:
    async def scenario() -> None:
        await store.create("a", b"1")
        assert await store.delete(["a"]) == ()
        assert isinstance(await store.create("a", b"2"), Created)

    asyncio.run(scenario())


def test_create_refuses_what_put_wrote(store: Store) -> None:
    async def scenario() -> None:
        await store.put("a", b"1")
        assert await store.create("a", b"2") == AlreadyThere()

    asyncio.run(scenario())


def test_put_overwrites_and_changes_the_etag(store: Store) -> None:
    async def scenario() -> None:
        first = await store.put("a", b"1")
        second = await store.put("a", memoryview(b"22"))
        assert first is not None
        assert second not in {None, first}
        assert await store.get("a") == Found(b"22", second)

    asyncio.run(scenario())


def test_put_takes_a_part_of_a_buffer(store: Store) -> None:
    async def scenario() -> None:
        await store.put("a", memoryview(bytearray(b"0123456789"))[2:5])
        await store.put("arrow", memoryview(pa.py_buffer(b"0123456789"))[2:5])
        for path in ("a", "arrow"):
            found = await store.get(path)
            assert isinstance(found, Found)
            assert found.body == b"234"

    asyncio.run(scenario())


def test_an_empty_object_is_an_object(store: Store) -> None:
    async def scenario() -> None:
        await store.put("empty", b"")
        found = await store.get("empty")
        assert isinstance(found, Found)
        assert found.body == b""
        assert await store.size("empty") == 0

    asyncio.run(scenario())


def test_get_of_a_known_etag(store: Store) -> None:
    async def scenario() -> None:
        etag = await store.put("a", b"1")
        assert await store.get("a", known_etag=etag) == NotModified()
        await store.put("a", b"22")
        assert isinstance(await store.get("a", known_etag=etag), Found)
        await store.delete(["a"])
        assert await store.get("a", known_etag=etag) is None

    asyncio.run(scenario())


def test_what_is_missing_is_none(store: Store) -> None:
    async def scenario() -> None:
        await store.put("dir/file", b"1")
        for path in ("nothing", "dir", "dir/other"):
            assert await store.get(path) is None
            assert await store.size(path) is None

    asyncio.run(scenario())


def test_sizes_and_ranges(store: Store) -> None:
    async def scenario() -> None:
        await store.put("a", b"0123456789")
        assert await store.size("a") == 10
        assert await store.get_range("a", 3, 4) == b"3456"
        assert await store.get_range("a", 8, 100) == b"89"
        assert await store.get_range("a", 3, 0) == b""
        with pytest.raises(StoreError, match="cannot read missing"):
            await store.get_range("missing", 0, 1)

    asyncio.run(scenario())


@pytest.mark.parametrize("name", NAMES)
def test_names_are_kept_to_the_letter(store: Store, name: str) -> None:
    async def scenario() -> None:
        assert isinstance(await store.create(f"d/{name}", b"x"), Created)
        assert await paths_of(store, "d") == [f"d/{name}"]
        found = await store.get(f"d/{name}")
        assert isinstance(found, Found)
        assert await store.size(f"d/{name}") == 1
        assert await store.delete([f"d/{name}"]) == ()
        assert await store.get(f"d/{name}") is None

    asyncio.run(scenario())


@pytest.mark.parametrize("name", ["", "/a", "a/", "a//b", "../a", "a/../b", "./a", "a\nb", "a\x00"])
def test_names_that_could_mean_something_else_are_refused(store: Store, name: str) -> None:
    async def scenario() -> None:
        for call in (store.create(name, b""), store.put(name, b""), store.get(name), store.delete(["ok", name])):
            with pytest.raises(InvalidInput, match="not a name of an object"):
                await call

    asyncio.run(scenario())


def test_lists_a_directory_in_order(store: Store) -> None:
    names = ["b/z", "b/a", "b/c/d", "b/c-", "b/c0", "b/Z", "b/é", "b/😀", "b/\uffee", "bc/x", "a", "b/c/a/1"]

    async def scenario() -> None:
        for name in names:
            await store.put(name, name.encode())
        below = sorted((name for name in names if name.startswith("b/")), key=str.encode)
        for prefix in ("b", "b/"):
            assert await paths_of(store, prefix) == below
        assert await paths_of(store, "b/c") == ["b/c/a/1", "b/c/d"]
        assert await paths_of(store, "") == sorted(names, key=str.encode)
        assert await paths_of(store, "nothing/here") == []

    asyncio.run(scenario())


def test_lists_after_a_path(store: Store) -> None:
    async def scenario() -> None:
        for name in ("s/1", "s/2", "s/3", "t/1"):
            await store.put(name, b"")
        assert await paths_of(store, "s", start_after="s/1") == ["s/2", "s/3"]
        assert await paths_of(store, "s", start_after="s/15") == ["s/2", "s/3"]
        assert await paths_of(store, "s", start_after="s/3") == []

    asyncio.run(scenario())


def test_lists_in_pages(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_obstore, "PAGE_OBJECTS", 20)
    monkeypatch.setattr(on_obstore, "BULK_DELETE_KEYS", 20)

    async def scenario() -> None:
        names = [f"p/{number:05}" for number in range(45)]
        await asyncio.gather(*(store.put(name, b"x") for name in reversed(names)))
        pages = [page async for page in store.list("p")]
        assert [len(page) for page in pages] == [20, 20, 5]
        assert [info.path for page in pages for info in page] == names
        assert await store.delete(names) == ()
        assert await paths_of(store, "p") == []

    asyncio.run(scenario())


def test_a_listing_says_size_and_age(store: Store) -> None:
    async def scenario() -> None:
        await store.put("a/b", b"12345")
        [info] = await infos_of(store, "a")
        assert (info.path, info.size_bytes) == ("a/b", 5)
        assert info.modified_ms > 1_600_000_000_000

    asyncio.run(scenario())


def test_an_empty_location_lists_nothing(store: Store) -> None:
    async def scenario() -> None:
        assert await paths_of(store, "") == []
        assert await store.get("a") is None

    asyncio.run(scenario())


def test_deletes_in_bulk_and_confirms_what_was_missing(store: Store) -> None:
    async def scenario() -> None:
        for name in ("d/1", "d/2", "d/3"):
            await store.put(name, b"")
        assert await store.delete(["d/1", "d/missing", "d/2", "d/1"]) == ()
        assert await paths_of(store, "d") == ["d/3"]
        assert await store.delete([]) == ()
        assert await store.delete(["nowhere/at/all"]) == ()

    asyncio.run(scenario())


def test_large_bodies_survive(store: Store) -> None:
    body = bytes(range(256)) * 40_000

    async def scenario() -> None:
        await store.put("large", memoryview(body))
        found = await store.get("large")
        assert isinstance(found, Found)
        assert found.body == body

    asyncio.run(scenario())


async def infos_of(store: Store, prefix: str, *, start_after: str | None = None) -> Sequence[ObjectInfo]:
    return [info async for page in store.list(prefix, start_after=start_after) for info in page]


async def paths_of(store: Store, prefix: str, *, start_after: str | None = None) -> Sequence[str]:
    return [info.path for info in await infos_of(store, prefix, start_after=start_after)]

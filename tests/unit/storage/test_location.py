"""Locations and `store.*` options as users write them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from lakecommit.errors import AccessDenied, InvalidInput
from lakecommit.storage.base import Found
from lakecommit.storage.location import absolute, is_apart, open_store
from lakecommit.storage.policy import RetryPolicy
from tests.unit.storage.faulty_s3 import InstantClock, faulty_s3

AZURE = {"account_name": "acct", "account_key": "c2VjcmV0a2V5"}


@pytest.fixture(autouse=True)
def _no_cloud_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("AWS_", "GOOGLE_", "AZURE_")):
            monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("location", "options", "shown"),
    [
        ("s3://bucket", {}, "s3://bucket"),
        ("s3://bucket/", {}, "s3://bucket"),
        ("S3A://bucket/a/b/", {}, "s3a://bucket/a/b"),
        (" s3://bucket/a%20b ", {}, "s3://bucket/a%20b"),
        ("gs://bucket/t", {"skip_signature": "true"}, "gs://bucket/t"),
        ("az://container/t", AZURE, "az://container/t"),
        ("abfss://c@acct.dfs.core.windows.net/t", AZURE, "abfss://c@acct.dfs.core.windows.net/t"),
        ("memory://m/t", {}, "memory://m/t"),
        ("/data/t/", {}, "/data/t"),
        ("file:///data/t", {}, "/data/t"),
        ("file:/data/t", {}, "/data/t"),
        ("/data/a:b/x=1", {}, "/data/a:b/x=1"),
    ],
)
def test_locations(location: str, options: dict[str, str], shown: str) -> None:
    assert open_store(location, options).location == shown


def test_the_tilde_is_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/users/her")
    assert open_store("~/lake/t", {}).location == absolute("~/lake/t") == "/users/her/lake/t"
    assert open_store("~", {}).location == "/users/her"
    assert open_store("./~/t", {}).location == str(tmp_path / "~" / "t")
    assert open_store("a~b/t", {}).location == str(tmp_path / "a~b" / "t")
    assert open_store("file:/~/t", {}).location == "/~/t"


def test_a_colon_that_stands_for_no_scheme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("./s3:/t", "any:t", "day=1:2/t", "1:/t"):
        assert open_store(name, {}).location == os.path.abspath(name)


@pytest.mark.parametrize(
    ("location", "others", "apart"),
    [
        ("/data/t", [], True),
        ("/data/t", None, False),
        ("/data/t", ["file:/data/t2", "file:/data", "s3a://data/t", "/data/t/../u", "hdfs:/data/t"], True),
        ("/data/t", ["file:/data/u", "file:/data/t"], False),
        ("/data/t/", ["file:///data/t/region=EU/x.parquet"], False),
        ("s3://bucket/t", ["s3a://bucket/t"], False),
        ("s3://bucket/t", ["s3a://other/t", "gs://bucket/t", "s3://bucket/tt"], True),
        ("s3://bucket", ["s3://bucket/t"], False),
    ],
)
def test_whether_a_table_is_among_what_was_read(location: str, others: list[str] | None, apart: bool) -> None:
    assert is_apart(location, others) is apart


def test_a_relative_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_store("some/table", {}).location == str(tmp_path / "some" / "table")


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("", "the location is empty"),
        ("   ", "the location is empty"),
        ("hdfs://name/t", "scheme hdfs: is not known"),
        ("s3://", "names no bucket"),
        ("s3:///t", "names no bucket"),
        ("gs:///t", "names no bucket"),
        ("memory://", "names no bucket"),
        ("s3://bucket/a//b", "empty, '.' or '..' part"),
        ("s3://bucket/a/../b", "empty, '.' or '..' part"),
        ("file://host/t", "absolute path without a host"),
        ("s3://KEYID:SECRETKEY@bucket/t", "is not a valid bucket name"),
        ("az://container/t?sig=SECRETKEY", "has a query"),
        ("s3:/bucket/t", "write s3:// with two slashes, s3://bucket/t"),
        ("S3A:/bucket/t", "write s3a:// with two slashes, s3a://bucket/t"),
        ("s3:bucket/t", "write s3:// with two slashes, s3://bucket/t"),
        ("gs:/KEYID:SECRETKEY@bucket/t", "write gs:// with two slashes"),
        ("memory:/m/t", "write memory:// with two slashes, memory://m/t"),
        ("dbfs:/mnt/t", "the scheme dbfs: is not known; write the location that is mounted there"),
        ("dbfs:///mnt/t", "write the location that is mounted there"),
        ("hdfs:/t", "the scheme hdfs: is not known; only object stores"),
        ("hdfs:t", "the scheme hdfs: is not known"),
        ("wasbs:/c@a/t", "the scheme wasbs: is not known; write abfss://"),
        ("any:/t", "the scheme any: is not known; for a directory of that name write ./any:/"),
        ("~nobody-has-this-name/t", "~nobody-has-this-name is no home directory"),
    ],
)
def test_locations_that_cannot_be_meant(location: str, words: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        open_store(location, {})
    assert words in str(raised.value)
    assert "SECRETKEY" not in str(raised.value)


@pytest.mark.parametrize(
    ("location", "options", "words"),
    [
        ("s3://b/t", {"acces_key_id": "x"}, "did you mean store.access_key_id?"),
        ("s3://b/t", {"regoin": "x"}, "did you mean store.region?"),
        ("s3://b/t", {"account_name": "x"}, "store.account_name is unknown for a s3 location"),
        ("s3://b/t", {"timeuot": "1s"}, "did you mean store.timeout?"),
        ("s3://b/t", {"bucket": "other"}, "store.bucket is unknown"),
        ("/data/t", {"region": "x"}, "takes no store options"),
        ("s3://b/t", {"allow_http": "SECRETKEY"}, "store.allow_http is not true or false"),
        ("s3://b/t", {"timeout": "SECRETKEY"}, "store.timeout is not a duration"),
        ("s3://b/t", {"region": " "}, "store.region is not text"),
        ("s3://b/t", {"checksum_algorithm": "SECRETKEY"}, "are not accepted"),
        ("az://c/t", {}, "store.account_name is required"),
    ],
)
def test_options_that_cannot_be_meant(location: str, options: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        open_store(location, options)
    assert words in str(raised.value)
    assert "SECRETKEY" not in str(raised.value)


def test_option_names_in_any_case() -> None:
    with faulty_s3() as server:
        server.objects["t/a"] = b"x"
        options = {
            "ENDPOINT": f"http://127.0.0.1:{server.server_port}",
            "Access_Key_Id": "k",
            "secret_access_key": "s",
            "REGION": "us-east-1",
        }
        assert isinstance(asyncio.run(open_store("s3://bucket/t", options).get("a")), Found)


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT"])
def test_the_environment_is_enough(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with faulty_s3() as server:
        server.objects["t/a"] = b"x"
        monkeypatch.setenv(variable, f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
        assert isinstance(asyncio.run(open_store("s3://bucket/t", {}).get("a")), Found)


def test_no_credentials_anywhere_says_so() -> None:
    """What happens on a machine without a metadata service; here the address answers nothing."""
    clock = InstantClock()
    with faulty_s3() as server:
        endpoint = f"http://127.0.0.1:{server.server_port}"
    options = {"endpoint": endpoint, "metadata_endpoint": f"{endpoint}/169.254.169.254", "region": "us-east-1"}
    store = open_store("s3://bucket/t", options, clock=clock, random=lambda: 0.5, policy=RetryPolicy(attempts=2))
    with pytest.raises(AccessDenied, match="no credentials are set"):
        asyncio.run(store.get("a"))
    with pytest.raises(AccessDenied, match="no credentials are set"):
        asyncio.run(store.delete(["a"]))


def test_memory_is_shared_by_name() -> None:
    async def scenario() -> None:
        await open_store("memory://shared-by-name/a", {}).put("x", b"1")
        found = await open_store("memory://shared-by-name", {}).get("a/x")
        assert isinstance(found, Found)
        assert await open_store("memory://shared-by-name/a2", {}).get("x") is None
        assert await open_store("memory://another-name/a", {}).get("x") is None

    asyncio.run(scenario())


def test_neighbours_are_out_of_sight() -> None:
    async def scenario() -> list[str]:
        await open_store("memory://neighbours/table2", {}).put("x", b"")
        await open_store("memory://neighbours/table", {}).put("y", b"")
        pages = open_store("memory://neighbours/table", {}).list("")
        return [info.path async for page in pages for info in page]

    assert asyncio.run(scenario()) == ["y"]


def test_opening_creates_nothing(tmp_path: Path) -> None:
    open_store(str(tmp_path / "new"), {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("location", ["/tmp/a\nb/table", "s3://bucket/a\nb", "file:///tmp/a\x00b"])
def test_a_control_character_is_refused_and_shown_escaped(location: str) -> None:
    with pytest.raises(InvalidInput, match="has a control character") as refused:
        open_store(location, {})
    assert repr(location) in str(refused.value)
    assert "\n" not in str(refused.value)

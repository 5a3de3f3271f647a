"""The same suite on every kind of store that a test can have."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakecommit.storage.base import Store
from lakecommit.storage.location import open_store
from lakecommit.testing.s3 import LocalS3


@pytest.fixture(scope="session")
def s3() -> Iterator[LocalS3]:
    with LocalS3() as server:
        server.create_bucket("contract")
        yield server


@pytest.fixture(params=["memory", "local", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store whose location lies inside a bucket or directory that others use, too."""
    name = uuid.uuid4().hex
    if request.param == "memory":
        return open_store(f"memory://{name}/some/table", {})
    if request.param == "local":
        return open_store(str(tmp_path / "some" / "table"), {})
    server: LocalS3 = request.getfixturevalue("s3")
    return open_store(f"s3://contract/{name}/table", server.store_options())

"""What tests of every kind share: one Spark session and one local S3 per process, each started when first asked for."""

from __future__ import annotations

import pytest

from lakecommit.testing.s3 import LocalS3
from lakecommit.testing.sessions import delta_session


@pytest.fixture(scope="session")
def spark():
    """A session with Delta and with lakecommit registered."""
    import lakecommit  # noqa: PLC0415 (tests without Spark must not need it)

    session = delta_session("lakecommit-tests")
    lakecommit.register(session)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def local_s3():
    with LocalS3() as s3:
        s3.create_bucket("lake")
        yield s3

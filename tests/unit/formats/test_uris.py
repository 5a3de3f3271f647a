"""Names of files as logs have them."""

from __future__ import annotations

import pytest

from lakecommit.formats.uris import is_elsewhere, path_to_uri


@pytest.mark.parametrize("name", ["/abs/x", "file:/x", "s3a://bucket/x", "abfss://c@a.dfs.core.windows.net/x"])
def test_a_whole_name_is_elsewhere(name: str) -> None:
    assert is_elsewhere(name)


@pytest.mark.parametrize("name", ["x", "a/x", "p=10%3A30/x", "p=10:30/x", "a/b:/x", path_to_uri("s3:/x")])
def test_any_other_is_a_key_below_the_table(name: str) -> None:
    assert not is_elsewhere(name)

import json

import pytest
from click.testing import CliRunner

from lakecommit.cli.main import cli
from tests.unit.cli.tables import TableInTheMaking


@pytest.fixture
def table(tmp_path):
    return TableInTheMaking(tmp_path / "table")


@pytest.fixture
def invoke():
    """Runs a verb; anything but a clean exit of the command line itself is an error of the test."""

    def run(*arguments, exit_code=0):
        result = CliRunner().invoke(cli, [str(argument) for argument in arguments], prog_name="lakecommit")
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert result.exit_code == exit_code, result.output
        return result

    return run


@pytest.fixture
def invoke_json(invoke):
    return lambda *arguments, **expected: json.loads(invoke(*arguments, "--json", **expected).stdout)

"""Credentials that are given as options: in no log, object, output or figure, whatever is looked at."""

from __future__ import annotations

import asyncio
import json
import logging
import uuid

import pytest
from click.testing import CliRunner

import lakecommit
from lakecommit.cli.main import cli
from lakecommit.demo.place import Place
from lakecommit.model import BATCH_PREFIX
from lakecommit.storage.base import Found

from .streams import Source

pytestmark = pytest.mark.spark

KEY_ID, SECRET, TOKEN = "AKIAOFNOBODY00000001", "a-secret-that-is-nowhere-else", "a-token-that-is-nowhere-else"


@pytest.fixture
def place(local_s3):
    credentials = {"access_key_id": KEY_ID, "secret_access_key": SECRET, "session_token": TOKEN}
    return Place(f"s3://lake/{uuid.uuid4().hex}", {**local_s3.store_options(), **credentials}, local_s3)


def objects(place) -> dict[str, bytes]:
    async def read():
        store = place.store()
        paths = [info.path async for page in store.list("") for info in page]
        return {path: found.body for path in paths if isinstance(found := await store.get(path), Found)}

    return asyncio.run(read())


def command(place, verb, *arguments) -> str:
    """Everything that a verb shows."""
    stores = [part for key, value in place.store_options.items() for part in ("--store", f"{key}={value}")]
    result = CliRunner().invoke(cli, [verb, *arguments, *stores], prog_name="lakecommit")
    assert result.exit_code == 0, result.output
    return result.output


def refused(frame, location, options) -> str:
    """What is said of a write that cannot reach its store."""
    with pytest.raises(Exception) as failure:
        frame.write.format("lakecommit").mode("append").options(**options).save(location)
    return str(failure.value)


def test_credentials_are_in_nothing_that_anybody_sees(spark, tmp_path, place, caplog, capfd, spark_log):
    source = Source(tmp_path / "input")
    with caplog.at_level(logging.DEBUG, "lakecommit"):
        rows = spark.range(10).selectExpr("id", "'EU' as region")
        rows.write.format("lakecommit").mode("append").options(**place.spark_options).save(place.location)
        for epoch in range(2):
            source.add([epoch])
        writer = source.frame(spark).writeStream.format("lakecommit").options(**place.spark_options)
        query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
        query.start(place.location).awaitTermination()
        nowhere = refused(rows, "s3://nowhere/table", place.spark_options)
        misspelt = refused(rows, place.location, {**place.spark_options, "store.secret_acces_key": SECRET})
    stored = objects(place)
    kinds = ("_delta_log/", "/seals/", "/writers/", ".parquet")
    assert [kind for kind in kinds if not any(kind in path for path in stored)] == []
    shown = {
        "log": "\n".join(str(vars(record)) + record.getMessage() for record in caplog.records),
        "standard output and error": "".join(capfd.readouterr()),
        "log of Spark": spark_log(),
        "metrics": json.dumps(lakecommit.metrics(), default=str),
        "error of a missing bucket": nowhere,
        "error of a misspelt option": misspelt,
    }
    for verb, *arguments in (("status",), ("history",), ("recover",), ("clean",), ("clean", "--apply")):
        for form in ([], ["--json"]):
            shown[f"{verb} {arguments} {form}"] = command(place, verb, place.location, *arguments, *form)
    for path in stored:
        # Those of a batch write are cleaned up once a minute.
        if path.endswith(".avro") and f"/{BATCH_PREFIX}" not in path:
            shown[f"inspect {path}"] = command(place, "inspect", f"{place.location}/{path}", "--json")
    assert place.location in shown["log"]
    assert "s3://nowhere" in nowhere
    assert "did you mean" in misspelt
    assert [name for name, text in shown.items() for secret in (SECRET, TOKEN) if secret in text] == []
    secrets = [secret.encode() for secret in (KEY_ID, SECRET, TOKEN)]
    assert [path for path, body in stored.items() for secret in secrets if secret in body] == []

"""Hadoop's settings of S3 as store options: what is taken over, what comes first, and what is refused by name."""

from __future__ import annotations

import pytest

from lakecommit.errors import InvalidInput
from lakecommit.options.parsing import parse_options
from lakecommit.options.session import session_options

ANONYMOUS = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
SIMPLE = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
ROLES = "software.amazon.awssdk.auth.credentials.WebIdentityTokenFileCredentialsProvider"


def store(settings: dict[str, str], path: str = "s3://lake/t", **options: str) -> dict[str, str]:
    """What the store is opened with where the session has these settings, without `fs.s3a.`."""
    session = session_options({f"fs.s3a.{key.replace('_', '.')}": value for key, value in settings.items()})
    given = {name.replace("__", "."): value for name, value in options.items()}
    return dict(parse_options({"path": path, **given}, streaming=False, defaults=session).store_options)


KEYS = {"access_key": "AK", "secret_key": "SK"}
TAKEN = {"access_key_id": "AK", "secret_access_key": "SK"}


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        (KEYS, TAKEN),
        ({**KEYS, "session_token": "T"}, {**TAKEN, "session_token": "T"}),
        ({**KEYS, "session_token": "T", "aws_credentials_provider": SIMPLE}, TAKEN),
        ({**KEYS, "aws_credentials_provider": ROLES}, {}),
        ({**KEYS, "aws_credentials_provider": ANONYMOUS}, {"skip_signature": "true"}),
        # The first that has some, as Hadoop goes through them.
        ({**KEYS, "aws_credentials_provider": f"{SIMPLE},\n {ANONYMOUS}"}, TAKEN),
        ({"aws_credentials_provider": f"{SIMPLE},{ANONYMOUS}"}, {"skip_signature": "true"}),
        ({**KEYS, "aws_credentials_provider": f"{ANONYMOUS},{SIMPLE}"}, {"skip_signature": "true"}),
        ({"access_key": "AK"}, {}),
        ({"access_key": "  ", "secret_key": ""}, {}),
        ({"endpoint": "minio:9000"}, {"endpoint": "https://minio:9000"}),
        ({"endpoint": "minio:9000", "connection_ssl_enabled": "false"}, {"endpoint": "http://minio:9000"}),
        ({"endpoint": "http://minio:9000", "connection_ssl_enabled": "true"}, {"endpoint": "http://minio:9000"}),
        # A store finds them by itself, and reaches a bucket of another region.
        ({"endpoint": "s3.amazonaws.com"}, {}),
        ({"endpoint": "https://s3.eu-west-1.amazonaws.com"}, {"region": "eu-west-1"}),
        ({"endpoint": "s3-external-1.amazonaws.com"}, {"endpoint": "https://s3-external-1.amazonaws.com"}),
        ({"endpoint": "s3.eu-west-1.amazonaws.com", "endpoint_region": "eu-west-2"}, {"region": "eu-west-2"}),
        ({"endpoint_region": "eu-west-1", "path_style_access": "true"}, {"region": "eu-west-1"}),
        # As Hadoop has them where nobody sets anything.
        ({"connection_ssl_enabled": "true", "path_style_access": "false", "requester_pays_enabled": "false"}, {}),
        ({"requester_pays_enabled": "true"}, {"request_payer": "true"}),
        # One bucket's own come first.
        ({**KEYS, "bucket_lake_access_key": "B", "bucket_other_secret_key": "C"}, {**TAKEN, "access_key_id": "B"}),
        # None of our business.
        ({"connection_maximum": "7", "bucket_lake_connection_maximum": "7"}, {}),
    ],
)
def test_what_is_plain_is_taken_over(settings: dict[str, str], found: dict[str, str]) -> None:
    options = store(settings)
    assert options.pop("virtual_hosted_style_request", "false") == "false"
    assert options == found
    assert store(settings, "/tmp/t") == store(settings, "gs://lake/t") == {}


def test_store_options_come_first_and_credentials_are_never_mixed() -> None:
    session = {**KEYS, "session_token": "T", "endpoint": "minio:9000", "endpoint_region": "here"}
    own = {"store__access_key_id": "mine", "store__secret_access_key": "too", "store__endpoint": "https://e"}
    assert store(session, **own) == {
        "access_key_id": "mine",
        "secret_access_key": "too",
        "endpoint": "https://e",
        "region": "here",
    }
    of_session = {
        "fs.s3a.endpoint": "minio:9000",
        "fs.s3a.endpoint.region": "here",
        "spark.lakecommit.store.region": "r",
    }
    options = parse_options({"path": "s3://lake/t"}, streaming=True, defaults=session_options(of_session))
    assert options.store_options == {"endpoint": "https://minio:9000", "region": "r"}


def test_options_of_a_write_come_before_the_session() -> None:
    given = {"fs__s3a__access__key": "W", "fs__s3a__secret__key": "X"}
    assert store({**KEYS, "endpoint_region": "here"}, **given) == {
        "access_key_id": "W",
        "secret_access_key": "X",
        "region": "here",
    }


@pytest.mark.parametrize(
    ("settings", "option"),
    [
        ({"assumed_role_arn": "arn:secret"}, "role_arn"),
        ({"encryption_algorithm": "SSE-KMS"}, "server_side_encryption"),
        ({"bucket_lake_proxy_host": "proxy"}, "proxy_url"),
    ],
)
def test_what_is_not_plain_is_named_with_what_takes_its_place(settings: dict[str, str], option: str) -> None:
    with pytest.raises(InvalidInput, match=f"is not taken over from Hadoop; set store.{option}") as refused:
        store(settings)
    assert "secret" not in str(refused.value)
    assert store(settings, **{f"store__{option}": "x"}) == {option: "x"}
    assert store(settings, "/tmp/t") == {}


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("fs.s3a.connection.maximum", r"fs\.s3a\.connection\.maximum is a setting of Hadoop's.*store\.access_key_id"),
        ("fs.azure.account.key.a.dfs.core.windows.net", r"store\.account_key"),
        ("fs.gs.project.id", r"store\.service_account"),
        ("fs.defaultfs", r"leave it out, or set store\.\* options"),
        ("parquet.compression", "use the option compression instead"),
        ("parquet.block.size", "leave it out: targetFileSize, maxRecordsPerFile"),
    ],
)
def test_other_options_of_hadoop_and_of_parquet_are_refused(option: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as refused:
        parse_options({"path": "s3://lake/t", option: "a-secret"}, streaming=False)
    assert "a-secret" not in str(refused.value)

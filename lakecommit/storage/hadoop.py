"""Hadoop's settings of S3 (`fs.s3a.*`), which Spark's users know, as `store.*` options. Pure.

Only what is plain is taken over: keys, endpoint and the like. What a class or a file of Hadoop's would have to be asked
for is not; where that changes what is written, or whether it can be, the option is named that takes its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lakecommit.errors import InvalidInput

PREFIX = "fs.s3a."
_BUCKET = "bucket."

_KEYS = {"access.key": "access_key_id", "secret.key": "secret_access_key", "session.token": "session_token"}
_CREDENTIALS = frozenset(
    {*_KEYS.values(), "skip_signature", "role_arn", "web_identity_token_file"}
    | {"container_credentials_relative_uri", "container_credentials_full_uri"}
)
_PROVIDER = "aws.credentials.provider"
_TAKEN = frozenset(
    {*_KEYS, _PROVIDER, "endpoint", "endpoint.region", "path.style.access", "connection.ssl.enabled"}
    | {"requester.pays.enabled"}
)
# Not plain, with the option that takes its place.
_REPLACED = {
    "assumed.role.arn": "role_arn",
    "encryption.algorithm": "server_side_encryption",
    "server-side-encryption-algorithm": "server_side_encryption",
    "encryption.key": "sse_kms_key_id",
    "server-side-encryption.key": "sse_kms_key_id",
    "proxy.host": "proxy_url",
}
# A region's own endpoint, and the one of all regions: a store finds them by itself.
_AWS = re.compile(r"(?:https?://)?s3(?:[.-]([a-z]{2,}(?:-[a-z]+)+-\d+))?\.amazonaws\.com/?", re.IGNORECASE)


def counts(name: str) -> bool:
    """Whether a setting is looked at, for one bucket or for all."""
    key = re.sub(rf"^{re.escape(_BUCKET)}.+?\.(?={_ANY})", "", name.removeprefix(PREFIX))
    return name.startswith(PREFIX) and (key in _TAKEN or key in _REPLACED)


_ANY = "(?:" + "|".join(re.escape(key) for key in sorted((*_TAKEN, *_REPLACED), key=len, reverse=True)) + ")$"


def s3_options(settings: Mapping[str, str], bucket: str, chosen: Mapping[str, str]) -> dict[str, str]:
    """What `settings`, which `counts`, say of a bucket, as store options; those in `chosen` come first.

    Raises `InvalidInput` for one that is not plain, unless the option is chosen that takes its place.
    """
    own = f"{_BUCKET}{bucket}."
    given = {name.removeprefix(PREFIX): value.strip() for name, value in settings.items() if value.strip()}
    given |= {name.removeprefix(own): value for name, value in given.items() if name.startswith(own)}
    for key, option in _REPLACED.items():
        if key in given and option not in chosen:
            raise InvalidInput(f"{PREFIX}{key} is set, which is not taken over from Hadoop; set store.{option}, too")
    found = {} if _CREDENTIALS & chosen.keys() else _credentials(given)
    found |= _place(given)
    if given.get("requester.pays.enabled", "").lower() == "true":
        found["request_payer"] = "true"
    return {key: value for key, value in found.items() if key not in chosen}


def refusal(name: str) -> InvalidInput:
    """For a setting of Hadoop's that is given as an option of a write and does not count."""
    hints = {
        "fs.azure.": "store.account_name, store.account_key, store.sas_key and the other store.* options",
        "fs.gs.": "store.service_account and the other store.* options",
        PREFIX: "store.access_key_id, store.endpoint and the other store.* options",
    }
    instead = next((hint for prefix, hint in hints.items() if name.startswith(prefix)), "store.* options")
    return InvalidInput(
        f"option {name} is a setting of Hadoop's, and the object store is reached without Hadoop; leave it out, or "
        f"set {instead} instead"
    )


def _credentials(given: Mapping[str, str]) -> dict[str, str]:
    """Those of the first provider that has some, as Hadoop takes them. Nothing where others than those that are set
    would be used: a store finds them by itself, or has to be told."""
    keys = {option: given[key] for key, option in _KEYS.items() if key in given}
    for provider in re.split(r"[,\s]+", given.get(_PROVIDER, "Temporary Simple")):
        if "AnonymousAWSCredentialsProvider" in provider:
            return {"skip_signature": "true"}
        if {"access_key_id", "secret_access_key"} <= keys.keys():
            if "Temporary" in provider and "session_token" in keys:
                return keys
            if "Simple" in provider:
                return {option: value for option, value in keys.items() if option != "session_token"}
    return {}


def _place(given: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    endpoint = given.get("endpoint", "")
    if (aws := _AWS.fullmatch(endpoint)) is not None:
        if aws[1] is not None:
            found["region"] = aws[1].lower()
    elif endpoint:
        scheme = "http" if given.get("connection.ssl.enabled", "").lower() == "false" else "https"
        found["endpoint"] = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
    if region := given.get("endpoint.region"):
        found["region"] = region
    if given.get("path.style.access", "").lower() == "true":
        found["virtual_hosted_style_request"] = "false"
    return found

"""The `store.*` options: which keys each kind of store knows, and what their values look like.

The names are obstore's. Bucket and container come from the location and are no options.
"""

from __future__ import annotations

import difflib
import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lakecommit.errors import InvalidInput


class Value(enum.Enum):
    TEXT = "text"
    FLAG = "true or false"
    DURATION = "a duration such as 30s or 2min"


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Options sorted into what describes the store and what describes the HTTP client. Never shown: it has secrets."""

    config: dict[str, str] = field(repr=False)
    client: dict[str, str | bool] = field(repr=False)


def settings_of(kind: str, options: Mapping[str, str]) -> StoreSettings:
    """Checks `options` (without their `store.` prefix, in any case) for a store of the given kind.

    Raises `InvalidInput` for an unknown key, with the nearest known one, and for a value of the wrong shape.
    """
    known = STORE_KEYS[kind]
    settings = StoreSettings({}, {})
    for name, value in options.items():
        key = name.lower()
        shape = known.get(key) or (CLIENT_KEYS.get(key) if kind in REMOTE else None)
        if shape is None:
            raise _unknown(name, kind)
        text = value.strip()
        if not _SHAPES[shape].fullmatch(text):
            raise InvalidInput(f"store.{key} is not {shape.value}; correct it")
        if key in known:
            settings.config[key] = text
        else:
            settings.client[key] = text.lower() == "true" if shape is Value.FLAG else text
    return settings


def _unknown(name: str, kind: str) -> InvalidInput:
    known = sorted({*STORE_KEYS[kind], *(CLIENT_KEYS if kind in REMOTE else ())})
    if not known:
        return InvalidInput(f"store.{name} is unknown: a {kind} location takes no store options; leave it out")
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.0)[0]
    return InvalidInput(f"store.{name} is unknown for a {kind} location; did you mean store.{near}?")


_SHAPES = {
    Value.TEXT: re.compile(r".+", re.DOTALL),
    Value.FLAG: re.compile(r"true|false", re.IGNORECASE),
    Value.DURATION: re.compile(r"(\d+\s*(ms|msec|s|sec|seconds?|m|min|minutes?|h|hr|hours?)\s*)+"),
}

REMOTE = frozenset({"s3", "gs", "az"})

CLIENT_KEYS: Mapping[str, Value] = {
    "allow_http": Value.FLAG,
    "allow_invalid_certificates": Value.FLAG,
    "connect_timeout": Value.DURATION,
    "default_content_type": Value.TEXT,
    "http1_only": Value.FLAG,
    "http2_only": Value.FLAG,
    "pool_idle_timeout": Value.DURATION,
    "pool_max_idle_per_host": Value.TEXT,
    "proxy_ca_certificate": Value.TEXT,
    "proxy_excludes": Value.TEXT,
    "proxy_url": Value.TEXT,
    "randomize_addresses": Value.FLAG,
    "read_timeout": Value.DURATION,
    "root_certificate": Value.TEXT,
    "timeout": Value.DURATION,
    "user_agent": Value.TEXT,
}

_S3: Mapping[str, Value] = {
    "access_key_id": Value.TEXT,
    "checksum_algorithm": Value.TEXT,
    "container_authorization_token_file": Value.TEXT,
    "container_credentials_full_uri": Value.TEXT,
    "container_credentials_relative_uri": Value.TEXT,
    "default_region": Value.TEXT,
    "disable_bulk_delete": Value.FLAG,
    "disable_tagging": Value.FLAG,
    "endpoint": Value.TEXT,
    "imdsv1_fallback": Value.FLAG,
    "metadata_endpoint": Value.TEXT,
    "region": Value.TEXT,
    "request_payer": Value.TEXT,
    "role_arn": Value.TEXT,
    "role_session_name": Value.TEXT,
    "s3_express": Value.FLAG,
    "secret_access_key": Value.TEXT,
    "server_side_encryption": Value.TEXT,
    "session_token": Value.TEXT,
    "skip_signature": Value.FLAG,
    "sse_bucket_key_enabled": Value.FLAG,
    "sse_customer_key_base64": Value.TEXT,
    "sse_kms_key_id": Value.TEXT,
    "sts_endpoint": Value.TEXT,
    "unsigned_payload": Value.FLAG,
    "virtual_hosted_style_request": Value.FLAG,
    "web_identity_token_file": Value.TEXT,
}

_GS: Mapping[str, Value] = {
    "application_credentials": Value.TEXT,
    "base_url": Value.TEXT,
    "bearer_token": Value.TEXT,
    "service_account": Value.TEXT,
    "service_account_key": Value.TEXT,
    "skip_signature": Value.FLAG,
}

_AZ: Mapping[str, Value] = {
    "account_key": Value.TEXT,
    "account_name": Value.TEXT,
    "authority_host": Value.TEXT,
    "client_id": Value.TEXT,
    "client_secret": Value.TEXT,
    "credential_type": Value.TEXT,
    "disable_tagging": Value.FLAG,
    "encryption_key": Value.TEXT,
    "endpoint": Value.TEXT,
    "fabric_cluster_identifier": Value.TEXT,
    "fabric_session_token": Value.TEXT,
    "fabric_token_service_url": Value.TEXT,
    "fabric_workload_host": Value.TEXT,
    "federated_token_file": Value.TEXT,
    "msi_endpoint": Value.TEXT,
    "msi_resource_id": Value.TEXT,
    "object_id": Value.TEXT,
    "sas_key": Value.TEXT,
    "skip_signature": Value.FLAG,
    "tenant_id": Value.TEXT,
    "token": Value.TEXT,
    "use_azure_cli": Value.FLAG,
    "use_emulator": Value.FLAG,
    "use_fabric_endpoint": Value.FLAG,
}

STORE_KEYS: Mapping[str, Mapping[str, Value]] = {"s3": _S3, "gs": _GS, "az": _AZ, "local": {}, "memory": {}}

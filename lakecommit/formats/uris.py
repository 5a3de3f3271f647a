"""Names of data files as logs that Spark reads have them. Pure."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

# What `java.net.URI` escapes in a path: ASCII that is not legal there, and control and space characters beyond ASCII.
_TO_ESCAPE = re.compile(
    r"[^A-Za-z0-9/;:@&=+$,_\-!.~'()*\x80-\U0010ffff]"
    r"|[\x80-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
)

_WHOLE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.\-]*:/")


def path_to_uri(path: str) -> str:
    """An object's key as a log names it: escaped exactly as Hadoop's `Path` escapes it.

    Any URI would be decoded to the right key, but Delta's VACUUM compares the escaped forms, and deletes a live
    file whose name in the log is escaped in another way. So `%` is escaped (also in a partition value that is escaped
    already), and most other characters are not, non-ASCII letters among them. A `:` in the first segment would read as
    a scheme.
    """
    first, slash, rest = path.partition("/")
    return _TO_ESCAPE.sub(_escape, first).replace(":", "%3A") + slash + _TO_ESCAPE.sub(_escape, rest)


def _escape(match: re.Match[str]) -> str:
    return quote(match[0], safe="")


def path_of_uri(uri: str) -> str:
    """The key that a log names so."""
    return unquote(uri)


def is_elsewhere(uri: str) -> bool:
    """Whether a log names a file in whole, by a path from the root on or with a scheme: so does a table that was cloned
    without its files. Any other name is a key below the table."""
    return _WHOLE.match(uri) is not None

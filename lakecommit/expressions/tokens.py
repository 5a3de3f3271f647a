"""The tokens of an expression, as Spark's lexer cuts them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lakecommit.expressions.errors import Unsupported

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\n]+)
  | (?P<number>
        (?:\d+(?:\.\d*)?|\.\d+)[eE][+-]?\d+(?:[dDfF]|[bB][dD])?(?![A-Za-z0-9_])
      | (?:\d+\.\d*|\.\d+)(?:[dDfF]|[bB][dD])?(?![A-Za-z0-9_])
      | \d+(?:[lLsSyYdDfF]|[bB][dD])?(?![A-Za-z0-9_])
    )
  | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<quoted>`(?:[^`]|``)+`)
  | (?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
  | (?P<sign><=>|<>|!=|==|<=|>=|\|\||[-+*/%=<>(),.!])
    """,
    re.VERBOSE | re.DOTALL,
)
# Words that are no columns unless they are quoted.
RESERVED = frozenset(
    {"AND", "OR", "NOT", "IN", "IS", "LIKE", "RLIKE", "ILIKE", "REGEXP", "ESCAPE", "BETWEEN", "COLLATE", "DIV", "AS"}
    | {"CASE", "WHEN", "THEN", "ELSE", "END", "CAST", "TRY_CAST", "EXISTS", "SELECT", "FROM", "DISTINCT", "INTERVAL"}
    | {"NULL", "TRUE", "FALSE"}
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


@dataclass(frozen=True, slots=True)
class Token:
    """`kind` is number, word, quoted, string, sign or end; `text` what stands there, of a string what it means."""

    kind: str
    text: str
    position: int

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text.upper() in words

    def is_sign(self, *signs: str) -> bool:
        return self.kind == "sign" and self.text in signs


def tokens(text: str) -> list[Token]:
    """All tokens, and one of the kind "end". Raises `Unsupported` if none begins that is known here."""
    found: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or text.startswith(("--", "/*"), position):
            raise Unsupported(f"{text[position : position + 10]!r}", position)
        kind = match.lastgroup or ""
        if kind != "space":
            found.append(Token(kind, _meaning(kind, match[0]), position))
        position = match.end()
    return [*found, Token("end", "", len(text))]


def quoted(name: str) -> str:
    """A name as it is read again."""
    plain = _NAME.fullmatch(name) and name.upper() not in RESERVED
    return name if plain else f"`{name.replace('`', '``')}`"


def _meaning(kind: str, text: str) -> str:
    if kind == "quoted":
        return text[1:-1].replace("``", "`")
    if kind == "string":
        quote = text[0]
        # A quote within is either escaped or written twice.
        parts = re.split(r"(\\.)", text[1:-1], flags=re.DOTALL)
        doubled = "".join(part if part.startswith("\\") else part.replace(quote * 2, quote) for part in parts)
        return _ESCAPE.sub(_unescaped, doubled)
    return text


def _unescaped(match: re.Match[str]) -> str:
    unicode, wide, octal, other = match.groups()
    if unicode is not None or wide is not None:
        code = int(unicode or wide, 16)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise Unsupported(f"the escape {match[0]}")
        return chr(code)
    if octal is not None:
        return chr(int(octal, 8))
    return _ESCAPED.get(other, other)

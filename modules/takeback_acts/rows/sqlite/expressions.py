"""Expressions: what an index on expressions is made of, as its own SQL says."""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|[(),]|[^\s(),'"`\[\-/]+|\s+|.""",
    re.DOTALL,
)
_ORDER = re.compile(r"\s+(?:asc|desc)\s*$", re.IGNORECASE)


def parts(sql: str) -> tuple[str, ...]:
    """The parts of CREATE INDEX between its parentheses, without their order."""
    found: list[str] = []
    part: list[str] = []
    depth = 0
    for word in _TOKEN.findall(sql):
        if word.startswith(("--", "/*")):
            continue
        if word == "(":
            depth += 1
            if depth == 1:
                continue
        elif word == ")":
            depth -= 1
        if (depth == 0 and word == ")") or (depth == 1 and word == ","):
            found.append(_ORDER.sub("", "".join(part)).strip())
            part = []
            if depth == 0:
                return tuple(found)
        elif depth:
            part.append(word)
    return tuple(found)

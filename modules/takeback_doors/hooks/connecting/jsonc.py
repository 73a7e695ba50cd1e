"""JSONC: settings in JSON with comments, read with the place of each value, so that no other byte changes."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

_SPACE = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_ATOM = re.compile(r"true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_DEEPEST = 100


@dataclass(slots=True)
class Node:
    """A value and where it stands: from `start` up to `end`; an object's members or a list's items in it."""

    kind: Literal["object", "list", "other"]
    start: int
    end: int = 0
    value: Any = None
    members: dict[str, Member] = field(default_factory=dict)
    items: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class Member:
    """A key's place and its value."""

    start: int
    node: Node


class MalformedError(ValueError):
    """The text is not JSON, not even with comments; `args` are why and at which offset."""


def parse(text: str) -> Node:
    """The tree of a text; raises MalformedError."""
    reader = _Reader(text)
    node = reader.value(reader.space(1 if text.startswith("\ufeff") else 0), 0)
    if reader.space(node.end) != len(text):
        reader.fail("there is something after the end", node.end)
    return node


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text

    def fail(self, why: str, at: int) -> NoReturn:
        raise MalformedError(why, at)

    def space(self, at: int) -> int:
        """Past blanks and comments."""
        found = _SPACE.match(self._text, at)
        return found.end() if found else at

    def value(self, at: int, depth: int) -> Node:
        if depth > _DEEPEST:
            self.fail("it is nested too deeply", at)
        head = self._text[at : at + 1]
        if head == "{":
            return self._object(at, depth)
        if head == "[":
            return self._list(at, depth)
        found = (_STRING if head == '"' else _ATOM).match(self._text, at)
        if not found:
            self.fail("a value is missing", at)
        return Node("other", at, found.end(), self._load(found.group(), at))

    def _load(self, text: str, at: int) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            self.fail("a value is malformed", at)

    def _object(self, at: int, depth: int) -> Node:
        node = Node("object", at, value={})
        at = self.space(at + 1)
        while self._text[at : at + 1] != "}":
            key = _STRING.match(self._text, at)
            if not key:
                self.fail("a key is missing", at)
            colon = self.space(key.end())
            if self._text[colon : colon + 1] != ":":
                self.fail("a colon is missing", colon)
            inner = self.value(self.space(colon + 1), depth + 1)
            name = self._load(key.group(), at)
            node.members[name], node.value[name] = Member(at, inner), inner.value
            at = self._next(inner.end, "}")
        node.end = at + 1
        return node

    def _list(self, at: int, depth: int) -> Node:
        node = Node("list", at, value=[])
        at = self.space(at + 1)
        while self._text[at : at + 1] != "]":
            inner = self.value(at, depth + 1)
            node.items.append(inner)
            node.value.append(inner.value)
            at = self._next(inner.end, "]")
        node.end = at + 1
        return node

    def _next(self, at: int, end: str) -> int:
        """Past a comma, which may also stand before the end."""
        at = self.space(at)
        found = self._text[at : at + 1]
        if found == ",":
            return self.space(at + 1)
        if found != end:
            self.fail(f"a comma or {end} is missing", at)
        return at

"""Editing: adding to a settings text and taking out of it, with all else left byte for byte as it was."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from takeback_doors.hooks.connecting.jsonc import Node, parse

_INDENT = re.compile(r"\n([ \t]+)\S")
_USUAL = "  "
_COMMA = re.compile(r"\s*,")


class ShapeError(ValueError):
    """Something else than was expected stands at a key; its `args` name the key."""


def with_item(text: str, path: Sequence[str], item: Any) -> str:
    """The text with one more item in the list at a path of keys, which is made where it is missing.

    Raises MalformedError, ShapeError.
    """
    node = _object(parse(text or "{}"), "the file")
    text = text or "{}\n"
    for depth, key in enumerate(path):
        last = depth == len(path) - 1
        member = node.members.get(key)
        if member is None:
            made = _nested(path[depth + 1 :], item)
            return _insert(text, node, f"{json.dumps(key)}: ", made, depth)
        node = member.node
        if node.kind != ("list" if last else "object"):
            raise ShapeError(".".join(path[: depth + 1]))
    return _insert(text, node, "", item, len(path))


def without_items(text: str, path: Sequence[str], ours: Callable[[Any], bool]) -> str:
    """The text without the items of lists below a path that are ours, and without what is empty then.

    Raises MalformedError, ShapeError.
    """
    while True:
        root = _object(parse(text), "the file")
        chain = _chain(root, path)
        if chain is None:
            return text
        found = next(_matching(chain[-1], ours), None)
        if found is None:
            return text
        key, index = found
        text = _taken_out(text, chain, path, key, index)


def items_of(text: str, path: Sequence[str]) -> list[tuple[str, Any]]:
    """Every item of the lists below a path, with the key of its list; raises MalformedError, ShapeError."""
    chain = _chain(_object(parse(text or "{}"), "the file"), path)
    lists = chain[-1].value.items() if chain else ()
    return [(key, item) for key, items in lists if isinstance(items, list) for item in items]


def _chain(root: Node, path: Sequence[str]) -> list[Node] | None:
    """The objects on a path of keys; None where one is missing."""
    chain = [root]
    for key in path:
        member = chain[-1].members.get(key)
        if member is None:
            return None
        chain.append(_object(member.node, key))
    return chain


def _matching(node: Node, ours: Callable[[Any], bool]) -> Iterator[tuple[str, int]]:
    for key, member in node.members.items():
        for index, item in enumerate(member.node.items):
            if ours(item.value):
                yield key, index


def _taken_out(text: str, chain: list[Node], path: Sequence[str], key: str, index: int) -> str:
    """One item taken out, or the outermost thing that would be empty without it."""
    listed = chain[-1].members[key].node
    if len(listed.items) > 1:
        starts = [item.start for item in listed.items]
        return _cut(text, listed, starts, [item.end for item in listed.items], index)
    keys = [*path, key]
    depth = len(chain) - 1
    # Objects that held nothing but this go with it; the file itself stays.
    while depth > 0 and len(chain[depth].members) == 1:
        depth -= 1
    members = list(chain[depth].members.items())
    at = next(number for number, (name, _) in enumerate(members) if name == keys[depth])
    starts = [member.start for _, member in members]
    return _cut(text, chain[depth], starts, [member.node.end for _, member in members], at)


def _cut(text: str, around: Node, starts: list[int], ends: list[int], at: int) -> str:
    """A part of an object or a list taken out, with the comma that was there for it."""
    if at > 0:
        # From behind the part before: its comma, then blanks and comments, which are whose they follow.
        comma = _COMMA.match(text, ends[at - 1])
        start = comma.start() if comma else ends[at - 1]
        return text[:start] + text[ends[at] :]
    if len(starts) > 1:
        return text[: starts[0]] + text[starts[1] :]
    rest = text[ends[0] : around.end - 1]
    comma = _COMMA.match(rest)
    rest = rest[comma.end() :] if comma else rest
    head = text[: starts[0]].rstrip() if text[around.start + 1 : starts[0]].isspace() else text[: starts[0]]
    return head + ("" if rest.isspace() or not rest else rest) + text[around.end - 1 :]


def _insert(text: str, node: Node, label: str, value: Any, depth: int) -> str:
    """A member or an item put at the end of an object or a list."""
    indent = found.group(1) if (found := _INDENT.search(text)) else _USUAL
    inner, outer = indent * (depth + 1), indent * depth
    words = json.dumps(value, indent=indent, ensure_ascii=False).replace("\n", f"\n{inner}")
    parts = [member.node.end for member in node.members.values()] or [item.end for item in node.items]
    if not parts:
        # What an empty one holds are comments at most.
        held = text[node.start + 1 : node.end - 1].rstrip()
        return f"{text[: node.start + 1]}{held}\n{inner}{label}{words}\n{outer}{text[node.end - 1 :]}"
    end = max(parts)
    # A comma behind the last part, which some allow, goes behind the new one.
    return f"{text[:end]},\n{inner}{label}{words}{text[end:]}"


def _nested(keys: Sequence[str], item: Any) -> Any:
    made: Any = [item]
    for key in reversed(keys):
        made = {key: made}
    return made


def _object(node: Node, name: str) -> Node:
    if node.kind != "object":
        raise ShapeError(name)
    return node

"""The shelf: a baseline on disk, whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from takeback import faults
from takeback.durable import sync, sync_folder
from takeback_acts.files.capture.node import Node
from takeback_acts.files.capture.row import Source
from takeback_acts.files.capture.tree import Tree

_MAGIC = b"takeback baseline 2 " + sys.byteorder.encode()[:6].ljust(6) + b"\n"
_CHECK = 16
# Above, left, settled and objects, repository; own mark; owner and group; name; the seven columns.
_HEAD = struct.Struct("=qBBq5qIII7Q")


class ShelfError(ValueError):
    """What lies on the shelf is no baseline that can be trusted."""


def save(path: Path, tree: Tree, meta: Mapping[str, Any]) -> None:
    """Puts a baseline on the shelf, durable when it returns; raises OSError and leaves the old one then."""
    about = json.dumps(meta).encode()
    parts = [len(about).to_bytes(8, sys.byteorder), about, *_nodes(tree)]
    check = hashlib.blake2b(digest_size=_CHECK)
    for part in parts:
        check.update(part)
    temp = path.with_name(path.name + ".new")
    try:
        with open(temp, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(_MAGIC)
            file.write(check.digest())
            file.writelines(parts)
            file.flush()
            sync(file.fileno())
        faults.point("files.shelf.written")
        os.replace(temp, path)
        sync_folder(path.parent)
    finally:
        with contextlib.suppress(FileNotFoundError):
            temp.unlink()


def load(path: Path) -> tuple[Tree, dict[str, Any]] | None:
    """The baseline on the shelf; None when there is none. Raises ShelfError."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    start = len(_MAGIC) + _CHECK
    if data[: len(_MAGIC)] != _MAGIC:
        raise ShelfError("of another version")
    body = memoryview(data)[start:]
    if hashlib.blake2b(body, digest_size=_CHECK).digest() != data[len(_MAGIC) : start]:
        raise ShelfError("a wrong checksum")
    try:
        length = int.from_bytes(body[:8], sys.byteorder)
        meta = json.loads(bytes(body[8 : 8 + length]))
        return Tree(_top(body[8 + length :])), meta
    except (ValueError, struct.error, IndexError) as error:
        raise ShelfError(str(error)) from None


def _nodes(tree: Tree) -> list[bytes]:
    parts = []
    places: dict[Node, int] = {}
    stack = [tree.top]
    while stack:
        node = stack.pop()
        above = places[node.parent] if node.parent is not None else -1
        places[node] = len(places)
        columns = node.columns()
        head = _HEAD.pack(
            above, node.left, node.settled | node.objects << 1, node.repository, *node.own,
            node.uid, node.gid, len(node.name), *map(len, columns),
        )  # fmt: skip
        parts += [head, node.name, *columns]
        stack.extend(node.children.values())
    return parts


def _top(data: memoryview) -> Node:
    nodes: list[Node] = []
    at = 0
    while at < len(data):
        above, left, flags, repository, *rest = _HEAD.unpack_from(data, at)
        own, (uid, gid, length), lengths = rest[:5], rest[5:8], rest[8:]
        at += _HEAD.size
        name = bytes(data[at : at + length])
        at += length
        node = Node(nodes[above] if above >= 0 else None, name)
        node.left, node.settled, node.objects = Source(left), bool(flags & 1), bool(flags & 2)
        node.repository = repository
        node.own = (own[0], own[1], own[2], own[3], own[4])
        node.uid, node.gid = uid, gid
        columns = []
        for size in lengths:
            columns.append(bytes(data[at : at + size]))
            at += size
        node.fill(tuple(columns))
        if node.parent is not None:
            node.parent.children[name] = node
        nodes.append(node)
    return nodes[0]

"""Caller labels: who makes a call, as told by a door or by the kernel and by nobody else."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from takeback.errors import RefusedError

CallerKind = Literal["module", "agent", "person"]

# ASCII only, lower case only: `Juno`, `jun\u043e` and `juno:x` can't be mistaken for `juno`.
NAME = r"[a-z0-9][a-z0-9_-]{0,62}"
_NAME = re.compile(NAME)


@dataclass(frozen=True, slots=True)
class Caller:
    """A parsed label: `module:<name>`, `<door>:agent:<name>` or `<door>:person[:<device>]`.

    `name` is the module's or agent's name, or the person's device (None where none is known).
    """

    label: str
    kind: CallerKind
    door: str | None
    name: str | None

    @staticmethod
    def parse(label: str) -> Caller:
        """Read a label; raises RefusedError `caller.malformed` for anything outside the grammar."""
        return _parse(label) if isinstance(label, str) else _malformed(label)

    @staticmethod
    def module(name: str) -> Caller:
        """The label of a module."""
        return Caller.parse(f"module:{name}")

    @staticmethod
    def agent(door: str, name: str) -> Caller:
        """The label of an agent that came in by a door."""
        return Caller.parse(f"{door}:agent:{name}")

    @staticmethod
    def person(door: str, device: str | None = None) -> Caller:
        """The label of the person at a door, on a device where the door knows one."""
        return Caller.parse(f"{door}:person" if device is None else f"{door}:person:{device}")

    def same_actor(self, other: Caller) -> bool:
        """Whether both labels are one actor: an agent over any door, the person on any surface."""
        if self.kind != other.kind:
            return False
        return self.kind == "person" or self.name == other.name


def is_name(text: str) -> bool:
    """Whether a text may stand for a module, an agent, a door or a device."""
    return _NAME.fullmatch(text) is not None


@lru_cache(maxsize=4096)
def _parse(label: str) -> Caller:
    parts = label.split(":")
    if not all(is_name(part) for part in parts):
        return _malformed(label)
    match parts:
        case ["module", name]:
            return Caller(label, "module", None, name)
        case [door, "agent", name] if door != "module":
            return Caller(label, "agent", door, name)
        case [door, "person"] if door != "module":
            return Caller(label, "person", door, None)
        case [door, "person", device] if door != "module":
            return Caller(label, "person", door, device)
    return _malformed(label)


def _malformed(label: object) -> Caller:
    raise RefusedError(
        "caller.malformed",
        f"{label!r:.100} is not a caller label",
        "Labels are module:NAME, DOOR:agent:NAME or DOOR:person[:DEVICE]; names are a-z, 0-9, _ and -.",
    )

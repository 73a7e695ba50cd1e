"""Processes: which one an agent is, and which ones descend from it."""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

_DEEPEST = 64
_GATE = os.fsencode(Path(__file__).parent / "gate" / "gate.py")
# <sys/proc_info.h> of macOS: the flavour, the size of `proc_bsdinfo`, and where in it these fields are.
_BSD_INFO = 3
_INFO_SIZE = 136
_PARENT_AT = 16
_NAME_AT = 48
_BEGAN = struct.Struct("=QQ")
_BEGAN_AT = 120
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "fish", "ksh"})


class Process(NamedTuple):
    """A process; `born` tells it from a later one of the same number."""

    pid: int
    born: str

    def lives(self) -> bool:
        """Whether it is still there."""
        found = _about(self.pid)
        return found is not None and found.born == self.born


class _About(NamedTuple):
    parent: int
    born: str
    name: str


def ancestors(pid: int) -> Iterator[Process]:
    """A process and those that it descends from, itself first, as far as the system tells."""
    for _ in range(_DEEPEST):
        found = _about(pid) if pid > 0 else None
        if found is None:
            return
        yield Process(pid, found.born)
        pid = found.parent


def agent_of(gate: int) -> Process | None:
    """The agent that runs a gate: the process above it, shells in between that only start the gate aside."""
    for process in ancestors(gate):
        if process.pid != gate and not _starts_gate(process.pid):
            return process if process.pid > 1 else None
    return None


def _starts_gate(pid: int) -> bool:
    try:
        return _GATE in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        found = _about(pid)
        return sys.platform == "darwin" and found is not None and found.name in _SHELLS


def _about(pid: int) -> _About | None:
    return _by_library(pid) if sys.platform == "darwin" else _by_files(pid)


def _by_files(pid: int) -> _About | None:
    try:
        head, _, tail = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")
    except OSError:
        return None
    fields = tail.split()
    if fields[0] in (b"Z", b"X"):
        return None
    return _About(int(fields[1]), fields[19].decode(), head.partition(b"(")[2].decode(errors="replace"))


def _by_library(pid: int) -> _About | None:
    info = ctypes.create_string_buffer(_INFO_SIZE)
    if _library().proc_pidinfo(pid, _BSD_INFO, ctypes.c_uint64(0), info, _INFO_SIZE) != _INFO_SIZE:
        return None
    (parent,) = struct.unpack_from("=I", info, _PARENT_AT)
    seconds, micros = _BEGAN.unpack_from(info, _BEGAN_AT)
    name = info.raw[_NAME_AT : _NAME_AT + 16].partition(b"\0")[0].decode(errors="replace")
    return _About(parent, f"{seconds}.{micros}", name)


@functools.cache
def _library() -> Any:
    return ctypes.CDLL("/usr/lib/libproc.dylib")

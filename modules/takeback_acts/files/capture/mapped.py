"""Files that are mapped into memory for writing: their bytes can change without any event or new time."""

from __future__ import annotations

import contextlib
import os
import sys


def inodes(device: int) -> set[int]:
    """The inodes on a device that some process can write through its memory, as far as we may see; Linux."""
    if sys.platform != "linux":
        return set()
    wanted = f"{os.major(device):02x}:{os.minor(device):02x}".encode()
    found: set[int] = set()
    with contextlib.suppress(FileNotFoundError):
        for process in filter(str.isdigit, os.listdir("/proc")):
            found.update(_of(process, wanted))
    return found


def _of(process: str, device: bytes) -> set[int]:
    try:
        with open(f"/proc/{process}/maps", "rb") as file:
            maps = file.read()
    except OSError:
        return set()
    if b"w-s " not in maps and b"wxs " not in maps:
        return set()
    lines = (line.split(None, 5) for line in maps.splitlines())
    return {int(part[4]) for part in lines if part[1][1:4:2] == b"ws" and part[3] == device}

"""Whose process is at the other end of a local socket."""

from __future__ import annotations

import socket
import struct
import sys


def peer_uid(connection: socket.socket) -> int:
    """The user id of the process that connected; raises OSError where the system won't say."""
    if sys.platform == "linux":
        found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", found)[1])
    # macOS and the BSDs: LOCAL_PEERCRED gives a struct xucred, whose second field is the effective user.
    shape = "=IIh2x16I"
    found = connection.getsockopt(0, 1, struct.calcsize(shape))
    return int(struct.unpack(shape, found)[1])

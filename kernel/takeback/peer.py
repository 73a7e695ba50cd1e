"""Who is at the other end of a local socket, as the operating system tells it."""

from __future__ import annotations

import socket
import struct
import sys

# <sys/un.h> and <sys/ucred.h> of macOS; Python names none of them.
_SOL_LOCAL = 0
_LOCAL_PEERCRED = 0x001
_LOCAL_PEERPID = 0x002
_XUCRED = struct.Struct("IIh16I")

_UCRED = struct.Struct("3i")


def peer_uid(link: socket.socket) -> int:
    """The user id of the process that connected; raises OSError where the system won't say."""
    if sys.platform == "darwin":
        _version, uid, *_groups = _XUCRED.unpack(link.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED.size))
        return int(uid)
    return _ucred(link)[1]


def peer_pid(link: socket.socket) -> int:
    """The process id at the other end: for a client, of the process that listens; raises OSError."""
    if sys.platform == "darwin":
        return int(link.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID))
    return _ucred(link)[0]


def _ucred(link: socket.socket) -> tuple[int, int, int]:
    pid, uid, gid = _UCRED.unpack(link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
    return pid, uid, gid

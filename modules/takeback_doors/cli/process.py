"""Waiting for another process to end, without asking again and again."""

from __future__ import annotations

import os
import select
import sys


def wait_for_exit(pid: int, seconds: float) -> bool:
    """Wait until a process has ended; False when it still runs after `seconds`."""
    try:
        return _wait_by_queue(pid, seconds) if sys.platform == "darwin" else _wait_by_handle(pid, seconds)
    except ProcessLookupError:
        return True


def _wait_by_handle(pid: int, seconds: float) -> bool:
    handle = os.pidfd_open(pid)
    try:
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)


def _wait_by_queue(pid: int, seconds: float) -> bool:
    if sys.platform != "darwin":
        raise NotImplementedError
    queue = select.kqueue()
    try:
        ending = select.kevent(pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD, select.KQ_NOTE_EXIT)
        return bool(queue.control([ending], 1, seconds))
    finally:
        queue.close()

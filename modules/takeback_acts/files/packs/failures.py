"""Failures of the blob store, as typed errors; a blob is named by the beginning of its digest."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from takeback.errors import ConflictError, RefusedError, TakebackError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}


def full(limit: int, used: int, size: int) -> TakebackError:
    """All blobs together would be more than the setting allows."""
    return TakebackError(
        "blobs.full",
        f"{size} bytes more can't be kept for an undo: {_left(limit, used)}. Nothing was changed",
        "Raise the limit, shorten how long acts are kept, or forget what no act needs with `takeback gc`.",
        data={"limit": limit, "used": used, "needed": size},
    )


def owner_full(owner: str, limit: int, used: int, size: int) -> TakebackError:
    """One owner's blobs would be more than the setting allows each."""
    return TakebackError(
        "blobs.agent_full",
        f"{size} bytes more can't be kept for {owner}: {_left(limit, used)}. Nothing was changed",
        "Raise the limit for each agent, or let its older acts run out and forget them with `takeback gc`.",
        data={"owner": owner, "limit": limit, "used": used, "needed": size},
    )


def _left(limit: int, used: int) -> str:
    return f"the limit of {limit} leaves room for {max(0, limit - used)}"


def locked(folder: Path) -> ConflictError:
    """Another process has the store open."""
    return ConflictError(
        "blobs.locked",
        f"The kept bytes in {folder} are in use by another process",
        "Stop the other takeback first.",
        retryable=True,
    )


def closed() -> TakebackError:
    """The store was closed."""
    return TakebackError("blobs.closed", "The store of kept bytes is closed.", "Start takeback again.")


@contextmanager
def reported(path: Path) -> Iterator[None]:
    """Turns an OSError inside into the typed error that names this path."""
    try:
        yield
    except OSError as error:
        raise failure(path, error) from error


def failure(path: Path, error: OSError) -> TakebackError:
    """The typed error for what the system said while the store worked on a path."""
    if error.errno in _FULL:
        return TakebackError(
            "blobs.no_space",
            f"There is no room on the disk to keep bytes in {path}",
            "Free some space and try again.",
            retryable=True,
        )
    if error.errno in _DENIED:
        return RefusedError(
            "blobs.denied",
            f"The system does not let takeback use {path}",
            "Check the owner and the permissions of takeback's data folder.",
        )
    return TakebackError(
        "blobs.io", f"The system failed on {path}: {error.strerror}", "Check the disk that it lies on."
    )

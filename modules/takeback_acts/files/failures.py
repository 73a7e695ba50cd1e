"""Failures: what the system says about a path, as typed errors."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from takeback.errors import ConflictError, NotFoundError, RefusedError, TakebackError, UsageError
from takeback_acts.files.paths import shown

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_DENIED = {errno.EACCES, errno.EPERM}
_AWAY = {errno.ESTALE, errno.ENXIO, errno.ENODEV, errno.ENOTCONN, errno.EHOSTDOWN, errno.ETIMEDOUT}
# What a look at many things passes over.
PASSED = (OSError, TakebackError)
_LEFT = "; it was left as they made it"
_TOLD = 2


@contextmanager
def reported(path: bytes) -> Iterator[None]:
    """Turns an OSError inside into the typed error that names this path."""
    try:
        yield
    except OSError as error:
        raise failure(path, error) from error


def failure(path: bytes, error: OSError) -> TakebackError:
    """The typed error for what the system said about a path; never more of their data than the path."""
    name = shown(path)
    if error.errno == errno.ENOENT:
        return absent(path)
    if error.errno == errno.ENOTDIR:
        return ConflictError(
            "files.not_folder", f"A part of {name} is no folder", "Look at its parent with list."
        )
    if error.errno == errno.ELOOP:
        return linked(path)
    return _resources(name, error) or _others(name, error)


def absent(path: bytes) -> NotFoundError:
    """There is nothing at this path."""
    return NotFoundError("files.absent", f"There is no {shown(path)}", "Look at its folder with list.")


def linked(path: bytes) -> RefusedError:
    """The path, or a part of it, is a symbolic link."""
    return RefusedError(
        "files.link",
        f"A part of {shown(path)} is a link, and links are not followed",
        "Name the file by the path it really has, if that is inside your folders.",
    )


def is_folder(path: bytes) -> ConflictError:
    """The path is a folder where a file was meant."""
    return ConflictError("files.is_folder", f"{shown(path)} is a folder", "Name a file in it.")


def denied(path: bytes) -> RefusedError:
    """The system does not let this path be changed."""
    return _denied(shown(path))


def special(path: bytes) -> RefusedError:
    """The path is a pipe, a socket or a device."""
    return RefusedError(
        "files.special",
        f"{shown(path)} is a pipe, a socket or a device, whose content can't be kept",
        "Leave it out; only files, folders and links can be acted on.",
    )


def unreachable(path: bytes) -> TakebackError:
    """What leads to the path is not there, so nobody can tell what lies at it."""
    return _unreachable(shown(path))


def changed(path: bytes) -> ConflictError:
    """Somebody else wrote between the look and the act."""
    return ConflictError(
        "files.changed",
        f"{shown(path)} was changed by somebody else at this very moment{_LEFT}",
        "Read it again and repeat the act.",
        retryable=True,
    )


def not_as_it_was(error: TakebackError, kept: Sequence[bytes], *, whole: bool) -> TakebackError:
    """The same failure, when not everything lies where it lay before; `kept` is where it lies instead."""
    message = error.message.removesuffix(_LEFT)
    if kept:
        message += f"; what somebody had saved there just before is kept as {names(kept)}"
    if not whole:
        message += "; not everything could be put back yet, so look at the log and at `takeback doctor`"
    return type(error)(error.code, message, error.hint, retryable=error.retryable, data=error.data)


def names(kept: Sequence[bytes]) -> str:
    """Some of these paths, for people; of a long one the end, which tells it from others."""
    more = f" and {len(kept) - _TOLD} more" if len(kept) > _TOLD else ""
    return ", ".join(shown(path)[-300:] for path in kept[:_TOLD]) + more


def _unreachable(name: str) -> TakebackError:
    return TakebackError(
        "files.unreachable",
        f"The disk or the folder that holds {name} can't be reached now",
        "Connect the disk, or put the folder back, and try again; until then nothing is concluded from it.",
        retryable=True,
    )


def _denied(name: str) -> RefusedError:
    return RefusedError("files.denied", f"The system does not allow this on {name}", "Check its permissions.")


def _resources(name: str, error: OSError) -> TakebackError | None:
    if error.errno in _FULL:
        return TakebackError(
            "files.full",
            f"There is no room to write {name}",
            "Free some space and try again.",
            retryable=True,
        )
    if error.errno == errno.EROFS:
        return RefusedError("files.readonly", f"{name} is on a read-only file system", "Nothing was changed.")
    if error.errno in _DENIED:
        return _denied(name)
    return None


def _others(name: str, error: OSError) -> TakebackError:
    if error.errno in _AWAY:
        return _unreachable(name)
    if error.errno == errno.ENAMETOOLONG:
        return UsageError("files.path", f"A name in {name:.200} is too long", "Use a shorter name.")
    if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
        return ConflictError(
            "files.exists", f"{name} is there already", "Choose another name, or overwrite it."
        )
    if error.errno == errno.EXDEV:
        return RefusedError(
            "files.cross_device",
            f"{name} lies on another file system",
            "Write it there anew, then delete the old one.",
        )
    return TakebackError("files.io", f"The system failed on {name}: {error.strerror}", "Look at the disk.")


def blob_missing(sha256: str) -> NotFoundError:
    """The store holds no such blob."""
    return NotFoundError(
        "files.blob_missing",
        f"The kept bytes {sha256[:12]}… are no longer in the store",
        "What they held can't be brought back from here.",
    )


def blob_corrupt(sha256: str) -> TakebackError:
    """A blob's bytes are not those of its name."""
    return TakebackError(
        "files.blob_corrupt",
        f"The kept bytes {sha256[:12]}… were damaged on disk",
        "Nothing was changed. Check the disk; a backup of takeback's data folder may hold them whole.",
    )

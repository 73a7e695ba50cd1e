"""Settings files: read, backed up and replaced whole, whoever else they belong to left alone."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from takeback.durable import sync
from takeback.errors import RefusedError

_LARGEST = 4 << 20
_BACKUP = ".before-takeback"


class Found(NamedTuple):
    """A file as it is: the real path behind links, its text, and its mode; no text where there is none."""

    path: Path
    text: str | None
    mode: int


def read(path: Path) -> Found:
    """A file of settings; raises RefusedError `connect.not_ours`, `connect.not_text`. Blocks."""
    real = Path(os.path.realpath(path))
    try:
        about = real.lstat()
    except FileNotFoundError:
        _require_writable(_existing(real.parent))
        return Found(real, None, 0o600)
    except OSError as error:
        raise _not_ours(real, error.strerror or "it can't be looked at") from None
    if not stat.S_ISREG(about.st_mode) or about.st_size > _LARGEST:
        raise _not_ours(real, "it is no file of settings")
    if about.st_uid != os.geteuid():
        raise _not_ours(real, f"it belongs to user {about.st_uid}")
    _require_writable(real)
    _require_writable(real.parent)
    return Found(real, _text(real), stat.S_IMODE(about.st_mode))


def replace(found: Found, text: str) -> Path | None:
    """Puts a text in a file's place, whole or not at all; answers where what was there is kept. Blocks."""
    try:
        found.path.parent.mkdir(parents=True, exist_ok=True)
        place = None if found.text is None else _backup(found)
        _write(found.path, text, found.mode)
    except OSError as error:
        raise _not_ours(found.path, error.strerror or "it can't be written") from None
    return place


def remove(path: Path) -> None:
    """Removes a file of ours, and the agent's folders around it where they are empty then. Blocks."""
    path.unlink(missing_ok=True)
    with suppress(OSError):
        for folder in path.parents:
            if not folder.name.startswith(".") and folder.name != "plugin":
                return
            folder.rmdir()


def backup_of(path: Path) -> Path:
    """Where a file is kept as it was before the first change."""
    return path.with_name(path.name + _BACKUP)


def kept(found: Found) -> str:
    """The text of a file before the first change; empty where that is not kept. Blocks."""
    try:
        return backup_of(found.path).read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return ""


def forget_backup(found: Found, text: str) -> None:
    """Removes the backup of a file that is again as it was. Blocks."""
    if kept(found) == text:
        backup_of(found.path).unlink()


def _backup(found: Found) -> Path:
    place = backup_of(found.path)
    number = 0
    data = (found.text or "").encode()
    while place.exists() and place.read_bytes() != data:
        number += 1
        place = found.path.with_name(f"{found.path.name}{_BACKUP}-{number}")
    if not place.exists():
        _write(place, found.text or "", found.mode)
    return place


def _write(path: Path, text: str, mode: int) -> None:
    beside = path.with_name(f".{path.name}.takeback-{os.getpid()}")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(handle, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fchmod(handle, mode)
            sync(handle)
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError:
        raise RefusedError(
            "connect.not_text", f"{path} is no text in UTF-8", "Nothing was changed. Repair the file first."
        ) from None
    except OSError as error:
        raise _not_ours(path, error.strerror or "it can't be read") from None


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path


def _require_writable(path: Path) -> None:
    if not os.access(path, os.W_OK) or (path.is_dir() and path.stat().st_uid != os.geteuid()):
        raise _not_ours(path, "it is not yours to write")


def _not_ours(path: Path, why: str) -> RefusedError:
    return RefusedError(
        "connect.not_ours", f"{path} can't be changed: {why}", "Nothing was changed. Look at who owns it."
    )

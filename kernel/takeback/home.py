"""Where takeback keeps what it knows: four private folders of one person."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from takeback.errors import TakebackError

# sun_path holds 104 bytes on macOS and 108 on Linux, its closing NUL included.
_LONGEST_SOCKET = 100
_READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}


class Home(NamedTuple):
    """The folders of one installation: settings, what must last, what this machine remembers, and sockets."""

    config: Path
    data: Path
    state: Path
    runtime: Path

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> Home:
        """Everything under one folder, which need not exist yet."""
        root = Path(os.path.realpath(Path(path).expanduser()))
        return cls(root / "config", root / "data", root / "state", _runtime(root, "runtime"))

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Home:
        """The home that `TAKEBACK_HOME` names, else the platform's own folders."""
        named = environ.get("TAKEBACK_HOME")
        if named:
            return cls.at(named)
        import platformdirs  # only on this way, so that a command with a named home starts sooner

        own = platformdirs.PlatformDirs("takeback", appauthor=False)
        # Not the platform's runtime folder: a client of one login and a daemon of another would differ in it.
        runtime = _runtime(own.user_state_path, "run")
        return cls(own.user_config_path, own.user_data_path, own.user_state_path, runtime)

    @property
    def database(self) -> Path:
        """The kernel's database file."""
        return self.data / "takeback.db"

    @property
    def settings(self) -> Path:
        """The person's settings file, which need not exist."""
        return self.config / "takeback.toml"

    @property
    def socket(self) -> Path:
        """The daemon's socket."""
        return self.runtime / "daemon.sock"

    @property
    def lock(self) -> Path:
        """The file whose lock says that a process owns this home. It is never deleted."""
        return self.state / "lock"

    def create(self, *, sockets: bool = True) -> None:
        """Makes the folders that are missing and shuts them to everybody else.

        Without `sockets` it leaves out the runtime folder, for who opens a home and listens on nothing.
        Raises `home.readonly`, `home.unsafe` (a folder is somebody else's, or the runtime folder is a link)
        and `home.unusable`.
        """
        for folder in (self.config, self.data, self.state):
            _make_private(folder, follow=True)
        if sockets:
            # A stranger can prepare a name in a shared folder: this one is never reached through a link.
            _make_private(self.runtime, follow=False)


def _runtime(parent: Path, name: str) -> Path:
    """The runtime folder below `parent`, or where its socket won't fit, a short one that both sides find."""
    # One home is one path, whatever links lead to it; the folder itself may be no link, so it isn't resolved.
    runtime = Path(os.path.realpath(parent)) / name
    if len(os.fsencode(runtime / "daemon.sock")) <= _LONGEST_SOCKET:
        return runtime
    import hashlib

    # Not under XDG_RUNTIME_DIR or TMPDIR either, for the same reason.
    mark = hashlib.sha256(os.fsencode(runtime)).hexdigest()[:16]
    return Path(f"/tmp/takeback-{os.geteuid()}-{mark}")  # noqa: S108 - its owner is checked by create()


def _make_private(folder: Path, *, follow: bool) -> None:
    try:
        _make(folder)
        _shut(folder, follow=follow)
    except OSError as error:
        raise unusable(folder, error) from error


def _make(folder: Path) -> None:
    """Like `makedirs`, but the parents it has to make are private as well."""
    missing = [folder]
    while not os.path.lexists(missing[-1].parent):
        missing.append(missing[-1].parent)
    for path in reversed(missing):
        try:
            path.mkdir(0o700)
        except FileExistsError:
            continue
        os.chmod(path, 0o700)  # the umask may have taken the owner's own bits


def _shut(folder: Path, *, follow: bool) -> None:
    if not follow and folder.is_symlink():
        raise _unsafe(folder, "is a link")
    flags = os.O_RDONLY | os.O_DIRECTORY | (0 if follow else os.O_NOFOLLOW)
    handle = os.open(folder, flags)
    try:
        found = os.fstat(handle)
        if found.st_uid != os.geteuid():
            raise _unsafe(folder, "belongs to somebody else")
        if stat.S_IMODE(found.st_mode) & 0o077:
            os.fchmod(handle, 0o700)
    finally:
        os.close(handle)


def _unsafe(folder: Path, why: str) -> TakebackError:
    return TakebackError(
        "home.unsafe",
        f"The folder {folder} {why}.",
        "Remove it, or set TAKEBACK_HOME to a folder of your own.",
    )


def unusable(path: Path, error: OSError) -> TakebackError:
    """The typed error for what the system said about a path of the home."""
    if error.errno in _READ_ONLY:
        return TakebackError(
            "home.readonly",
            f"takeback can't write to {path}: {error.strerror}.",
            "Make the folder writable for you, or set TAKEBACK_HOME to another one.",
        )
    return TakebackError(
        "home.unusable",
        f"takeback can't use {path}: {error.strerror}.",
        "Look at what is there, or set TAKEBACK_HOME to another folder.",
    )

"""SQLite as the store uses it: connections, closures on their threads, and its errors in our words."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import aiosqlite

from takeback.durable import sync_folder
from takeback.errors import TakebackError

T = TypeVar("T")

_MAGIC = b"SQLite format 3\x00"

_WRITER = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",  # macOS: its plain fsync leaves the bytes in the drive's cache
    "PRAGMA foreign_keys = ON",
    # 16 MB: the same few pages are written by every commit, and go to the file once for all of these.
    "PRAGMA wal_autocheckpoint = 4000",
    "PRAGMA journal_size_limit = 67108864",  # one huge transaction shall not keep its room for ever
    "PRAGMA temp_store = MEMORY",  # a person's rows don't belong in the shared temporary folder
)
_READER = ("PRAGMA query_only = ON", "PRAGMA temp_store = MEMORY")


def inspect(path: Path) -> None:
    """Makes a private, empty file where there is none; refuses one that is no readable database, untouched.

    Raises `store.corrupt`, `store.readonly`, `store.full`. Not for a file that is open: closing any handle of
    it would drop SQLite's locks.
    """
    try:
        head = _touch(path)
    except OSError as error:
        raise _of_system(path, error) from error
    if not head:
        return
    if head != _MAGIC:
        raise _corrupt()
    # Read-only, because the last writer to close would fold the WAL into a file that is perhaps damaged.
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise typed(error) from error
    finally:
        connection.close()


async def connect_writer(path: Path, busy_seconds: float) -> aiosqlite.Connection:
    """The one connection that changes the file. Every commit on it is durable when it returns."""
    return await _connect(f"{path.as_uri()}?mode=rw", _WRITER, busy_seconds)


async def connect_reader(path: Path, busy_seconds: float) -> aiosqlite.Connection:
    """A connection that can't write, not even by a checkpoint."""
    return await _connect(f"{path.as_uri()}?mode=ro", _READER, busy_seconds)


async def _connect(address: str, pragmas: tuple[str, ...], busy_seconds: float) -> aiosqlite.Connection:
    connecting = aiosqlite.connect(
        address, uri=True, isolation_level=None, timeout=busy_seconds, cached_statements=512
    )
    try:
        connection = await connecting
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise typed(error) from error
    try:
        await run(connection, lambda raw: _set_up(raw, pragmas))
    except BaseException:
        await connection.close()
        raise
    return connection


def _set_up(raw: sqlite3.Connection, pragmas: tuple[str, ...]) -> None:
    raw.row_factory = sqlite3.Row
    for pragma in pragmas:
        raw.execute(pragma).fetchall()


def hand_over(connection: aiosqlite.Connection, work: Callable[[], None]) -> None:
    """Puts `work` on the connection's thread with nobody waiting for it.

    aiosqlite has no public call for a closure. This is what its own `_execute` does, less the future: the
    callers of a batch are all told by one wake-up of the loop and not by one each.
    """
    connection._tx.put_nowait((None, work))


async def run(connection: aiosqlite.Connection, fn: Callable[[sqlite3.Connection], T]) -> T:
    """Runs `fn` on the connection's thread, by the private call under all of aiosqlite's public ones."""
    try:
        result: T = await connection._execute(fn, connection._conn)  # type: ignore[no-untyped-call]
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise typed(error) from error
    return result


def snapshot(connection: sqlite3.Connection, fn: Callable[[sqlite3.Connection], T]) -> T:
    """Runs `fn` with all its statements seeing one state of the database."""
    connection.execute("BEGIN")
    try:
        return fn(connection)
    finally:
        connection.rollback()


def _touch(path: Path) -> bytes:
    """The file's first bytes, after making it if need be and shutting it to everybody else."""
    is_new = not path.exists()
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(handle).st_mode & 0o077:
            os.fchmod(handle, 0o600)
        head = os.read(handle, len(_MAGIC))
    finally:
        os.close(handle)
    if is_new:
        sync_folder(path.parent)
    return head


def typed(error: BaseException) -> BaseException:
    """A failure of disk or file as a typed error with the original as its cause; anything else as it is."""
    code = getattr(error, "sqlite_errorcode", None) if isinstance(error, sqlite3.Error) else None
    made = _TYPED.get(code & 0xFF) if isinstance(code, int) else None
    if isinstance(error, UnicodeDecodeError) or str(error).startswith(_DAMAGED):
        made = _corrupt  # sqlite3 can't even read out SQLite's words about a damaged schema
    if made is None:
        return error
    better = made()
    better.__cause__ = error
    return better


def _of_system(path: Path, error: OSError) -> TakebackError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _full()
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return _readonly()
    return TakebackError(
        "store.io", f"The database {path} can't be opened: {error.strerror}.", "Look at what is there."
    )


def _full() -> TakebackError:
    return TakebackError(
        "store.full",
        "The disk with takeback's database is full; nothing of this was written.",
        "Make room, then try again. `takeback gc` removes what is past its time.",
        retryable=True,
    )


def _readonly() -> TakebackError:
    return TakebackError(
        "store.readonly",
        "takeback's database can't be written; nothing of this was written.",
        "Make the file and its folder writable for you, or set TAKEBACK_HOME to another folder.",
    )


def _corrupt() -> TakebackError:
    return TakebackError(
        "store.corrupt",
        "takeback's database is damaged or is no database. It was left as it is.",
        "Put a backup in its place, or move it away to start with an empty log.",
    )


def _busy() -> TakebackError:
    return TakebackError(
        "store.busy",
        "Another program holds takeback's database locked; nothing of this was written.",
        "Close the program that has it open, then try again.",
        retryable=True,
    )


def _io() -> TakebackError:
    return TakebackError(
        "store.io",
        "The disk with takeback's database reported an error; nothing of this was written.",
        "Look at the disk's health and the system's log before going on.",
    )


# What SQLite says of a damaged file under its code for errors in general.
_DAMAGED = ("malformed database schema", "unsupported file format")
_TYPED: dict[int, Callable[[], TakebackError]] = {
    sqlite3.SQLITE_FULL: _full,
    sqlite3.SQLITE_READONLY: _readonly,
    sqlite3.SQLITE_PERM: _readonly,
    sqlite3.SQLITE_CANTOPEN: _readonly,
    sqlite3.SQLITE_CORRUPT: _corrupt,
    sqlite3.SQLITE_NOTADB: _corrupt,
    sqlite3.SQLITE_BUSY: _busy,
    sqlite3.SQLITE_LOCKED: _busy,
    sqlite3.SQLITE_IOERR: _io,
}

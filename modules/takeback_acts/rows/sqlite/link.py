"""Link: a connection of Python's own sqlite3, with transactions that are ours alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from takeback.errors import RefusedError

_OLDEST = (3, 37, 0)
_UNDECODABLE = "Could not decode to UTF-8"


class SqliteLink:
    """A connection on which nothing begins a transaction but the one who asks for it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.ready = False
        connection.isolation_level = None
        connection.row_factory = None
        self._cursor = connection.cursor()

    @property
    def rowcount(self) -> int:
        """Rows that the last statement changed."""
        return self._cursor.rowcount

    def execute(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All the rows a statement gives. RefusedError("rows.value") when a text is not UTF-8."""
        try:
            return self._cursor.execute(sql, params).fetchall()
        except sqlite3.OperationalError as error:
            # The driver's words hold the text itself.
            if str(error).startswith(_UNDECODABLE):
                raise undecodable() from None
            raise

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> int:
        """Runs a statement for each of the rows; how many rows it changed in all."""
        return self._cursor.executemany(sql, rows).rowcount

    def close(self) -> None:
        """Closes the connection; what is not committed is gone."""
        self.connection.close()


def open_link(path: str | Path, *, timeout: float = 5.0) -> SqliteLink:
    """Opens a database file that exists, for one thread at a time.

    RefusedError("rows.sqlite") when the library is too old to tell of its tables.
    """
    if sqlite3.sqlite_version_info < _OLDEST:
        raise RefusedError(
            "rows.sqlite",
            f"SQLite {sqlite3.sqlite_version} is too old.",
            f"Use a Python with SQLite {'.'.join(map(str, _OLDEST))} or newer.",
        )
    uri = Path(path).absolute().as_uri() + "?mode=rw"
    connection = sqlite3.connect(
        uri, uri=True, timeout=timeout, check_same_thread=False, cached_statements=512
    )
    return SqliteLink(connection)


def undecodable(place: str = "a column") -> RefusedError:
    """The refusal of a text that is not UTF-8, by the name of its column."""
    return RefusedError(
        "rows.value",
        f"There is text that is not UTF-8 in {place}, so it can't be kept exactly.",
        "Make it a BLOB, or correct the text.",
    )

"""Addresses: where a database is, read from the person's URL, checked, and shown without its secrets."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from takeback.errors import RefusedError, UsageError
from takeback.home import Home

Engine = Literal["sqlite", "postgresql"]

_ENGINES: Mapping[str, Engine] = {"sqlite": "sqlite", "postgresql": "postgresql", "postgres": "postgresql"}
_HINT = "Write sqlite:////full/path/to/file or postgresql://user:password@host/database."


@dataclass(frozen=True, slots=True)
class Address:
    """A database's engine, and its file or what its driver is called with; `shown` holds no secret."""

    engine: Engine
    target: str = field(repr=False)
    shown: str


def read(url: str, home: Home) -> Address:
    """The address that a URL names.

    Raises UsageError `rows.url`, and for a file that can't be connected RefusedError `rows.file`,
    `rows.own_database`. Nothing is opened, and no message quotes the URL.
    """
    # Not at the top: it takes a while, and is needed by nobody who connects nothing.
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        parsed = make_url(url)
        engine = _ENGINES.get(parsed.drivername.partition("+")[0])
    except (ArgumentError, ValueError):
        raise _wrong("That is no URL of a database") from None
    if engine is None:
        raise _wrong(f"Databases of {parsed.drivername:.40} can't be connected")
    if engine == "sqlite":
        if parsed.query or parsed.host or parsed.username:
            raise _wrong("The URL of a SQLite file has a path and nothing else")
        path = file(parsed.database or "", home)
        return Address("sqlite", path, f"sqlite:///{path}")
    shown = parsed.set(drivername="postgresql", query=_harmless(parsed.query)).render_as_string(
        hide_password=True
    )
    return Address("postgresql", _conninfo(parsed), shown)


def file(path: str, home: Home) -> str:
    """The real path of a SQLite file that may be connected; raises what `read` raises."""
    if not os.path.isabs(path) or "\0" in path:
        raise _wrong(
            "The file's path is not a full one" if path else "A database in memory can't be connected"
        )
    try:
        real = os.path.realpath(path, strict=True)
        found = os.stat(real)
    except OSError as error:
        raise _unfit(path, f"can't be opened ({error.strerror})") from None
    _require_foreign(real, found, home)
    if not stat.S_ISREG(found.st_mode):
        raise _unfit(path, "is not a regular file")
    if not os.access(real, os.R_OK | os.W_OK) or not os.access(os.path.dirname(real), os.W_OK | os.X_OK):
        raise _unfit(path, "or its folder is not yours to write")
    return real


def _require_foreign(real: str, found: os.stat_result, home: Home) -> None:
    """takeback's own store must not be changed through a door that it records."""
    for folder in (home.config, home.data, home.state, home.runtime):
        if real.startswith(os.path.realpath(folder).rstrip("/") + "/"):
            raise _own(real)
    try:
        own = os.stat(home.database)
    except OSError:
        return
    if (own.st_dev, own.st_ino) == (found.st_dev, found.st_ino):
        raise _own(real)


def _conninfo(parsed: Any) -> str:
    """What psycopg connects with; raises UsageError `rows.url`."""
    import psycopg
    from psycopg.conninfo import make_conninfo

    given = {key: value for key, value in parsed.query.items() if isinstance(value, str)}
    parts = {
        "host": parsed.host,
        "port": parsed.port,
        "user": parsed.username,
        "password": parsed.password,
        "dbname": parsed.database,
    }
    if len(given) != len(parsed.query):
        raise _wrong("The URL gives an option twice")
    try:
        conninfo = make_conninfo("", **given | {key: part for key, part in parts.items() if part is not None})
    except psycopg.Error:
        raise _wrong("The URL has an option that PostgreSQL's driver does not know") from None
    # Whatever a password is, this must not look like a URL.
    return conninfo.replace("://", ":/\\/")


def _harmless(query: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a URL that hold no secret, whatever else they say."""
    return {
        key: value for key, value in query.items() if key in ("host", "port", "sslmode", "options", "dbname")
    }


def _wrong(why: str) -> UsageError:
    return UsageError("rows.url", why, _HINT)


def _unfit(path: str, why: str) -> RefusedError:
    return RefusedError("rows.file", f"{path:.1000} {why}", "Name a SQLite file that is there and yours.")


def _own(path: str) -> RefusedError:
    return RefusedError(
        "rows.own_database",
        f"{path:.1000} is takeback's own",
        "It is changed by takeback alone; connect a database of yours.",
    )

"""Link: a connection of psycopg's, with transactions that are ours alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import psycopg
from psycopg import postgres
from psycopg.adapt import AdaptersMap
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.string import TextLoader

from takeback.errors import ConflictError, RefusedError, TakebackError, UsageError
from takeback_acts.rows.postgres.types import SETTINGS
from takeback_acts.rows.postgres.wire import Wire

# What a type's text says is kept as it is, but for what Python has the very same of.
_PYTHON = frozenset({"bool", "int2", "int4", "int8", "oid", "float4", "float8", "bytea", "text[]"})
_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 10,
    "application_name": "takeback",
    "keepalives_idle": 30,
    "tcp_user_timeout": 30_000,
}
_WRITING = ("INSERT ", "UPDATE ", "DELETE ")
_SEARCHED = """
SELECT pg_catalog.set_config('search_path', pg_catalog.concat_ws(', ',
    'public', nullif(pg_catalog.current_setting('search_path'), ''), 'pg_temp'), false),
    pg_catalog.set_config('jit', 'off', false)
"""


class PostgresLink:
    """A connection on which nothing begins a transaction but the one who asks for it.

    Rows come with int, float, bool and bytes for what is such, and each other value as the text of its type.
    Errors are psycopg's. One thread uses it at a time; `interrupt` alone may be called from another.

    `rowcount` is how many rows the last statement changed. `armed` has what the beginning of a transaction
    saw, until another statement runs. `captured` is what came along with the first statement that wrote, and
    all there is while `told`. `stale` tells that a trigger of ours did not know its table any more.
    """

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self.rowcount = 0
        self.stale = False
        self.armed: tuple[Any, ...] | None = None
        self.captured: tuple[Any, ...] | None = None
        self.told = False
        self._asked = ""
        self._posted: list[tuple[str, Sequence[Any]]] = []
        self._open()

    def _open(self) -> None:
        self._connection = _connect(self._conninfo)
        self._wire = Wire(self._connection)
        self.execute(_SEARCHED)
        for name, value in SETTINGS.items():
            self.execute("SELECT pg_catalog.set_config(%s, %s, false)", (name, value))

    @property
    def connection(self) -> psycopg.Connection[tuple[Any, ...]]:
        """The connection, for whoever needs more of it: what was known without asking is not any more."""
        self.armed, self.told = None, False
        return self._connection

    @property
    def usable(self) -> bool:
        """Whether the connection still stands, as far as it is known."""
        return not self._connection.closed

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, also one that has failed."""
        return self._connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE

    def execute(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All the rows a statement gives; of several, which take no parameters, those of the last."""
        asked, self.armed, self.told = self._asked if self.armed and params else "", None, False
        try:
            self._send_posted()
            if asked and sql.startswith(_WRITING):
                rows, self.rowcount, told = self._wire.run_both(sql, params, asked)
                self.captured, self.told = told[0], True
            else:
                rows, self.rowcount = self._wire.run(sql, params)
        except ConflictError:
            self.stale = True
            raise
        return rows

    def begin(self, sql: str, look: str, asked: str) -> None:
        """Begins a transaction. `look` goes along with it, `asked` with the first statement that writes."""
        self._posted.clear()
        _, _, rows = self._wire.run_both(sql, (), look)
        self.armed, self.captured, self.told, self._asked = rows[0], None, False, asked

    def post(self, sql: str, params: Sequence[Any]) -> None:
        """A statement whose outcome nobody waits for: it goes with the next, which raises what it raises."""
        self._posted.append((sql, params))

    def commit(self) -> None:
        """Commits, on one way to the server with what was posted."""
        self.armed = None
        posted, self._posted = self._posted, []
        self._wire.commit(posted)

    def forget_posted(self) -> None:
        """What was posted and has not gone yet never does."""
        self._posted.clear()

    def _send_posted(self) -> None:
        posted, self._posted = self._posted, []
        for sql, params in posted:
            self._wire.run(sql, params)

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> int:
        """Runs a statement for each of the rows; how many rows it changed in all."""
        self.armed, self.told = None, False
        self._send_posted()
        with self._connection.cursor() as cursor:
            cursor.executemany(sql.encode(), rows)
            self.rowcount = max(cursor.rowcount, 0)
        return self.rowcount

    def reconnect(self) -> None:
        """A new connection in place of one that is gone. Raises what `open_link` raises."""
        self._connection.close()
        self._open()

    def interrupt(self) -> None:
        """Ends the statement that runs, if one does."""
        self._connection.cancel_safe(timeout=5)

    def close(self) -> None:
        """Closes the connection; what is not committed is gone."""
        self._connection.close()


def open_link(url: str) -> PostgresLink:
    """Connects to a database by its SQLAlchemy URL, or by what psycopg takes.

    UsageError("rows.url"), TakebackError("rows.unreachable"), RefusedError("rows.password"). No message has
    the URL.
    """
    return PostgresLink(_conninfo(url))


def refusals(link: PostgresLink) -> list[TakebackError]:
    """Why a database is not to be connected by this user; empty when nothing is against it."""
    found: list[TakebackError] = []
    superuser, servant, encoding, recovering, version, temporary = link.execute(_RIGHTS)[0]
    if superuser or servant:
        found.append(
            RefusedError(
                "rows.superuser",
                "The database's user is a superuser, or may read and write the server's own files.",
                "Connect as the user that owns the tables; what a superuser can do, nobody takes back.",
            )
        )
    if encoding in ("SQL_ASCII", "MULE_INTERNAL"):
        found.append(
            RefusedError(
                "rows.encoding",
                f"The database has the encoding {encoding}, in which texts are no certain characters.",
                "Move it to a database with the encoding UTF8.",
            )
        )
    if recovering:
        found.append(
            RefusedError(
                "rows.readonly", "The server is a standby, which can't be written.", "Connect to the primary."
            )
        )
    if version < _OLDEST:
        found.append(RefusedError("rows.server", "The server is older than PostgreSQL 14.", "Upgrade it."))
    if not temporary:
        found.append(
            RefusedError(
                "rows.privilege",
                "The database's user may not make temporary tables, which hold what a large act changes.",
                "Grant TEMPORARY on the database.",
            )
        )
    return found


_OLDEST = 140000
_RIGHTS = """
SELECT r.rolsuper OR s.rolsuper, pg_catalog.pg_has_role(s.oid, 'pg_execute_server_program', 'MEMBER')
        OR pg_catalog.pg_has_role(s.oid, 'pg_write_server_files', 'MEMBER')
        OR pg_catalog.pg_has_role(s.oid, 'pg_read_server_files', 'MEMBER'),
    pg_catalog.current_setting('server_encoding'), pg_catalog.pg_is_in_recovery(),
    pg_catalog.current_setting('server_version_num')::int4,
    pg_catalog.has_database_privilege(pg_catalog.current_database(), 'TEMPORARY')
FROM pg_catalog.pg_roles r, pg_catalog.pg_roles s WHERE r.rolname = current_user AND s.rolname = session_user
"""


def _conninfo(url: str) -> str:
    try:
        if "://" in url:
            # Not at the top: it takes a while, and a connection that is known already needs none of it.
            from sqlalchemy.engine import make_url

            parsed = make_url(url)
            parts = {
                "host": parsed.host,
                "port": parsed.port,
                "user": parsed.username,
                "password": parsed.password,
                "dbname": parsed.database,
            }
            given: dict[str, Any] = dict(parsed.query) | {
                name: part for name, part in parts.items() if part is not None
            }
            url = make_conninfo("", **given)
        return make_conninfo("", **(_DEFAULTS | conninfo_to_dict(url) | {"client_encoding": "UTF8"}))
    except Exception:  # boundary: whatever it is, the URL must not be in what is told
        raise UsageError(
            "rows.url",
            "That is no URL of a PostgreSQL database.",
            "Write postgresql://user:password@host/database.",
        ) from None


def _connect(conninfo: str) -> psycopg.Connection[tuple[Any, ...]]:
    try:
        connection = psycopg.connect(conninfo, autocommit=True, context=_adapters())
    except psycopg.OperationalError as error:
        _refuse(conninfo, error)
    return connection


def _refuse(conninfo: str, error: psycopg.OperationalError) -> NoReturn:
    """The driver's words may hold the name of a user; what it was about is told in ours."""
    parts = conninfo_to_dict(conninfo)
    where = f"{parts.get('dbname', 'the database')} at {parts.get('host', 'this machine')}"
    words = str(error)
    if (
        "password" in words
        or "authentication" in words
        or "no pg_hba.conf entry" in words
        or 'role "' in words
    ):
        raise RefusedError(
            "rows.password",
            f"PostgreSQL does not accept the user or the password for {where}.",
            "Give the right ones in the URL.",
        ) from None
    raise TakebackError(
        "rows.unreachable",
        f"PostgreSQL can't be reached: {where}.",
        "See that it runs and that host, port and name of the database are right.",
        retryable=True,
    ) from None


def _adapters() -> AdaptersMap:
    """The loaders of psycopg for what Python has the same of, and the text for all else."""
    adapters = AdaptersMap(postgres.adapters)
    for info in postgres.types:
        if info.name not in _PYTHON:
            adapters.register_loader(info.oid, TextLoader)
        if info.array_oid and info.name != "text":
            adapters.register_loader(info.array_oid, TextLoader)
    return adapters

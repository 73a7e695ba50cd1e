"""Shelves: what is in a database of PostgreSQL, kept aside and put back, which is faster than a new one."""

from __future__ import annotations

from dataclasses import dataclass

from tests.rows.server import Server

_TABLES = (
    "SELECT c.oid::regclass::text FROM pg_class c WHERE c.relkind = 'r'"
    " AND c.relnamespace = 'public'::regnamespace ORDER BY 1"
)
_COUNTERS = "SELECT quote_ident(schemaname) || '.' || quote_ident(sequencename), last_value FROM pg_sequences"
_OTHERS = (
    "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@dataclass(frozen=True)
class Shelf:
    """The rows of each table as COPY writes them, and how far each sequence had counted."""

    tables: dict[str, bytes]
    counters: dict[str, int | None]


def kept(server: Server, database: str) -> Shelf:
    """All that is in a database now."""
    tables = {}
    with server.connect(database) as db:
        for (name,) in db.execute(_TABLES).fetchall():
            with db.cursor().copy(f"COPY {name} TO STDOUT".encode()) as copy:
                tables[name] = b"".join(map(bytes, copy))
        return Shelf(tables, dict(db.execute(_COUNTERS).fetchall()))


def put_back(server: Server, database: str, shelf: Shelf) -> None:
    """Makes it all that is there, after everybody else is thrown out."""
    with server.connect(database) as db:
        db.execute(_OTHERS)
        db.execute("SET session_replication_role = replica")
        with db.transaction():
            for name, rows in shelf.tables.items():
                db.execute(f"DELETE FROM {name}".encode())
                with db.cursor().copy(f"COPY {name} FROM STDIN".encode()) as copy:
                    copy.write(rows)
        for name, last in shelf.counters.items():
            db.execute("SELECT setval(%s, coalesce(%s, 1), %s)", (name, last, last is not None))

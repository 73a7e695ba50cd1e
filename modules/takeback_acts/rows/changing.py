"""Changing: the tools that write, from what a caller asks for to the statement of an act."""

from __future__ import annotations

from collections.abc import Iterable

from takeback.context import Context, Scope
from takeback.errors import NotFoundError, RefusedError
from takeback_acts.rows import models, scopes, statements, told, values
from takeback_acts.rows.acting import Actor, Plan
from takeback_acts.rows.connections import Connection, Connections
from takeback_acts.rows.functions import ALLOWED, NEVER
from takeback_acts.rows.queries import Builder, Sql
from takeback_acts.rows.rules import Rules
from takeback_acts.rows.scopes import Hidden
from takeback_acts.rows.sessions.session import Session
from takeback_acts.rows.tables import Catalog, Table


class Changer:
    """Adds, sets and removes single rows, and runs single statements."""

    def __init__(self, connections: Connections, actor: Actor) -> None:
        self._connections = connections
        self._actor = actor

    async def insert(self, ctx: Context, args: models.Insert) -> models.Done:
        """One row more."""
        database = self._database(ctx, args.database)

        def body(session: Session) -> None:
            table = self._table(ctx.scope, database, session.catalog, args.table, args.row)
            _write(session, Builder(session.dialect, table).insert(args.row))

        given = {"table": args.table, "columns": list(args.row)}
        summary = f"Add a row to {args.table:.200} in {database}"
        plan = Plan("rows.insert", given, summary, args.table, body)
        return await self._actor.act(ctx, database, plan)

    async def update(self, ctx: Context, args: models.Update) -> models.Done:
        """Columns of one row, set."""
        database = self._database(ctx, args.database)

        def body(session: Session) -> None:
            table = self._table(ctx.scope, database, session.catalog, args.table, args.set)
            key = values.key_of(session.dialect.name, table, args.key)
            _write(session, Builder(session.dialect, table).update(key, args.set))
            _require_found(session, table)

        given = {"table": args.table, "columns": list(args.set)}
        summary = f"Update a row of {args.table:.200} in {database}"
        plan = Plan("rows.update", given, summary, args.table, body)
        return await self._actor.act(ctx, database, plan)

    async def delete(self, ctx: Context, args: models.Delete) -> models.Done:
        """One row less."""
        database = self._database(ctx, args.database)

        def body(session: Session) -> None:
            table = self._table(ctx.scope, database, session.catalog, args.table, ())
            key = values.key_of(session.dialect.name, table, args.key)
            _write(session, Builder(session.dialect, table).delete(key))
            _require_found(session, table)

        given = {"table": args.table}
        summary = f"Delete a row of {args.table:.200} in {database}"
        plan = Plan("rows.delete", given, summary, args.table, body)
        return await self._actor.act(ctx, database, plan)

    async def execute(self, ctx: Context, args: models.Execute) -> models.Done:
        """One statement as the caller wrote it."""
        connection = self._connections.get(args.database, ctx.scope)
        engine, database = connection.address.engine, connection.name
        statement = statements.read(args.sql, engine)
        statements.require_harmless(statement, args.sql, engine, agent=ctx.scope is not None)
        parameters = [
            values.encode(engine, value, f"parameter {number}")
            for number, value in enumerate(args.parameters, 1)
        ]
        permit = _Permit(ctx.scope, connection, self._connections.hidden, statement)

        def body(session: Session) -> None:
            permit.look(session.catalog)
            session.run(statement, args.sql, parameters, permit)

        given = {"statement": statement.verb, "tables": list(statement.tables)[:100]}
        summary = f"{statement.verb} on {statement.target:.200} in {database}"
        plan = Plan("rows.execute", given, summary, statement.target, body)
        return await self._actor.act(ctx, database, plan)

    def _database(self, ctx: Context, name: str | None) -> str:
        return self._connections.databases.named(name, ctx.scope).name

    def _table(
        self, scope: Scope | None, database: str, catalog: Catalog, name: str, columns: Iterable[str]
    ) -> Table:
        """A table that the caller may change, with these of its columns."""
        table = find(catalog, scope, database, name)
        _require_within(self._connections.get(database).rules, table.name)
        self._connections.hidden.require_shown(scope, database, table, columns)
        return table


class _Permit:
    """What a caller's statement may read and call."""

    def __init__(
        self, scope: Scope | None, connection: Connection, hidden: Hidden, statement: statements.Statement
    ) -> None:
        self._scope = scope
        self._database = connection.name
        self._rules = connection.rules
        self._hidden = hidden
        self._named = statement.tables
        self._target = statement.target
        self._catalog: Catalog | None = None

    @property
    def everything(self) -> bool:
        """Whether the caller may read all that there is."""
        return self._scope is None

    def look(self, catalog: Catalog) -> None:
        """Check the tables that the statement names, before anybody compiles it."""
        self._catalog = catalog
        for name in self._named:
            if name.lower().rpartition(".")[2].startswith("takeback_"):
                find(Catalog({}, {}), None, self._database, name)
        target = find(catalog, self._scope, self._database, self._target)
        _require_within(self._rules, target.name)
        self._require([target.name, *(_resolved(catalog, name) for name in self._named)])

    def reads(self, tables: Iterable[str], beside: Iterable[str]) -> None:
        """What the engine says that it is going to read, views looked into."""
        kept = set(beside)
        self._require(name for name in tables if name not in kept)

    def calls(self, functions: Iterable[str]) -> None:
        """What the engine says that it is going to call."""
        for name in functions:
            if name in NEVER or (self._scope is not None and name not in ALLOWED):
                raise told.function(name)

    def _require(self, names: Iterable[str]) -> None:
        found = list(names)
        scopes.require(self._scope, self._database, found)
        tables = self._catalog.tables if self._catalog is not None else {}
        self._hidden.require_none(
            self._scope, self._database, [tables[name] for name in found if name in tables]
        )


def find(catalog: Catalog, scope: Scope | None, database: str, name: str) -> Table:
    """A table by its name, in whatever case it is written where no other is written alike.

    Raises RefusedError `scope.outside`, `rows.unjournaled`, NotFoundError `rows.table`.
    """
    resolved = _resolved(catalog, name)
    scopes.require(scope, database, [resolved])
    if resolved in catalog.tables:
        return catalog.tables[resolved]
    if resolved in catalog.refused:
        why = catalog.refused[resolved]
        raise RefusedError(
            "rows.unjournaled",
            f"{database}.{name:.200} can't be changed so that it could be taken back: {why}",
            "Give it what it lacks, then try again; the database's own tools can change it as it is.",
        )
    raise NotFoundError(
        "rows.table",
        f"Database {database} has no table {name:.200}",
        "`rows.tables` lists those you may touch.",
    )


def _require_within(rules: Rules, table: str) -> None:
    if table in rules.outside:
        raise RefusedError(
            "rows.outside",
            f"{table:.300} is declared outside, so what is changed in it could not be taken back",
            "Leave it to the triggers that write to it, or take it out of [rows] outside.",
        )


def _resolved(catalog: Catalog, name: str) -> str:
    if name in catalog.tables or name in catalog.refused:
        return name
    # On PostgreSQL two names may differ in case alone; then only the exact one is meant.
    alike = [one for one in (*catalog.tables, *catalog.refused) if one.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else name


def _write(session: Session, sql: Sql) -> None:
    session.foresee(sql.text, sql.values)
    session.link.execute(sql.text, sql.values)


def _require_found(session: Session, table: Table) -> None:
    if session.link.rowcount == 0:
        raise NotFoundError(
            "rows.no_row", f"There is no row of {table.name:.300} with that key", "`rows.query` finds it."
        )

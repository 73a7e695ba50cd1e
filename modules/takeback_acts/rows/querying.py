"""Querying: rows of one table, read by a connection that can't write."""

from __future__ import annotations

from takeback.context import Context
from takeback.errors import UsageError
from takeback_acts.rows import failures, models, scopes, values
from takeback_acts.rows.changing import find
from takeback_acts.rows.connections import Connection, Connections
from takeback_acts.rows.queries import Builder
from takeback_acts.rows.sessions.session import Session
from takeback_acts.rows.tables import Column, Table


class Reader:
    """Lists tables, and answers rows of them."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._settings = connections.settings

    async def tables(self, ctx: Context, args: models.Where) -> models.Tables:
        """The tables that the caller may touch, of one database or of all."""
        named = [self._connections.databases.named(args.database, ctx.scope)] if args.database else []
        known = named or [
            one for one in self._connections.databases.all() if scopes.sees(ctx.scope, one.name)
        ]
        found: list[models.Table] = []
        for database in known:
            found += await self._tables(ctx, self._connections.of(database))
        return models.Tables(tables=found)

    async def query(self, ctx: Context, args: models.Query) -> models.Rows:
        """Rows that match; raises UsageError `rows.most_answered` for too many at once."""
        connection = self._connections.get(args.database, ctx.scope)
        most = self._settings.most_answered
        if args.limit > most:
            raise UsageError(
                "rows.most_answered",
                f"A query answers at most {most} rows",
                "Ask for fewer, and for the next ones with `offset`; [rows] most_answered raises the limit.",
            )

        def read(session: Session) -> models.Rows:
            with failures.reported(connection.name, session.dialect):
                return self._query(ctx, connection.name, session, args)

        return await connection.worker.run(read, seconds=self._settings.statement_seconds)

    def _query(self, ctx: Context, database: str, session: Session, args: models.Query) -> models.Rows:
        table = find(session.refresh(), ctx.scope, database, args.table)
        ordered = [*args.order, *(name.removeprefix("-") for name in args.order)]
        named = [*args.where, *(args.columns or ()), *ordered]
        self._connections.hidden.require_shown(ctx.scope, database, table, named)
        builder = Builder(session.dialect, table)
        columns = self._columns(ctx, database, table, builder, args)
        sql = builder.select(args, columns, args.limit)
        found = session.snapshot(lambda link: link.execute(sql.text, sql.values))
        engine = session.dialect.name
        rows = [values.row(engine, columns, image) for image in found[: args.limit]]
        return models.Rows(table=table.name, rows=rows, more=len(found) > args.limit)

    def _columns(
        self, ctx: Context, database: str, table: Table, builder: Builder, args: models.Query
    ) -> list[Column]:
        if args.columns is not None:
            return builder.columns(args.columns or table.key)
        hidden = self._connections.hidden.of(ctx.scope, database, table)
        return [column for column in table.columns if column.name not in hidden]

    async def _tables(self, ctx: Context, connection: Connection) -> list[models.Table]:
        def read(session: Session) -> list[models.Table]:
            with failures.reported(connection.name, session.dialect):
                catalog = session.refresh()
            return [
                self._told(ctx, connection.name, table)
                for table in catalog.tables.values()
                if scopes.holds(ctx.scope, connection.name, table.name)
            ]

        return await connection.worker.run(read, seconds=self._settings.statement_seconds)

    def _told(self, ctx: Context, database: str, table: Table) -> models.Table:
        hidden = self._connections.hidden.of(ctx.scope, database, table)
        columns = [
            models.Column(name=one.name, type=one.type, nullable=one.nullable, generated=one.generated)
            for one in table.columns
            if one.name not in hidden
        ]
        return models.Table(database=database, name=table.name, columns=columns, key=list(table.key))

"""Wire: statements and their results, between a connection of psycopg's and its server with nothing between.

A cursor of psycopg's would take as long again as a short statement does.
"""

from __future__ import annotations

import re
import select
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import psycopg
from psycopg import errors, pq
from psycopg.adapt import Transformer

from takeback_acts.rows.postgres.refusals import refusal

_MARK = re.compile(r"%(.?)", re.DOTALL)
_MOST_PREPARED = 256
_DONE = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK, pq.ExecStatus.EMPTY_QUERY)
_COPYING = (pq.ExecStatus.COPY_IN, pq.ExecStatus.COPY_OUT, pq.ExecStatus.COPY_BOTH)


class _Statement:
    """A statement as the server reads it; `name` once it is prepared there."""

    __slots__ = ("name", "parameters", "text", "used")

    def __init__(self, sql: str) -> None:
        self.text, self.parameters = _numbered(sql)
        self.name = b""
        self.used = False


class Wire:
    """Runs statements one after another. What is used twice is prepared."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._server = connection.pgconn
        self._loading = Transformer(connection)
        self._statements: OrderedDict[str, _Statement] = OrderedDict()
        self._number = 0

    def run(self, sql: str, params: Sequence[Any]) -> tuple[list[tuple[Any, ...]], int]:
        """The rows that a statement gives, and how many it changed; of several, which take no parameters,
        those of the last. Raises psycopg's errors, and in their place what our triggers say."""
        if not params:
            return self._outcome(self._server.exec_(sql.encode()))
        statement, values = self._bound(sql, params)
        if not statement.name:
            return self._outcome(self._server.exec_params(statement.text, values))
        try:
            return self._outcome(self._server.exec_prepared(statement.name, values))
        except psycopg.Error:
            self._forget(sql)
            raise

    def commit(self, before: Sequence[tuple[str, Sequence[Any]]]) -> None:
        """Runs single statements and then COMMIT, on one way to the server.

        Raises what the first that fails does; also where COMMIT ends a transaction that had failed already,
        which the server takes for no error.
        """
        results = self._together([*before, ("COMMIT", ())]) if before else [self._server.exec_(b"COMMIT")]
        for result in results:
            self._outcome(result)
        if results[-1].command_status != b"COMMIT":
            raise errors.InFailedSqlTransaction("the transaction had failed, and was rolled back")

    def run_both(
        self, sql: str, params: Sequence[Any], then: str
    ) -> tuple[list[tuple[Any, ...]], int, list[tuple[Any, ...]]]:
        """What `run` tells of a single statement, and the rows of one after it, on one way to the server."""
        results = self._together([(sql, params), (then, ())])
        rows, changed = self._outcome(results[0])
        return rows, changed, self._outcome(results[1])[0]

    def _together(self, statements: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        bound = [self._bound(sql, params) for sql, params in statements]
        self._server.enter_pipeline_mode()
        try:
            for statement, values in bound:
                if statement.name:
                    self._server.send_query_prepared(statement.name, values)
                else:
                    self._server.send_query_params(statement.text, values)
            self._server.pipeline_sync()
            return list(self._results())
        finally:
            self._server.exit_pipeline_mode()

    def _results(self) -> Iterator[Any]:
        """The results, up to the point where all have been told; a pause after each, and two are the end."""
        pauses = 0
        while pauses < 2:
            result = self._heard()
            if result is None:
                pauses += 1
            elif result.status == pq.ExecStatus.PIPELINE_SYNC:
                return
            else:
                pauses = 0
                yield result

    def _heard(self) -> Any:
        """The next result. Where it has to be waited for no other thread does: libpq's own way of waiting
        would keep all of Python waiting with it."""
        server = self._server
        if server.is_busy():
            told = select.poll()
            while server.is_busy():
                # What is large does not leave at once, and while it does not, nothing comes.
                leaving = select.POLLOUT if server.flush() else 0
                told.register(server.socket, select.POLLIN | leaving)
                told.poll()
                server.consume_input()
        return server.get_result()

    def _bound(self, sql: str, params: Sequence[Any]) -> tuple[_Statement, list[Any]]:
        statement = self._statement(sql)
        values: list[Any] = [_dumped(value) for value in params]
        if len(values) != statement.parameters:
            raise psycopg.ProgrammingError("the statement has another number of parameters")
        if not statement.name and statement.used:
            self._prepare(statement)
        statement.used = True
        return statement, values

    def _statement(self, sql: str) -> _Statement:
        found = self._statements.get(sql)
        if found is None:
            if len(self._statements) >= _MOST_PREPARED:
                self._forget(next(iter(self._statements)))
            found = self._statements[sql] = _Statement(sql)
        else:
            self._statements.move_to_end(sql)
        return found

    def _prepare(self, statement: _Statement) -> None:
        self._number += 1
        name = f"takeback_{self._number}".encode()
        self._outcome(self._server.prepare(name, statement.text))
        statement.name = name

    def _forget(self, sql: str) -> None:
        """Lets go of a statement here; the server keeps it no longer than it keeps the connection."""
        statement = self._statements.pop(sql)
        if statement.name and self._server.transaction_status != pq.TransactionStatus.INERROR:
            self._server.exec_(b"DEALLOCATE " + statement.name)

    def _outcome(self, result: Any) -> tuple[list[tuple[Any, ...]], int]:
        status = result.status
        if status not in _DONE:
            self._fail(result, status)
        changed = result.command_tuples or 0
        if not result.ntuples:
            return [], changed
        self._loading.set_pgresult(result)
        return self._loading.load_rows(0, result.ntuples, tuple), changed

    def _fail(self, result: Any, status: int) -> NoReturn:
        if self._server.status == pq.ConnStatus.BAD:
            raise psycopg.OperationalError("the connection was lost")
        if status in _COPYING:
            self._server.finish()
            raise psycopg.ProgrammingError("COPY is no statement that can be run here")
        error = errors.error_from_result(result)
        refused = refusal(error)
        if refused is None:
            raise error
        raise refused from error


def _numbered(sql: str) -> tuple[bytes, int]:
    """The statement with numbers in place of `%s`, and how many; `%%` is one percent sign."""
    number = 0

    def replaced(found: re.Match[str]) -> str:
        nonlocal number
        if found[1] == "%":
            return "%"
        if found[1] != "s":
            raise psycopg.ProgrammingError("a percent sign is neither %s nor %%")
        number += 1
        return f"${number}"

    return _MARK.sub(replaced, sql).encode(), number


def _dumped(value: Any) -> bytes | None:
    """A parameter as text, of whatever type the statement takes it for."""
    if value is None:
        return None
    if isinstance(value, str):
        if "\0" in value:
            raise psycopg.DataError("text of PostgreSQL can't hold a NUL")
        return value.encode()
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, int | float):
        return repr(value).encode()
    if isinstance(value, bytes):
        return b"\\x" + value.hex().encode()
    raise psycopg.ProgrammingError(f"a parameter is of type {type(value).__name__}")

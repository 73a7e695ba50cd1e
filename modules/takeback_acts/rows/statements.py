"""Statements: what a piece of SQL is, and what it names, before it goes to a database."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from takeback.errors import RefusedError
from takeback_acts.rows import told
from takeback_acts.rows.functions import ALLOWED, NEVER

if TYPE_CHECKING:
    from sqlglot import exp

_DIALECTS = {"sqlite": "sqlite", "postgresql": "postgres"}
_DEFAULT_SCHEMAS = {"sqlite": "main", "postgresql": "public"}
# What two readers of SQL may read in two ways: an agent gives values as parameters, and needs none of it.
_DOUBTFUL = re.compile(r"--|/\*|\\|\$[A-Za-z_]*\$|[uU]&['\"]")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement that changes rows: its verb, the tables that it names, and the functions that it calls.

    A table outside of the default schema is `schema.table`.
    """

    verb: str
    target: str
    tables: tuple[str, ...]
    functions: frozenset[str]


def read(sql: str, engine: str) -> Statement:
    """What a statement is.

    Raises UsageError `rows.statement` for what is no SQL, or more than one statement, and RefusedError
    `rows.statement_refused` for all that does more than change rows, or less.
    """
    tree = _tree(sql, engine)
    verb = _verb(tree)
    from sqlglot import exp

    if any(tree.find_all(exp.Into)):
        raise _refused("SELECT INTO", "makes a table")
    if tree.args.get("returning") or any(tree.find_all(exp.Returning)):
        raise _refused("RETURNING", "answers rows; rows.execute tells the keys of what it changed")
    tables = tuple(dict.fromkeys(_tables(tree, engine)))
    return Statement(verb, _target(tree, engine), tables, frozenset(_functions(tree)))


def require_harmless(statement: Statement, sql: str, engine: str, *, agent: bool) -> None:
    """Raises RefusedError `rows.function` for what the caller may not call, and `rows.statement_refused`."""
    for name in sorted(statement.functions & NEVER):
        raise told.function(name)
    if not agent:
        return
    for name in sorted(statement.functions - ALLOWED):
        raise told.function(name)
    if engine == "postgresql" and _DOUBTFUL.search(sql):
        raise _refused(
            "A comment, a backslash or a $-quoted text", "hides what a statement says; give parameters"
        )


def _tree(sql: str, engine: str) -> exp.Expression:
    """The one statement of a text."""
    # Not at the top: only who gives SQL needs a reader of it.
    import sqlglot
    from sqlglot.errors import SqlglotError

    _quieten()
    if "\0" in sql:
        raise told.statement("The statement has a NUL in it")
    try:
        found = [tree for tree in sqlglot.parse(sql, read=_DIALECTS[engine]) if tree is not None]
    except (SqlglotError, RecursionError) as error:
        raise told.statement(f"The statement can't be read{_place(error)}") from None
    if len(found) != 1:
        raise told.statement("There is no statement" if not found else "There are two statements in one")
    return found[0]  # type: ignore[return-value]


def _verb(tree: exp.Expression) -> str:
    from sqlglot import exp

    if isinstance(tree, exp.Insert | exp.Update | exp.Delete | exp.Merge):
        return type(tree).__name__.upper()
    if isinstance(tree, exp.Query | exp.Values | exp.Table):
        raise _refused("A query", "changes nothing; rows.query answers rows")
    if isinstance(tree, exp.Create | exp.Drop | exp.Alter | exp.TruncateTable):
        raise _refused(tree.key.upper()[:20], "changes tables and not rows, which can't be taken back here")
    if isinstance(tree, exp.Command) and str(tree.this).upper() == "REPLACE":
        raise _refused("REPLACE", "is written INSERT OR REPLACE here")
    word = str(tree.this) if isinstance(tree, exp.Command) else tree.key
    raise _refused(word.upper()[:20] if word.isalpha() else "That statement", "does more than change rows")


def _refused(what: str, why: str) -> RefusedError:
    return RefusedError(
        "rows.statement_refused",
        f"{what} {why}",
        "Give one INSERT, UPDATE, DELETE or MERGE. The person does the rest with tools of the database.",
    )


def _tables(tree: exp.Expression, engine: str) -> Iterator[str]:
    """Every table that is named; a common table expression is none."""
    from sqlglot import exp

    common = {cte.alias for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Func):
            continue  # its rows come from a function, which is looked at as such
        if table.name not in common or table.db:
            yield _named(table, engine)


def _target(tree: exp.Expression, engine: str) -> str:
    from sqlglot import exp

    found = tree.this.find(exp.Table) if isinstance(tree.this, exp.Expression) else None
    if found is None:
        raise told.statement("The statement names no table that it changes")
    return _named(found, engine)


def _named(table: exp.Table, engine: str) -> str:
    name, schema = _folded(table.this, engine), _folded(table.args.get("db"), engine)
    if table.catalog:
        raise _refused("A table of another database", "can't be changed through this one")
    if not schema or schema.lower() == _DEFAULT_SCHEMAS[engine]:
        return name
    return f"{schema}.{name}"


def _folded(part: Any, engine: str) -> str:
    """An identifier as the database has it: PostgreSQL makes it small unless it is in quotes."""
    from sqlglot import exp

    if isinstance(part, exp.Star | exp.Var):  # `ONLY a` and `a *`
        return part.name
    if not isinstance(part, exp.Identifier):
        return "" if part is None else str(part.name)
    text = str(part.this)
    return text.lower() if engine == "postgresql" and not part.args.get("quoted") else text


def _functions(tree: exp.Expression) -> Iterator[str]:
    """Every function that is called, in small letters; one of a schema of its own with that before it."""
    from sqlglot import exp

    for found in tree.find_all(exp.Func):
        name = found.name if isinstance(found, exp.Anonymous | exp.AnonymousAggFunc) else found.sql_name()
        dotted = found.parent if isinstance(found.parent, exp.Dot) else None
        yield f"{dotted.this.sql()}.{name}".lower() if dotted is not None else name.lower()


def _place(error: BaseException) -> str:
    """Where the reading ended; the words around it stay out, since they may be somebody's values."""
    found = getattr(error, "errors", None) or [{}]
    line, column = found[0].get("line"), found[0].get("col")
    return f", at line {line}, column {column}" if line and column else ""


def _quieten() -> None:
    """sqlglot logs statements that it can't read in full, with the values in them."""
    log = logging.getLogger("sqlglot")
    if log.propagate:
        log.addHandler(logging.NullHandler())
        log.propagate = False

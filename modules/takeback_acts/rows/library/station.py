"""Station: one physical connection of an app's pool, with the acts that are open on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy.engine import Connection
from sqlalchemy.pool import Pool

from takeback.errors import RefusedError
from takeback_acts.rows.dialect import Link
from takeback_acts.rows.library import failures
from takeback_acts.rows.library.drivers import driver
from takeback_acts.rows.library.ledger import AppDialect, AppLedger
from takeback_acts.rows.library.place import Place
from takeback_acts.rows.library.postgres import AppPostgres
from takeback_acts.rows.library.sqlite import AppSqlite
from takeback_acts.rows.rules import Rules

if TYPE_CHECKING:
    from takeback_acts.rows.library.acts import Act

T = TypeVar("T")

KEY = "takeback.journal"


class Station:
    """Made once for a connection, and kept with it in its pool; `acts` are open, the innermost last."""

    def __init__(self, connection: Connection) -> None:
        self._driver = driver.of(connection)
        self._engine = connection.dialect.name
        self._ledgers: WeakKeyDictionary[Rulebook, AppLedger] = WeakKeyDictionary()
        self.acts: list[Act] = []

    def run(self, fn: Callable[[Link], T]) -> T:
        """Runs a function over the connection; what the driver raises comes as a typed error."""
        with failures.told(self._engine):
            return self._driver.run(fn)

    def before(self, statement: str) -> None:
        """A statement of the app's is about to run: what it may write is captured from now on."""
        covering = self.acts[-1].covering
        if covering is not None:
            missing = covering.before(statement)
            if missing:
                self.run(lambda link: covering.cover(link, missing))

    def require_transaction(self) -> None:
        """Raises RefusedError `journal.autocommit`."""
        if self._driver.autocommits():
            raise RefusedError(
                "journal.autocommit",
                "The connection commits each statement by itself, so an act can't go with its journal.",
                "Use an engine whose isolation_level is not AUTOCOMMIT for what is journaled.",
            )

    def ledger(self, link: Link, book: Rulebook, pool: Pool) -> AppLedger:
        """The journal through this connection, by an app's rules."""
        found = self._ledgers.get(book)
        if found is None:
            place = book.place(pool, shared=self._engine != "sqlite" or _is_file(link))
            dialect: AppDialect
            if self._engine == "sqlite":
                dialect = AppSqlite(place)
            else:
                dialect = AppPostgres(place, book.rules.outside)
            found = self._ledgers[book] = AppLedger(dialect, link, book.rules)
        return found

    def forget_dead(self) -> None:
        """Acts that nobody closed, and whose transaction is over."""
        self.acts = [act for act in self.acts if act.alive]


class Rulebook:
    """An app's rules, and what is known of the databases that they are for."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._places: WeakKeyDictionary[Pool, Place] = WeakKeyDictionary()

    def place(self, pool: Pool, *, shared: bool) -> Place:
        """What is known by all connections of a pool; a database in memory is each connection's own."""
        if not shared:
            return Place()
        found = self._places.get(pool)
        if found is None:
            found = self._places[pool] = Place()
        return found


def of(connection: Connection) -> Station:
    """The station of the physical connection beneath one of SQLAlchemy's."""
    found: Station | None = connection.info.get(KEY)
    if found is None:
        found = connection.info[KEY] = Station(connection)
    found.forget_dead()
    return found


def _is_file(link: Link) -> bool:
    rows = link.execute("SELECT file FROM pragma_database_list WHERE name = 'main'")
    return bool(rows and rows[0][0])

"""One of many processes that write to a database, take back and do again, each for itself.

`python -m tests.rows.proof.crowd` reads what to do from its first argument, and says how it went.
"""

from __future__ import annotations

import json
import sys
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol, TypeVar

import sqlalchemy
from sqlalchemy import text

from takeback.errors import ConflictError, TakebackError
from takeback_acts.rows import SyncJournal, failures
from takeback_acts.rows.entries import Entry
from takeback_acts.rows.journal import Ledger, Taken
from takeback_acts.rows.rules import Rules
from tests.rows.proof.persons import Person

T = TypeVar("T")
DELTAS = {"account": ["balance"]}
RULES = Rules(deltas={"account": frozenset({"balance"})})
_EXPECTED = ("40P01", "23505", "23503")  # a deadlock, and a row that another one made or took away
AT = "2026-11-30T10:00:00.000Z"


class Hands(Protocol):
    """Who writes: each method is one transaction, and true when it came to something."""

    def act(self, *statements: str) -> bool:
        """A journaled act."""

    def take_back(self, chance: Random) -> bool:
        """One or several acts of one's own."""

    def redo(self, chance: Random) -> bool:
        """The last that was taken back."""


class EngineHands:
    """By the engine itself, over a connection of its own."""

    def __init__(self, person: Person, group: str) -> None:
        self.dialect: Any
        self.link: Any
        self.dialect, self.link = opened(person)
        self._group = group
        self._undone: list[str] = []
        self._ledger = self._do(self._install)

    def act(self, *statements: str) -> bool:
        def body(link: Any) -> None:
            for statement in statements:
                link.execute(statement)

        def write() -> bool:
            tool = "transfer" if all("SET balance" in each for each in statements) else "other"
            entry = Entry(str(uuid.uuid4()), AT, self._group, "", tool)
            return bool(self._ledger.write(self.link, entry, body).changes)

        return self._do(write)

    def take_back(self, chance: Random) -> bool:
        def take() -> bool:
            stored = self._ledger.entries(self.link, grp=self._group)
            # Of what rests on nothing else, sums alone, also one from the middle.
            free = [each for each in stored if each.tool == "transfer"]
            found = (
                [chance.choice(free)] if free and chance.random() < 0.5 else stored[: chance.randint(1, 4)]
            )
            return bool(found) and self._taken(found)

        return self._do(take)

    def redo(self, chance: Random) -> bool:
        def take() -> bool:
            found = self._ledger.entries(self.link, ids=self._undone[-1:])
            return bool(found) and found[0].undone_in is None and self._taken(found)

        return self._do(take)

    def all_back(self) -> Taken:
        """Everything that anybody did and that stands, newest first."""

        def take() -> Taken:
            stored = self._ledger.entries(self.link)
            return self._ledger.take_back(self.link, stored, id=str(uuid.uuid4()), at=AT)

        return self._do(take)

    def close(self) -> None:
        """Closes the connection."""
        self.link.close()

    def _taken(self, stored: list[Any]) -> bool:
        undo = str(uuid.uuid4())
        if not self._ledger.take_back(self.link, stored, id=undo, at=AT).clean:
            raise ConflictError("crowd.conflict", "Something stands against it")
        if stored[0].kind == "act":
            self._undone.append(undo)
        return True

    def _install(self) -> Ledger:
        catalog = self.dialect.catalog(self.link)
        self.dialect.install(self.link, catalog)
        return Ledger(self.dialect, catalog, RULES)

    def _do(self, work: Callable[[], T]) -> T:
        with failures.reported("main", self.dialect):
            self.dialect.begin(self.link)
            try:
                made = work()
            except BaseException:
                self.dialect.rollback(self.link)
                raise
            self.dialect.commit(self.link)
            return made


class LibraryHands:
    """By the library, as an app has it around its own SQLAlchemy connection."""

    def __init__(self, person: Person, group: str) -> None:
        self._engine = sqlalchemy.create_engine(person.url)
        self._journal = SyncJournal(deltas=DELTAS)
        self._journal.install(self._engine)
        self._group = group
        self._point = 0
        self._undone: list[str] = []

    def act(self, *statements: str) -> bool:
        self._point += 1
        with (
            self._engine.begin() as db,
            self._journal.act(db, group=self._group, point=self._point) as act,
        ):
            for statement in statements:
                db.execute(text(statement))
        return bool(act.changes)

    def take_back(self, chance: Random) -> bool:
        point = max(1, self._point - chance.randint(0, 3))
        with self._engine.begin() as db:
            undo = self._journal.rewind(db, group=self._group, point=point).undo
        self._undone += [undo] if undo else []
        return bool(undo)

    def redo(self, chance: Random) -> bool:
        if not self._undone:
            return False
        with self._engine.begin() as db:
            return bool(self._journal.redo(db, self._undone.pop(), group=self._group).undo)


def opened(person: Person) -> tuple[Any, Any]:
    """A dialect and a link of the engine's."""
    if person.engine == "sqlite":
        from takeback_acts.rows.sqlite.dialect import SqliteDialect
        from takeback_acts.rows.sqlite.link import open_link

        link = open_link(f"{person.place}/{person.database}.db", timeout=60)
        return SqliteDialect(), link
    from takeback_acts.rows.postgres.dialect import PostgresDialect
    from takeback_acts.rows.postgres.link import open_link as open_postgres

    return PostgresDialect(), open_postgres(person.url)


@dataclass
class Member:
    """One of the crowd. It writes where the others write as well, and rows of its own."""

    hands: Hands
    number: int
    chance: Random
    said: int = 0

    def once(self) -> bool:
        """Whatever comes to mind."""
        kind = self.chance.random()
        if kind < 0.6:
            return self.hands.act(*self._statements())
        return self.hands.take_back(self.chance) if kind < 0.85 else self.hands.redo(self.chance)

    def _statements(self) -> list[str]:
        chance, me = self.chance, self.number
        one, other = chance.sample((1, 2, 3), 2)
        amount, line, memo = chance.randint(1, 9), 1000 * me + chance.randint(1, 6), f"own {me}"
        self.said += 1
        new = f"{me} said {self.said}"  # nobody says it twice, so that what is there tells who wrote it
        transfer = [
            f"UPDATE account SET balance = balance - {amount} WHERE id = {one}",
            f"UPDATE account SET balance = balance + {amount} WHERE id = {other}",
        ]
        return chance.choice(
            (
                transfer,
                transfer,
                [f"UPDATE memo SET body = '{new}' WHERE id = 'm1'"],
                [f"UPDATE account SET owner = '{new}' WHERE id = {one}"],
                [
                    f"DELETE FROM line WHERE number = {line}",
                    f"INSERT INTO line VALUES ({one}, {line}, '{new}')",
                ],
                [
                    f"DELETE FROM memo WHERE id = '{memo}'",
                    f"INSERT INTO memo VALUES ('{memo}', {one}, '{new}')",
                ],
                [f"DELETE FROM line WHERE number >= {line} AND number < {1000 * (me + 1)}", *transfer],
            )
        )


def main() -> None:
    """So many operations; one that another got in the way of is counted, and the next one is tried."""
    told = json.loads(sys.argv[1])
    person, number = Person(**told["person"]), told["number"]
    hands: Hands = (LibraryHands if told["library"] else EngineHands)(person, f"agent {number}")
    member = Member(hands, number, Random(told["seed"]))
    how: Counter[str] = Counter()
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(told["operations"]):
        try:
            how["done" if member.once() else "nothing"] += 1
        except TakebackError as error:
            if not error.retryable and not isinstance(error, ConflictError):
                raise
            how[error.code] += 1
        except sqlalchemy.exc.DBAPIError as error:
            state = getattr(error.orig, "sqlstate", None)
            if state not in _EXPECTED:
                raise
            how[f"sqlalchemy {state}"] += 1
    print(json.dumps(how), flush=True)


if __name__ == "__main__":
    main()

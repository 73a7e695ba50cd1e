"""Core: what both journals do, over SQLAlchemy's synchronous session or connection."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import timedelta
from typing import Any, TypeVar

from sqlalchemy.engine import Connection
from sqlalchemy.orm import Session

from takeback.errors import UsageError
from takeback_acts.rows.dialect import Link
from takeback_acts.rows.library import keeping, opening, options, points
from takeback_acts.rows.library.acts import Act, Label, noted
from takeback_acts.rows.library.failures import missing
from takeback_acts.rows.library.ledger import AppLedger
from takeback_acts.rows.library.plans import Plan, Rewound
from takeback_acts.rows.library.points import Name
from takeback_acts.rows.library.rewinding import Rewinder, Wish
from takeback_acts.rows.library.station import Rulebook

T = TypeVar("T")
Target = Session | Connection


class Core:
    """An app's rules, and all that is done by them."""

    def __init__(
        self,
        groups: Mapping[str, Collection[Collection[str]]] | None,
        deltas: options.Columns | None,
        derived: options.Columns | None,
        ignore: Iterable[str],
        names: Mapping[str, tuple[str, str]] | None,
    ) -> None:
        self.book = Rulebook(options.rules(groups, deltas, derived, ignore))
        self._names = dict(names or {})

    # -- acts ----------------------------------------------------------------------------------------------

    def act(self, group: Name, point: Name, tool: str, note: Mapping[str, Any] | None) -> Act:
        """An act that is still to be opened."""
        label = Label(points.told(group, "group"), points.told(point, "point"), tool, noted(note))
        return Act(label)

    def open(self, target: Target, act: Act) -> None:
        """Opens it. UsageError("journal.used") when it was open before."""
        if act.ended or act.alive:
            raise UsageError("journal.used", "This act was begun already.", "Call `act` for each one.")
        opening.open_act(target, self.book, act)

    # -- taking back ---------------------------------------------------------------------------------------

    def preview(self, target: Target, wish: Wish) -> Plan:
        """What a wish would come to."""
        wish.require_named()

        def previewed(link: Link, ledger: AppLedger) -> Plan:
            begun = ledger.dialect.start(link)
            try:
                return self._rewinder(link, ledger, wish).preview()
            finally:
                if begun:
                    ledger.dialect.quit(link)

        return self._over(target, previewed)

    def rewind(self, target: Target, wish: Wish) -> Rewound:
        """Does it. The objects of the session are expired then."""
        wish.require_named()
        made: list[Rewinder] = []

        def rewound(link: Link, ledger: AppLedger) -> Rewound:
            ledger.dialect.start(link)
            rewinder = self._rewinder(link, ledger, wish)
            done = rewinder.rewind()
            made.append(rewinder)
            return done

        session, connection, at = opening.reached(target)
        opening.require_none_open(at)
        try:
            done = at.run(lambda link: rewound(link, at.ledger(link, self.book, connection.engine.pool)))
        except BaseException:
            at.run(lambda link: made[0].leave() if made else None)
            raise
        if session is not None:
            session.expire_all()
        at.run(lambda link: made[0].keep())
        return done

    def _rewinder(self, link: Link, ledger: AppLedger, wish: Wish) -> Rewinder:
        return Rewinder(link, ledger, self._names, wish)

    # -- what is kept --------------------------------------------------------------------------------------

    def forget(self, target: Target, wish: Wish) -> int:
        """Deletes the entries of a group from a point on."""
        wish.require_named()
        group = points.told(wish.group, "group")

        def forgotten(link: Link, ledger: AppLedger) -> int:
            mark = ledger.dialect.mark
            standing = keeping.standing(link, mark, group)
            return keeping.forget(
                link, mark, group, points.vanishing(standing.first, wish.point, wish.points)
            )

        return self._kept(target, forgotten)

    def move(self, target: Target, from_group: Name, to_group: Name) -> int:
        """Gives the entries of a group to another."""
        old, new = points.told(from_group, "group"), points.told(to_group, "group")
        return self._kept(target, lambda link, ledger: keeping.move(link, ledger.dialect.mark, old, new))

    def expire(self, target: Target, older_than: timedelta) -> int:
        """Deletes entries that are older."""
        return self._kept(target, lambda link, ledger: keeping.expire(link, ledger.dialect.mark, older_than))

    def _kept(self, target: Target, fn: Callable[[Link, AppLedger], int]) -> int:
        def kept(link: Link, ledger: AppLedger) -> int:
            if not ledger.dialect.is_home(link):
                raise missing()
            ledger.dialect.start(link)
            return fn(link, ledger)

        return self._over(target, kept)

    def _over(self, target: Target, fn: Callable[[Link, AppLedger], T]) -> T:
        _, connection, at = opening.reached(target)
        opening.require_none_open(at)
        return at.run(lambda link: fn(link, at.ledger(link, self.book, connection.engine.pool)))

    # -- the journal itself --------------------------------------------------------------------------------

    def install(self, connection: Connection) -> None:
        """Makes the journal's table, and on PostgreSQL its triggers; nothing a second time."""
        self._schema(connection, lambda link, ledger: ledger.dialect.install(link, ledger.catalog))

    def remove(self, connection: Connection) -> None:
        """Takes away all that `install` made."""
        self._schema(connection, lambda link, ledger: ledger.dialect.remove(link))

    def _schema(self, connection: Connection, fn: Callable[[Link, AppLedger], None]) -> None:
        def done(link: Link, ledger: AppLedger) -> None:
            ledger.refresh(link)
            fn(link, ledger)
            ledger.forget()

        _, _, at = opening.reached(connection)
        at.run(lambda link: done(link, at.ledger(link, self.book, connection.engine.pool)))

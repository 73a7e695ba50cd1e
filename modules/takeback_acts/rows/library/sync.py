"""The journal of an app with a synchronous session or connection."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from sqlalchemy.engine import Connection, Engine
from sqlalchemy.orm import Session, scoped_session

from takeback.errors import UsageError
from takeback_acts.rows.library import opening
from takeback_acts.rows.library.acts import Act
from takeback_acts.rows.library.core import Core
from takeback_acts.rows.library.plans import Plan, Rewound
from takeback_acts.rows.library.points import Name
from takeback_acts.rows.library.rewinding import Wish

Reachable = Session | Connection | scoped_session[Any]


class SyncJournal:
    """`Journal` for sqlalchemy.orm.Session and sqlalchemy.Connection: the same names, without `await`."""

    def __init__(
        self,
        *,
        groups: Mapping[str, Collection[Collection[str]]] | None = None,
        deltas: Mapping[str, Collection[str]] | None = None,
        derived: Mapping[str, Collection[str]] | None = None,
        ignore: Iterable[str] = (),
        names: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        self._core = Core(groups, deltas, derived, ignore, names)

    def install(self, target: Engine | Connection) -> None:
        """See `Journal.install`. In a migration of Alembic's: `install(op.get_bind())`."""
        if isinstance(target, Engine):
            with target.begin() as connection:
                self._core.install(connection)
        else:
            self._core.install(_connection(target))

    def remove(self, target: Engine | Connection) -> None:
        """See `Journal.remove`."""
        if isinstance(target, Engine):
            with target.begin() as connection:
                self._core.remove(connection)
        else:
            self._core.remove(_connection(target))

    @contextmanager
    def act(
        self,
        session: Reachable,
        *,
        group: Name,
        point: Name,
        tool: str = "",
        note: Mapping[str, Any] | None = None,
    ) -> Iterator[Act]:
        """See `Journal.act`."""
        act = self._core.act(group, point, tool, note)
        self._core.open(_target(session), act)
        try:
            yield act
        except BaseException as error:
            reason = opening.told(error, act)
            opening.drop_act(act)
            if reason is error:
                raise
            raise reason from error
        opening.close_act(act)

    def preview(
        self,
        session: Reachable,
        *,
        group: Name,
        point: Name,
        points: Sequence[Name] | None = None,
        skip_conflicts: bool = False,
        force: bool = False,
    ) -> Plan:
        """See `Journal.preview`."""
        wish = Wish(group, point, points, skip=skip_conflicts, force=force)
        return self._core.preview(_target(session), wish)

    def rewind(
        self,
        session: Reachable,
        *,
        group: Name,
        point: Name,
        points: Sequence[Name] | None = None,
        digest: str | None = None,
        skip_conflicts: bool = False,
        force: bool = False,
    ) -> Rewound:
        """See `Journal.rewind`."""
        wish = Wish(group, point, points, digest=digest, skip=skip_conflicts, force=force)
        return self._core.rewind(_target(session), wish)

    def redo(
        self, session: Reachable, undo: str, *, group: Name | None = None, force: bool = False
    ) -> Rewound:
        """See `Journal.redo`."""
        return self._core.rewind(_target(session), Wish(group, undo=undo, force=force))

    def forget(
        self, session: Reachable, *, group: Name, point: Name, points: Sequence[Name] | None = None
    ) -> int:
        """See `Journal.forget`."""
        return self._core.forget(_target(session), Wish(group, point, points))

    def move(self, session: Reachable, from_group: Name, to_group: Name) -> int:
        """See `Journal.move`."""
        return self._core.move(_target(session), from_group, to_group)

    def expire(self, session: Reachable, *, older_than: timedelta = timedelta(days=30)) -> int:
        """See `Journal.expire`."""
        return self._core.expire(_target(session), older_than)


def _target(given: object) -> Session | Connection:
    found = given() if isinstance(given, scoped_session) else given
    if isinstance(found, Session | Connection):
        return found
    raise UsageError(
        "journal.session",
        f"SyncJournal works with a Session or a Connection, not with {type(given).__name__}.",
        "Use Journal for AsyncSession and AsyncConnection.",
    )


def _connection(given: object) -> Connection:
    if isinstance(given, Connection):
        return given
    raise UsageError(
        "journal.session",
        f"The journal is installed through an Engine or a Connection, not through {type(given).__name__}.",
        "Use Journal for AsyncEngine and AsyncConnection.",
    )

"""Holds: sessions in which nobody begins to write, while their past is changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from takeback.context import Context
from takeback.errors import ConflictError


class Holds:
    """The writing calls of each session that are under way, and the sessions that are held against new ones.

    A call that began another is under way with it: only what a door lets in is counted.
    """

    def __init__(self) -> None:
        self._writing: dict[str, int] = {}
        self._held: set[str] = set()

    def enter(self, session: str) -> None:
        """Count a writing call in; raises ConflictError `session.held`."""
        if session in self._held:
            raise ConflictError(
                "session.held",
                "What this session did is being taken back, so nothing can be written in it right now",
                "Try again in a moment.",
                retryable=True,
            )
        self._writing[session] = self._writing.get(session, 0) + 1

    def leave(self, session: str) -> None:
        """Count a writing call out."""
        left = self._writing[session] - 1
        if left:
            self._writing[session] = left
        else:
            del self._writing[session]

    def is_writing(self, session: str) -> bool:
        """Whether a writing call of the session is under way."""
        return session in self._writing

    @contextmanager
    def hold(self, ctx: Context, session: str) -> Iterator[None]:
        """Let nobody begin to write in a session until the block ends, but what the block itself does.

        Raises ConflictError `session.busy` while a writing call of the session other than `ctx`'s own is
        under way, and `session.held` when somebody else holds it.
        """
        own = 1 if ctx.session == session and ctx.calls else 0
        if self._writing.get(session, 0) > own:
            raise busy()
        if session in self._held:
            raise ConflictError(
                "session.held", "What this session did is being taken back already", retryable=True
            )
        self._held.add(session)
        try:
            yield
        finally:
            self._held.discard(session)


def busy() -> ConflictError:
    """The refusal to change the past of a session that is in the middle of something."""
    return ConflictError(
        "session.busy",
        "The session is in the middle of a turn, so its past can't be changed",
        "Wait until it is done, or stop the agent; nothing was changed.",
        retryable=True,
    )

"""Holds: sessions in which nobody begins to write, while their past is changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from takeback.context import Context
from takeback.errors import ConflictError


class Holds:
    """The writing calls of each session that are under way, and the sessions that are held against new ones.

    Only what a door lets in is counted: a call that another one made is under way with it.
    """

    def __init__(self) -> None:
        self._writing: dict[str, set[str]] = {}
        self._held: dict[str, str] = {}

    def enter(self, session: str, call: str) -> None:
        """Count a writing call in, by its id; raises ConflictError `session.held`."""
        if session in self._held:
            raise ConflictError(
                "session.held",
                "What this session did is being taken back, so nothing can be written in it right now",
                "Try again in a moment.",
                retryable=True,
            )
        self._writing.setdefault(session, set()).add(call)

    def leave(self, session: str, call: str) -> None:
        """Count a writing call out."""
        calls = self._writing[session]
        calls.discard(call)
        if not calls:
            del self._writing[session]

    def is_writing(self, session: str) -> bool:
        """Whether a writing call of the session is under way."""
        return session in self._writing

    @contextmanager
    def hold(self, ctx: Context, session: str) -> Iterator[None]:
        """Let nobody begin to write in a session until the block ends, but what the block itself does.

        Within a call that holds it already it does nothing. Raises ConflictError `session.busy` while another
        writing call of the session is under way, and `session.held` when another call holds it.
        """
        own = ctx.calls[0] if ctx.calls else ""
        if own and self._held.get(session) == own:
            yield
            return
        if self._writing.get(session, set()) - {own}:
            raise busy()
        if session in self._held:
            raise ConflictError(
                "session.held", "What this session did is being taken back already", retryable=True
            )
        self._held[session] = own
        try:
            yield
        finally:
            del self._held[session]


def busy() -> ConflictError:
    """The refusal to change the past of a session that is in the middle of something."""
    return ConflictError(
        "session.busy",
        "The session is in the middle of a turn, so its past can't be changed",
        "Wait until it is done, or stop the agent; nothing was changed.",
        retryable=True,
    )

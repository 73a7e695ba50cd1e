"""Joints: what several calls change together, and what then comes true as a whole or not at all."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Protocol

import anyio

from takeback import faults
from takeback.errors import TakebackError
from takeback.outline import name_of, outline

_log = logging.getLogger(__name__)


class Participant(Protocol):
    """What an owner of resources keeps open in a joint, such as a transaction of its database.

    It may also have `async def prepare(self) -> None`, which says no by raising. `commit` raises only where
    nothing of it stands; `rollback` is also called after a `commit` that raised, and after a call that was
    cancelled inside of it, and leaves nothing held whatever came before.
    """

    async def commit(self) -> None:
        """Make what was changed true."""

    async def rollback(self) -> None:
        """Leave everything as it was before, and let go of what is held."""


class Joint:
    """What the calls of one plan change together. It ends once, in `commit` or in `rollback`.

    The first call that needs a participant joins it under a key, later ones find it there. Whoever opened the
    joint ends it, also when it was cancelled.
    """

    def __init__(self) -> None:
        self._open: dict[str, Participant] = {}
        self._ended = self._spoilt = False
        # Counts who came to take part, so that it can be told of a call whether it did.
        self.visits = 0

    @property
    def joined(self) -> tuple[str, ...]:
        """The keys of the participants that are neither committed nor rolled back."""
        return tuple(self._open)

    @property
    def ended(self) -> bool:
        """Whether it is too late to take part."""
        return self._ended

    def get(self, key: str) -> Any:
        """The participant under a key, or None; raises TakebackError `joint.ended`."""
        self._require_open()
        self.visits += 1
        return self._open.get(key)

    def join(self, key: str, participant: Participant) -> None:
        """Take a participant in; raises TakebackError `joint.ended`, `joint.twice` for a key that is taken.

        One that was not taken in is its owner's to end.
        """
        self._require_open()
        if key in self._open:
            raise TakebackError("joint.twice", f"{key:.200} takes part in this undo already")
        self._open[key] = participant

    def spoil(self) -> None:
        """Say that a call was cut off in the middle, so that nobody knows what the participants hold."""
        self._spoilt = True

    async def prepare(self) -> None:
        """Have every participant verify that it can commit; raises what the first raises that can't.

        Raises TakebackError `joint.spoilt` where a call was cut off. Nobody joins any more.
        """
        self._ended = True
        if self._spoilt and self._open:
            raise TakebackError(
                "joint.spoilt",
                "A step was cut off in the middle of a transaction, so that was rolled back",
                "Ask for the undo again.",
                retryable=True,
            )
        for participant in tuple(self._open.values()):
            if (prepare := getattr(participant, "prepare", None)) is not None:
                await prepare()
            faults.point("joint.prepared")

    async def commit(self) -> None:
        """Commit the participants in the order in which they joined, to the end also when cancelled.

        Where one raises, those before it stand; it and all after it are rolled back, and it is raised.
        """
        self._ended = True
        await _to_the_end(self._commit())

    async def rollback(self) -> None:
        """Roll back what is not committed, the newest first, to the end also when cancelled.

        Nothing is raised: what a participant raises is logged, and the others are rolled back all the same.
        """
        self._ended = True
        if self._open:
            await _to_the_end(self._rollback())

    async def _commit(self) -> None:
        try:
            for key, participant in tuple(self._open.items()):
                faults.point("joint.committing")
                await participant.commit()
                del self._open[key]
                faults.point("joint.committed")
        finally:
            await self._rollback()

    async def _rollback(self) -> None:
        while self._open:
            _, participant = self._open.popitem()
            try:
                await participant.rollback()
            except Exception as error:  # boundary: the others must let go as well
                _log.error("%s could not be rolled back: %s", name_of(participant), outline(error))
            faults.point("joint.rolled_back")

    def _require_open(self) -> None:
        if self._ended:
            raise TakebackError(
                "joint.ended",
                "The undo that this is a step of has ended",
                "Nothing was changed. Ask for the undo again.",
                retryable=True,
            )


async def _to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Wait until `work` is through however often it is cancelled, and only then let that go on."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    with anyio.CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as error:
                cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled

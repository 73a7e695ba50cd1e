"""The events that tell surfaces what became of an act."""

from __future__ import annotations

from typing import ClassVar

from takeback.events import Event


class UndoRecorded(Event):
    """An act was recorded."""

    kind: ClassVar[str] = "undo.recorded"
    id: str
    actor_kind: str
    tool: str


class UndoDone(Event):
    """An act was undone or redone; its row has the state."""

    kind: ClassVar[str] = "undo.done"
    id: str


class UndoFailed(Event):
    """An inverse failed; its act can be tried again."""

    kind: ClassVar[str] = "undo.failed"
    id: str


class UndoExpired(Event):
    """Rows were removed at the end of their time."""

    kind: ClassVar[str] = "undo.expired"
    removed: int

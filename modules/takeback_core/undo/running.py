"""Which step of which undo is running, so that what its inverse records is filed as its counter."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunningStep:
    """The undo's own row, the row whose inverse is running, and who asked."""

    run: str
    row: str
    actor: str


class Running:
    """The steps in progress, by the id of the call that runs them."""

    def __init__(self) -> None:
        self._steps: dict[str, RunningStep] = {}

    def step(self, calls: Iterable[str]) -> RunningStep | None:
        """The step that one of these calls is running, if any."""
        if not self._steps:
            return None
        return next((self._steps[call] for call in calls if call in self._steps), None)

    def set(self, call: str, step: RunningStep) -> None:
        """Note what a call is running now."""
        self._steps[call] = step

    def clear(self, call: str) -> None:
        """The call runs nothing any more."""
        self._steps.pop(call, None)

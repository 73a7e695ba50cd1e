"""Rewinding: what modules clear when the past of a session is changed, in the transaction that changes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from takeback.module import Module

if TYPE_CHECKING:
    from takeback.lives import Life
    from takeback.transactions import Transaction


@dataclass(frozen=True, slots=True)
class Rewound:
    """A session whose past ends before a turn from now on.

    `turn` is the first one that is not as it was; None when it is the whole session, or when single acts were
    taken back. `run` is the undo that took acts back, None when none did. With `edited` the turns from there
    on have vanished from the conversation, and what is left of them can't be brought back.
    """

    session: str
    turn: str | None
    run: str | None
    edited: bool = False


class Rewinders:
    """Tells every running module that has something to clear."""

    def __init__(self, lives: Mapping[str, Life]) -> None:
        self._lives = lives

    def tell(self, tx: Transaction, rewound: Rewound) -> None:
        """Call `on_rewind` of the modules, by name; what one raises is raised, and the transaction ends."""
        for _, life in sorted(self._lives.items()):
            module = life.module
            if module is not None and type(module).on_rewind is not Module.on_rewind:
                module.on_rewind(tx, rewound)

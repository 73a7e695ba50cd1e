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

    `turn` is the first one that is not as it was, None when it is the whole session; `agent` whose session
    it is, None when everybody's of that name is meant. `run` is the undo that took acts back and `key` the
    one it was asked with, None when nothing was taken back. With a `text` the conversation was edited: the
    message of that turn says this now, and what the vanished `turns` did, it among them, is over for good.
    """

    session: str
    turn: str | None
    agent: str | None = None
    run: str | None = None
    key: str | None = None
    text: str | None = None
    turns: tuple[str, ...] = ()


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

"""Rewinding: what modules clear when the past of a session is changed, in the transaction that changes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from takeback.errors import TakebackError
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
    `asker` is the module that asked for it and knows more of it than the undo, `owner` the one that keeps the
    conversation's messages; without them it does not happen.
    """

    session: str
    turn: str | None
    agent: str | None = None
    run: str | None = None
    key: str | None = None
    text: str | None = None
    turns: tuple[str, ...] = ()
    asker: str | None = None
    owner: str | None = None


class Rewinders:
    """Tells every running module that has something to clear."""

    def __init__(self, lives: Mapping[str, Life]) -> None:
        self._lives = lives

    def tell(self, tx: Transaction, rewound: Rewound) -> None:
        """Have the asker `amend` it, then call `on_rewind` of the modules, by name, once each.

        What one raises is raised, and the transaction ends. Raises TakebackError `session.away` where the
        asker or the owner does not run.
        """
        if rewound.asker is not None:
            rewound = self._required(rewound.asker).amend(tx, rewound)
        if rewound.owner is not None:
            self._required(rewound.owner)
        for _, life in sorted(self._lives.items()):
            module = life.module
            if module is not None and _listens(module):
                module.on_rewind(tx, rewound)

    def _required(self, name: str) -> Module:
        life = self._lives.get(name)
        if life is None or life.module is None or not _listens(life.module):
            raise TakebackError(
                "session.away",
                f"Module {name:.100} keeps a part of this session, and is not there to change it",
                "`takeback modules` lists every module, `takeback modules enable NAME` switches one on.",
                retryable=True,
            )
        return life.module


def _listens(module: Module) -> bool:
    return type(module).on_rewind is not Module.on_rewind

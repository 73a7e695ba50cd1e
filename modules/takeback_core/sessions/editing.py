"""Editing a message: its text alone, or with everything rolled back that was done from it on."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Any

from takeback import Context, Host, faults, moments
from takeback.errors import TakebackError, UsageError
from takeback.holds import busy
from takeback.rewinding import Rewound
from takeback.store import Transaction
from takeback_core.sessions import conversations
from takeback_core.sessions.conversations import Kept
from takeback_core.sessions.happenings import SessionsEdited, SessionsSaid
from takeback_core.sessions.models import Edit, Edited
from takeback_core.sessions.refusals import require_text, unknown_turn

_NOTHING_LEFT = "Nothing that was done from this message on is left to roll back."
_DROPPED = "What was done from this message on stays, and can't be rolled back any more."
_FORGET = "DELETE FROM sessions_edit WHERE id = ?"


class Editor:
    """Edits conversations that somebody keeps."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def edit(self, ctx: Context, kept: Kept, args: Edit) -> Edited:
        """Have a message say something else, drop what came after it, and have it run again.

        All of it in one transaction, with the roll-back where that was asked for. Raises `sessions.text`,
        `sessions.unknown_turn`, `session.busy`, and what `undo.rewind` raises, with everything as before.
        """
        require_text(args.text)
        if args.digest is not None and not args.roll_back:
            raise UsageError("sessions.digest", "A digest is of a roll-back, and none was asked for")
        with self._host.tools.holds.hold(ctx, kept.session):
            turn = await self.first_acting(ctx, kept, args.turn)
            if args.roll_back and turn is not None:
                return await self._roll_back(ctx, kept, args, turn)
            await self._edit_text(kept, args)
        note = _NOTHING_LEFT if args.roll_back else _DROPPED if turn is not None else ""
        return Edited(turn=args.turn, rolled_back=0, undo=None, note=note)

    async def first_acting(self, ctx: Context, kept: Kept, turn: str) -> str | None:
        """The first turn from a message on whose acts can be taken back; None when nothing is left of any."""
        said = await self._host.store.read(lambda db: conversations.messages(db, kept))
        told = await ctx.call("undo.turns", {"session": kept.session, "agent": kept.agent})
        order = [message.turn for message in said] or [one.turn for one in told.turns]
        if turn not in order:
            raise unknown_turn(turn)
        standing = {one.turn for one in told.turns if one.standing}
        return next((name for name in order[order.index(turn) :] if name in standing), None)

    def on_rewind(self, tx: Transaction, rewound: Rewound) -> None:
        """Apply an edit: at once where the text comes with it, else the one that waits for this rewind."""
        if rewound.text is not None:
            self._apply(tx, rewound)
        elif rewound.key is not None and (edit := _waiting(tx, rewound.key)) is not None:
            tx.execute(_FORGET, (rewound.key,))
            faults.point("sessions.applying")
            told = replace(rewound, turn=edit["turn"], agent=edit["agent"], text=edit["text"])
            self._tell(tx, told)

    def _apply(self, tx: Transaction, rewound: Rewound) -> None:
        found = conversations.find(tx, rewound.agent, rewound.session)
        if len(found) != 1 or rewound.turn is None or rewound.text is None:
            return
        kept = found[0]
        if kept.running is not None:
            raise busy()
        if kept.owner == self._host.name:
            if not conversations.truncate(tx, kept, rewound.turn, rewound.text):
                raise unknown_turn(rewound.turn)
            tx.emit(SessionsSaid(agent=kept.agent, session=kept.session, turn=rewound.turn))
        tx.emit(SessionsEdited(agent=kept.agent, session=kept.session, turn=rewound.turn))

    def _tell(self, tx: Transaction, rewound: Rewound) -> None:
        """Tell every module which turns vanish, this one among them, which still has the messages."""
        found = conversations.find(tx, rewound.agent, rewound.session)
        names = [message.turn for message in conversations.messages(tx, found[0])] if found else []
        at = names.index(rewound.turn) if rewound.turn in names else 0
        turns = tuple(names[at:]) or tuple(filter(None, [rewound.turn]))
        self._host.rewound(tx, replace(rewound, turns=turns))

    async def _edit_text(self, kept: Kept, args: Edit) -> None:
        what = Rewound(kept.session, args.turn, kept.agent, text=args.text)
        await self._host.store.transaction(lambda tx: self._tell(tx, what))

    async def _roll_back(self, ctx: Context, kept: Kept, args: Edit, turn: str) -> Edited:
        id = f"edit-{secrets.token_hex(16)}"
        values = (id, kept.agent, kept.session, args.turn, args.text, moments.stamp())
        insert = "INSERT INTO sessions_edit (id, agent, session, turn, text, at) VALUES (?, ?, ?, ?, ?, ?)"
        await self._host.store.transaction(lambda tx: tx.execute(insert, values))
        faults.point("sessions.waiting")
        asked: dict[str, Any] = {"session": kept.session, "turn": turn, "key": id}
        asked |= {"digest": args.digest, "skip_conflicts": args.skip_conflicts} | of(kept)
        try:
            outcome = await ctx.call("undo.rewind", asked)
        except TakebackError:
            await self._host.store.transaction(lambda tx: tx.execute(_FORGET, (id,)))
            raise
        faults.point("sessions.edited")
        if outcome.act is None:  # all of it was left out, as it was asked to
            await self._host.store.transaction(lambda tx: tx.execute(_FORGET, (id,)))
            await self._edit_text(kept, args)
            return Edited(turn=args.turn, rolled_back=0, undo=None, note=_NOTHING_LEFT)
        undone = [result for result in outcome.results if result.state == "undone"]
        return Edited(turn=args.turn, rolled_back=len(undone), undo=outcome.act, note="")


def of(kept: Kept) -> dict[str, str]:
    """The filter for an agent's acts; a module's own have its label alone."""
    return {} if ":" in kept.agent else {"agent": kept.agent}


def _waiting(tx: Transaction, id: str) -> Any:
    return tx.execute("SELECT * FROM sessions_edit WHERE id = ?", (id,)).fetchone()

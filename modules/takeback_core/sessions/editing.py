"""Editing a message: its text alone, or with everything rolled back that was done from it on."""

from __future__ import annotations

import hashlib
import secrets
from contextlib import suppress
from dataclasses import replace
from typing import Any

from anyio.abc import TaskGroup

from takeback import Context, Host, faults
from takeback.callers import Caller
from takeback.errors import TakebackError
from takeback.holds import busy
from takeback.rewinding import Rewound
from takeback.store import Transaction
from takeback.taps import Taps
from takeback_core.sessions import answering, conversations, edits, refusals
from takeback_core.sessions.conversations import Kept
from takeback_core.sessions.edits import EditRow
from takeback_core.sessions.happenings import SessionsEdited, SessionsSaid
from takeback_core.sessions.models import Edit, Edited
from takeback_core.sessions.reaching import reached


class Editor:
    """Edits conversations that somebody keeps, one edit after another."""

    def __init__(self, host: Host, tasks: TaskGroup) -> None:
        self._host = host
        self._store = host.store
        self._taps = Taps[Edited](tasks)
        self._live: str | None = None

    async def edit(self, ctx: Context, kept: Kept, args: Edit) -> Edited:
        """Have a message say something else, drop what came after it, and have it run again.

        All of it in one transaction, with the roll-back where that was asked for. The same edit asked for
        twice at once is made once. Raises `sessions.text`, `sessions.digest`, `sessions.key_reused`,
        `sessions.unknown_turn`, `session.busy`, and what `undo.rewind` raises, with everything as before.
        """
        refusals.require_text(args.text)
        if args.digest is not None and not args.roll_back:
            raise refusals.no_roll_back()
        what = (_who(ctx), ctx.scope, kept.agent, args.model_dump_json())
        return await self._taps.run(what, lambda: self._edit(ctx, kept, args))

    async def settle(self, kept: Kept | None = None) -> None:
        """Have edits that were cut off come to their end, in one conversation or all.

        Raises ConflictError `session.unsettled` while that of one conversation can't.
        """
        found = await self._store.read(lambda db: edits.waiting(db, kept))
        ids = [id for id in found if id != self._live]
        if not ids:
            return
        await self._host.ctx.call("undo.settle_crashed")
        for id in ids:
            if not await self._let_go(id) and kept is not None:
                raise refusals.unsettled()

    def amend(self, tx: Transaction, rewound: Rewound) -> Rewound:
        """The edit that waits for a roll-back goes into it."""
        edit = edits.find(tx, rewound.key or "")
        if edit is None or edit.made:
            return rewound
        edits.end(tx, edit.id)
        faults.point("sessions.applying")
        return self._edited(tx, edit, rewound)

    def on_rewind(self, tx: Transaction, rewound: Rewound) -> None:
        """Have the conversation that was edited end with the new text."""
        found = conversations.find(tx, rewound.agent, rewound.session)
        if rewound.text is None or rewound.turn is None or len(found) != 1:
            return
        [kept] = found
        told = {"agent": kept.agent, "session": kept.session, "turn": rewound.turn}
        if conversations.truncate(tx, kept, rewound.turn, rewound.text):
            tx.emit(SessionsSaid(**told))
        elif kept.owner == self._host.name:
            raise refusals.unknown_turn(rewound.turn)
        tx.emit(SessionsEdited(**told))

    # ------------------------------------------------------------------ one edit

    async def _edit(self, ctx: Context, kept: Kept, args: Edit) -> Edited:
        edit = _row_of(ctx, kept, args)
        await self.settle(kept)
        if (known := await self._known(ctx, edit)) is not None:
            return known
        with self._host.tools.holds.hold(ctx, kept.session):
            if await self._is_running(kept):
                raise busy()
            found = await reached(ctx, self._store, kept, args.turn)
            if args.roll_back and found.acting is not None:
                return await self._roll_back(ctx, edit, args, found.acting)
            return await self._edit_text(edit, answering.note(args.roll_back, standing=found.standing))

    async def _known(self, ctx: Context, edit: EditRow) -> Edited | None:
        """The answer to an edit that was made with the same key, so that a retry makes none twice."""
        if edit.asked is None:
            return None
        before = await self._store.read(lambda db: edits.find(db, edit.id))
        if before is None:
            return None
        if before.asked != edit.asked:
            raise refusals.key_reused()
        return answering.edited(edit.turn, await ctx.call("undo.keyed", {"key": edit.id}), before.note)

    async def _is_running(self, kept: Kept) -> bool:
        [now] = await self._store.read(lambda db: conversations.find(db, kept.agent, kept.session))
        return now.running is not None

    async def _edit_text(self, edit: EditRow, note: str) -> Edited:
        def apply(tx: Transaction) -> None:
            edits.forget(tx, edit.id)
            if edit.asked is not None:
                edits.add(tx, replace(edit, text="", note=note, made=True))
            self._host.rewound(tx, self._edited(tx, edit, Rewound(edit.session, None)))

        await self._store.transaction(apply)
        faults.point("sessions.edited")
        return Edited(turn=edit.turn, note=note)

    async def _roll_back(self, ctx: Context, edit: EditRow, args: Edit, acting: str) -> Edited:
        self._live = edit.id
        await self._store.transaction(lambda tx: edits.add(tx, edit))
        faults.point("sessions.waiting")
        asked: dict[str, Any] = {"session": edit.session, "agent": edit.agent, "turn": acting, "key": edit.id}
        asked |= {"digest": args.digest, "skip_conflicts": args.skip_conflicts}
        try:
            outcome = await ctx.call("undo.rewind", asked)
            faults.point("sessions.rewound")
        except TakebackError:
            with suppress(TakebackError):  # then it waits, and is settled before the next
                await self._let_go(edit.id)
            raise
        finally:
            self._live = None
        left = answering.left_out(outcome.plan, outcome.results)
        if outcome.act is not None:
            return answering.edited(edit.turn, outcome, "")
        told = await self._edit_text(edit, answering.ALL_LEFT if left else answering.NOTHING_LEFT)
        return told.model_copy(update={"left": left})

    async def _let_go(self, id: str) -> bool:
        """Forget an edit that will not be made; false while its roll-back is still open."""
        told = await self._host.ctx.call("undo.keyed", {"key": id})
        if told.open:
            return False
        await self._store.transaction(lambda tx: edits.forget(tx, id))
        return True

    def _edited(self, tx: Transaction, edit: EditRow, rewound: Rewound) -> Rewound:
        """What every module is told: which turns vanish, the edited one among them, and who keeps them."""
        found = conversations.find(tx, edit.agent, edit.session)
        names = conversations.turns(tx, found[0]) if found else []
        turns = tuple(names[names.index(edit.turn) :]) if edit.turn in names else (edit.turn,)
        owner = found[0].owner if found else None
        return replace(rewound, turn=edit.turn, agent=edit.agent, text=edit.text, turns=turns, owner=owner)


def _row_of(ctx: Context, kept: Kept, args: Edit) -> EditRow:
    id, asked = f"edit-{secrets.token_hex(16)}", None
    if args.key is not None:
        id = f"edit-{_digest(_who(ctx), kept.agent, kept.session, args.key)[:32]}"
        asked = _digest(args.model_dump_json())
    return EditRow(id, kept.agent, kept.session, args.turn, args.text, asked, "", made=False)


def _who(ctx: Context) -> str:
    """Who asks: the person is one on all devices."""
    origin = Caller.parse(ctx.origin)
    return origin.kind if origin.kind == "person" else ctx.origin


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()

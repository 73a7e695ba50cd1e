"""Taking: what becomes of an event. Nothing that goes wrong here may reach the agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import anyio

from takeback.errors import TakebackError
from takeback.module import Host
from takeback_doors.hooks.calls import Call, Calls
from takeback_doors.hooks.capture import Capture, Images
from takeback_doors.hooks.events import Event
from takeback_doors.hooks.lost import Lost
from takeback_doors.hooks.processes import Process
from takeback_doors.hooks.sessions import Session, Sessions

_TOO_LATE = "the daemon had it only when the agent had gone on already"


class Spooled:
    """What a gate kept of a moment that is over: when it was, and what lay at the paths."""

    def __init__(self, at: int, images: Images) -> None:
        self.at = at
        self.images = images


class Taker:
    """Sees to one event after another, those of different calls at the same time."""

    def __init__(self, host: Host, sessions: Sessions, calls: Calls, lost: Lost, capture: Capture) -> None:
        self._host = host
        self._sessions = sessions
        self._calls = calls
        self._lost = lost
        self._capture = capture
        self._windows = anyio.Lock()

    async def take(
        self, event: Event, process: Process | None, spooled: Spooled | None = None
    ) -> Call | None:
        """Sees to an event; answers the call that it began, if any."""
        session = self._sessions.meet(event, process)
        if await self._capture.settle_in(session, event.folder):
            self._sessions.save(session)
        if event.kind == "before":
            return await self._begin(session, event, spooled)
        if event.kind == "after":
            await self._end(session, event, spooled)
        elif event.kind in ("prompt", "stop", "end"):
            await self._settle(session, event)
            await self._capture.note(session, event)
        return None

    async def came_too_late(self, call: Call) -> None:
        """Gives up a call whose beginning was captured when its tool may have run already."""
        session = self._sessions.get(call.agent, call.session)
        if session is not None and self._calls.end(call):
            await self._close(session, call, interrupted=True)
            self._lost.note(call.agent, call.session, call.tool, _TOO_LATE)

    async def settle_dead(self) -> None:
        """Ends what agents have left open whose process is gone."""
        for call in sorted(self._calls, key=lambda call: call.work == "command"):
            session = self._sessions.get(call.agent, call.session)
            if session is None or session.process is None or not session.process.lives():
                await self._give_up(session or Session(call.agent, call.session), call)

    async def _begin(self, session: Session, event: Event, spooled: Spooled | None) -> Call | None:
        if event.work == "none":
            return None
        call = self._calls.begin(session, event)
        if call is None:
            if self._calls.has_ended(session, event):
                self._lost.note(*session.key, _what(event), "the agent told its beginning after its end")
            return None
        try:
            await self._open(session, call, event, spooled)
        except TakebackError as error:
            call.handle, call.why = "", error.message
        finally:
            call.ready.set()
        if call.why:
            self._lost.note(*session.key, _what(event), call.why)
        return call

    async def _open(self, session: Session, call: Call, event: Event, spooled: Spooled | None) -> None:
        if event.work == "edit":
            call.handle = call.id
            self._calls.save(call, ride=True)
            given: dict[str, Any] = {} if spooled is None else {"images": spooled.images, "at": spooled.at}
            call.why = "; ".join(await self._capture.begin_edit(session, call, event, **given))
        elif spooled is not None:
            call.why = "no daemon ran when the command began"
        else:
            await self._join(session, call, event)
            self._calls.save(call)

    async def _join(self, session: Session, call: Call, event: Event) -> None:
        """Commands of one session that overlap share a window: nobody could tell what each of them did."""
        async with self._windows:
            open_ = (other for other in self._calls.of(session) if other.work == "command" and other.handle)
            other = next(open_, None)
            if other is not None:
                call.handle = other.handle
            else:
                call.why = await self._capture.begin_command(session, call, event)

    async def _end(self, session: Session, event: Event, spooled: Spooled | None) -> None:
        call = self._calls.ending(session, event)
        if call is None:
            if event.work != "none" and not self._calls.has_ended(session, event):
                self._calls.never_begun(session, event)
                self._lost.note(*session.key, _what(event), "nobody told its beginning")
            return
        if event.stays and call.work == "command":
            # It is at work until the agent itself is done.
            return
        await call.ready.wait()
        if self._calls.end(call):
            images = None if spooled is None else spooled.images
            await self._close(session, call, images=images, found=event.found)

    async def _settle(self, session: Session, event: Event) -> None:
        """Ends what the agent has left open, when it says that it is done or begins something else."""
        # Edits first, so that no command's window takes what they changed for its own.
        for call in sorted(self._calls.of(session), key=lambda call: call.work == "command"):
            if event.kind == "end" or call.part == event.part:
                await self._give_up(session, call)

    async def _give_up(self, session: Session, call: Call) -> None:
        await call.ready.wait()
        if self._calls.end(call):
            await self._close(session, call, interrupted=True)

    async def _close(
        self,
        session: Session,
        call: Call,
        *,
        interrupted: bool = False,
        images: Images | None = None,
        found: Mapping[str, str] | None = None,
    ) -> None:
        what = call.tool or call.work
        try:
            if not call.handle:
                if call.why and not interrupted:
                    await self._capture.record_loss(session, what, call.why)
            elif call.work == "edit":
                notes = await self._capture.end_edit(
                    session, call, interrupted=interrupted, images=images, found=found
                )
                self._note_all(call, what, notes)
            elif not any(other.handle == call.handle for other in self._calls.of(session)):
                await self._capture.end_command(session, call.handle)
        except TakebackError as error:
            self._lost.note(call.agent, call.session, what, error.message)
            self._host.log.warning("what %s of %s did was not recorded: %s", what, call.agent, error.code)

    def _note_all(self, call: Call, what: str, notes: Sequence[str]) -> None:
        for note in notes:
            self._lost.note(call.agent, call.session, what, note)


def _what(event: Event) -> str:
    named = event.paths[0] if event.paths else event.command
    return f"{event.tool or event.name} {named}".strip()

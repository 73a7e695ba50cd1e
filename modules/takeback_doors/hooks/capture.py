"""Capture: what files is asked to do before and after a call of an agent's tool."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from anyio import to_thread

from takeback.context import Context, Scope
from takeback.errors import TakebackError
from takeback.module import Host
from takeback_doors.hooks import places
from takeback_doors.hooks.calls import Call
from takeback_doors.hooks.events import Event
from takeback_doors.hooks.sessions import Session

Images = Sequence[dict[str, Any]]


class Capture:
    """Calls files on behalf of a session's agent, within the folders that are captured for it."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def settle_in(self, session: Session, folder: str) -> bool:
        """Captures the folder that the session is in, and on the first time those granted to its agent."""
        if not folder or places.within(folder, session.roots):
            return False
        root = await to_thread.run_sync(places.root_of, folder)
        known = session.roots
        granted = [] if known else await self._granted(session.agent)
        session.add_roots([*([root] if root else []), *granted])
        return session.roots != known

    async def begin_edit(
        self, session: Session, call: Call, event: Event, images: Images | None = None, at: int | None = None
    ) -> list[str]:
        """Keeps what lies at the paths that a tool names; answers what could not be kept, and why.

        The call has a handle where anything was. Raises what keeping raises.
        """
        folder = event.folder or session.folder
        # A few looks at a disk that the agent is at work on; a thread would take longer to be woken.
        paths = places.real_paths(event.paths, folder)
        asked: dict[str, Any] = {"id": call.id, "paths": paths, "tool": event.tool or "edit"}
        if images is not None:
            asked |= {"images": _within(images, paths), "at": at}
        begun = await self._passing_on(session).call("files.begin_edit", asked)
        call.handle = call.id if begun.paths else ""
        return list(begun.notes)

    async def end_edit(
        self,
        session: Session,
        call: Call,
        *,
        interrupted: bool,
        images: Images | None = None,
        found: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Records what a tool changed at the paths; answers what could not be told."""
        asked: dict[str, Any] = {"id": call.handle, "interrupted": interrupted}
        if images is not None:
            asked["images"] = list(images)
        if found:
            asked["found"] = {places.real_paths([path], "/")[-1]: text for path, text in found.items()}
        ended = await self._passing_on(session).call("files.end_edit", asked)
        return list(ended.notes)

    async def begin_command(self, session: Session, call: Call, event: Event) -> str:
        """Opens a window on what a command may change; answers why not where that can't be."""
        folder = await to_thread.run_sync(os.path.realpath, event.folder or session.folder or "/")
        root = await to_thread.run_sync(places.root_of, folder)
        if not root or places.is_wide(root):
            return f"all of {root or folder} would have to be looked through"
        begun = await self._as_agent(session).call(
            "files.begin_command",
            cwd=folder,
            roots=[root],
            command=_words(event),
            process=session.process.pid if session.process and session.process.lives() else None,
        )
        call.handle = begun.window
        return ""

    async def end_command(self, session: Session, handle: str) -> None:
        """Closes a window, and records what changed in it."""
        await self._as_agent(session).call("files.end_command", window=handle)

    async def record_loss(self, session: Session, what: str, why: str) -> None:
        """Puts into the log that something can't be taken back, since it was not captured."""
        await self._passing_on(session).call(
            "undo.record",
            tool="hook.event",
            input={"tool": what[:200]},
            summary=f"{what:.400}: not captured",
            final_reason=f"not captured: {why}"[:200],
        )

    async def note(self, session: Session, event: Event) -> None:
        """Have it noted how a prompt begins, where anybody does; nothing that was done depends on it."""
        if event.said and session.turn:
            asked = {"session": session.id, "turn": session.turn, "text": event.said}
            with suppress(TakebackError):
                await self._passing_on(session).call("sessions.noted", asked)

    async def _granted(self, agent: str) -> list[str]:
        try:
            listed = await self._host.ctx.call("agents.list")
        except TakebackError:
            return []
        return [
            root for one in listed.agents if one.name == agent and one.revoked is None for root in one.roots
        ]

    def _as_agent(self, session: Session) -> Context:
        scope = Scope(roots=session.roots)
        return self._host.doorway().agent(session.agent, session=session.id, turn=session.turn, scope=scope)

    def _passing_on(self, session: Session) -> Context:
        """The door's own call on the agent's behalf, for tools that no agent may call."""
        ctx = self._as_agent(session)
        return ctx._replace(chain=(ctx.holder,), holder=self._host.ctx.holder)


def _within(images: Images, paths: Sequence[str]) -> list[dict[str, Any]]:
    return [image for image in images if image.get("path") in paths]


def _words(event: Event) -> list[str]:
    """The command as the log shows it."""
    text = event.command
    if not text:
        return [event.tool or "tool"]
    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    return words if words and shlex.join(words) == text else [text]

"""Listening: the gates' socket. Each connection brings one event, and is answered when that is seen to."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import anyio
from anyio import BrokenResourceError, ClosedResourceError, EndOfStream
from anyio.abc import SocketAttribute, SocketListener, SocketStream

from takeback.errors import TakebackError
from takeback.outline import outline
from takeback.peer import peer_pid, peer_uid
from takeback_doors.hooks.dialects import DIALECTS

_LARGEST = (32 << 20) + 4096
_LONGEST_NAME = 64
_PORTION = 1 << 18

# What becomes of an event: its agent's name, what it told, the gate's process. Answers whether in time.
Take = Callable[[str, dict[str, Any], int], Awaitable[Callable[[], Awaitable[None]] | None]]
Complain = Callable[[str, str], None]


class UnreadableError(Exception):
    """What a gate brought is no event; the words say why."""


class GateSocket:
    """Listens at a path, 0600, for this user's processes alone."""

    def __init__(self, path: str, take: Take, complain: Complain) -> None:
        self._path = path
        self._take = take
        self._complain = complain

    async def open(self) -> SocketListener:
        """Begin to listen; raises TakebackError `hook.socket`."""
        try:
            return await anyio.create_unix_listener(self._path, mode=0o600)
        except OSError as error:
            raise TakebackError(
                "hook.socket",
                f"The gates' socket {self._path} can't be opened: {error.strerror}",
                "Remove what is there, or set TAKEBACK_HOME to another folder.",
            ) from None

    def forget_name(self) -> None:
        """Remove the name, so that no gate finds it any more."""
        with suppress(FileNotFoundError):
            os.unlink(self._path)

    async def serve(self, listener: SocketListener) -> None:
        """Answer gates until the listener is closed; those that have come are still answered."""
        async with anyio.create_task_group() as gates:
            try:
                await listener.serve(self._meet, gates)
            except ClosedResourceError:
                return

    async def _meet(self, stream: SocketStream) -> None:
        async with stream:
            try:
                link = stream.extra(SocketAttribute.raw_socket)
                if peer_uid(link) == os.geteuid():
                    await self._answer(stream, peer_pid(link))
            except (BrokenResourceError, ClosedResourceError, OSError):
                return
            except Exception as error:
                # One gate's trouble must not end the others' connections.
                self._complain("", f"an event failed: {outline(error)}")

    async def _answer(self, stream: SocketStream, gate: int) -> None:
        agent = ""
        too_late = None
        try:
            agent, told = _parsed(await _read(stream))
            too_late = await self._take(agent, told, gate)
        except UnreadableError as error:
            self._complain(agent, str(error))
        try:
            await stream.send(b".")
        except (BrokenResourceError, ClosedResourceError):
            if too_late is not None:
                await too_late()


async def _read(stream: SocketStream) -> bytes:
    parts, size = [], 0
    try:
        while True:
            parts.append(await stream.receive(_PORTION))
            size += len(parts[-1])
            if size > _LARGEST:
                raise UnreadableError("an event was larger than can be read")
    except EndOfStream:
        return b"".join(parts)


def _parsed(data: bytes) -> tuple[str, dict[str, Any]]:
    name, _, event = data.partition(b"\n")
    agent = name[:_LONGEST_NAME].decode(errors="replace")
    if agent not in DIALECTS:
        raise UnreadableError(f"there is no agent {agent!r} whose events are known")
    return agent, parsed(event)


def parsed(event: bytes | str) -> dict[str, Any]:
    """The object that an event is; raises UnreadableError."""
    if not event:
        raise UnreadableError("an event was empty, or larger than a gate hands on")
    try:
        told = json.loads(event)
    except (ValueError, RecursionError):
        raise UnreadableError("an event was no JSON") from None
    if not isinstance(told, dict):
        raise UnreadableError("an event was JSON but no object")
    return told

"""The door of the command line: a socket in a private folder, and a check of who connects."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import ClassVar

import anyio
from anyio.abc import SocketAttribute, SocketListener, SocketStream, TaskGroup

from takeback.errors import RefusedError, TakebackError
from takeback.module import Check, Host, Module
from takeback.outline import outline
from takeback.peer import peer_pid, peer_uid
from takeback_doors.cli.ground import Ground
from takeback_doors.cli.lines import Lines
from takeback_doors.cli.session import Session
from takeback_doors.cli.settings import CliSettings
from takeback_doors.cli.visitor import visitor_of
from takeback_doors.cli.wire import encode


class CliModule(Module):
    """Listens on `home.socket`; every caller is the person, under the label `cli:person`, but for processes
    that a known agent has started: they are that agent.

    A daemon waits for `homeless`, which is set when its home was deleted or replaced. A program that holds a
    kernel for purposes of its own leaves it None, and is not ended by this door.
    """

    Settings = CliSettings
    homeless: ClassVar[anyio.Event | None] = None

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._sessions: set[Session] = set()
        self._all_gone = anyio.Event()

    @asynccontextmanager
    async def life(self, tasks: TaskGroup) -> AsyncIterator[None]:
        """Listen from start to stop; at the end, requests that are running are still answered."""
        listener = await self._listen()
        home = self.host.home
        self._ground = Ground((home.lock, home.database, home.socket))
        tasks.start_soon(self._accept, listener)
        tasks.start_soon(self._watch)
        try:
            yield
        finally:
            # The name goes first: a client that finds none knows at once that it has to start a daemon.
            if self._ground.holds(home.socket):
                home.socket.unlink(missing_ok=True)
            await listener.aclose()
        await self._drain()

    async def checks(self) -> list[Check]:
        """That the socket is there, and for the person alone."""
        path = self.host.home.socket
        mode = path.stat().st_mode & 0o777 if path.exists() else 0
        well = mode == 0o600
        detail = f"{path} answers, mode {mode:o}" if well else f"{path} has mode {mode:o} instead of 600"
        return [Check("socket", well, detail, "" if well else "Run `takeback stop`, then any command.")]

    async def _listen(self) -> SocketListener:
        # One that a killed daemon left is replaced: whoever holds the home's lock owns the name.
        # It is 0600 only after it is bound; until then the folder, 0700, keeps everybody else out.
        path = self.host.home.socket
        try:
            return await anyio.create_unix_listener(path, mode=0o600)
        except OSError as error:
            raise TakebackError(
                "socket.unusable",
                f"The daemon can't listen on {path}: {error.strerror}",
                "Remove what is there, or set TAKEBACK_HOME to another folder.",
            ) from None

    async def _watch(self) -> None:
        while True:
            await anyio.sleep(self.host.settings.watch_seconds)
            if self._is_homeless():
                return

    def _is_homeless(self) -> bool:
        lost = self._ground.lost()
        if lost is None:
            return False
        if self.homeless is not None and not self.homeless.is_set():
            self.host.log.error("%s was deleted or replaced, so this daemon ends", lost)
            self.homeless.set()
        return True

    async def _accept(self, listener: SocketListener) -> None:
        async with anyio.create_task_group() as clients:
            try:
                await listener.serve(self._meet, clients)
            except anyio.ClosedResourceError:
                return

    async def _meet(self, stream: SocketStream) -> None:
        lines = Lines(stream)
        async with stream:
            if stranger := _stranger(stream):
                self.host.log.warning("refused a connection of another user")
                await lines.send(encode({"ok": False, "error": stranger.as_dict()}))
                return
            if self._is_homeless():
                await lines.send(encode({"ok": False, "error": _homeless().as_dict()}))
                return
            await self._answer(lines, peer_pid(stream.extra(SocketAttribute.raw_socket)))

    async def _answer(self, lines: Lines, pid: int) -> None:
        session = Session(self.host, lines, await visitor_of(self.host, pid))
        self._sessions.add(session)
        try:
            await session.run()
        except Exception as error:
            # One client's trouble must not end the others' connections.
            self.host.log.error("a connection failed: %s", outline(error))
        finally:
            self._leave(session)

    def _leave(self, session: Session) -> None:
        self._sessions.discard(session)
        if not self._sessions:
            self._all_gone.set()

    async def _drain(self) -> None:
        for session in self._sessions:
            session.close()
        if self._sessions:
            self._all_gone = anyio.Event()
            await self._all_gone.wait()


def _homeless() -> TakebackError:
    return TakebackError(
        "daemon.homeless",
        "The home that this daemon serves was deleted or replaced, so it ends",
        "Try again; that starts a daemon on what is there now.",
        retryable=True,
    )


def _stranger(stream: SocketStream) -> RefusedError | None:
    if peer_uid(stream.extra(SocketAttribute.raw_socket)) == os.geteuid():
        return None
    return RefusedError(
        "peer.refused",
        "This daemon answers only the user it runs as",
        "Run takeback as that user, or with a home of your own.",
    )

"""One connection of the person's: requests are run in order, as the person at this machine."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import anyio
from anyio.abc import TaskGroup
from pydantic import BaseModel

from takeback import outbox
from takeback.errors import RefusedError, TakebackError
from takeback.events import StoredEvent
from takeback.module import Host
from takeback_doors.cli.lines import Lines
from takeback_doors.cli.visitor import PERSON, Visitor
from takeback_doors.cli.wire import decode_request, encode


class Session:
    """Answers one client until it hangs up or the door closes."""

    def __init__(self, host: Host, lines: Lines, visitor: Visitor = PERSON) -> None:
        self._host = host
        self._lines = lines
        self._visitor = visitor
        self._idle = anyio.CancelScope()
        self._closing = False

    def close(self) -> None:
        """Take no further request; one that is running is still answered."""
        self._closing = True
        self._idle.cancel()

    async def run(self) -> None:
        """Answer requests, one at a time, in the order they came; hang up at the end."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._lines.pump)
            try:
                await self._answer_all()
            finally:
                await self._lines.close()

    async def _answer_all(self) -> None:
        while not self._closing:
            try:
                line = await self._next()
            except TakebackError as error:
                await self._lines.send(_failure(error))
                return
            if line is None or not await self._serve(line):
                return

    async def _next(self) -> bytes | None:
        with anyio.CancelScope() as self._idle:
            return await self._lines.next()
        return None

    async def _serve(self, line: bytes) -> bool:
        try:
            request = decode_request(line)
            if "follow" in request:
                self._visitor.require_person()
                await self._follow(request["follow"])
                return False
            answer = await self._call(request)
        except TakebackError as error:
            answer = _failure(error)
        return answer is not None and await self._lines.send(answer)

    async def _call(self, request: dict[str, Any]) -> bytes | None:
        spec = self._host.tools.get(request["tool"])
        if spec is None or spec.effect == "write":
            # A write runs to its end: a person who closes the terminal must not leave half an undo.
            return await self._run(request)
        return await self._run_while_wanted(request)

    async def _run(self, request: dict[str, Any]) -> bytes:
        ctx = self._visitor.context(self._host, request)
        try:
            self._keep_door(request)
            await self._visitor.narrow(self._host, ctx, request)
            result: BaseModel = await self._host.doorway().call(ctx, request["tool"], request["args"])
        except TakebackError as error:
            return _failure(error)
        return b'{"ok":true,"result":' + result.model_dump_json(ensure_ascii=True).encode("ascii") + b"}\n"

    def _keep_door(self, request: dict[str, Any]) -> None:
        if request["tool"] == "kernel.disable" and request["args"].get("name") == self._host.name:
            raise RefusedError(
                "module.own_door",
                "That is the door this command came in by; it could not be switched on again from here",
                "`takeback stop` ends the whole daemon.",
            )

    async def _run_while_wanted(self, request: dict[str, Any]) -> bytes | None:
        answer: bytes | None = None

        async def hang_up(tasks: TaskGroup) -> None:
            await self._lines.gone()
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(hang_up, tasks)
            answer = await self._run(request)
            tasks.cancel_scope.cancel()
        return answer

    async def _follow(self, after: int | None) -> None:
        """Send events until the client hangs up or the door closes."""
        async with anyio.create_task_group() as tasks:
            self._idle = tasks.cancel_scope
            tasks.start_soon(self._send_events, after, tasks)
            await self._lines.gone()
            tasks.cancel_scope.cancel()

    async def _send_events(self, after: int | None, tasks: TaskGroup) -> None:
        try:
            seq = await self._host.store.read(outbox.last) if after is None else after
            # The number goes first, so that the client can read what was before without missing a thing.
            there = await self._lines.send(encode({"ok": True, "following": seq}))
            async with aclosing(self._host.events.follow(seq)) as news:
                async for event in news:
                    there = there and await self._lines.send(encode(_event(event)))
                    if not there:
                        break
        except TakebackError as error:
            await self._lines.send(_failure(error))
        tasks.cancel_scope.cancel()


def _event(event: StoredEvent) -> dict[str, Any]:
    return {"ok": True, "event": {"seq": event.seq, "at": event.at, "kind": event.kind, "data": event.data}}


def _failure(error: TakebackError) -> bytes:
    return encode({"ok": False, "error": error.as_dict()})

"""A process that has imported everything and forks a child for each kill, so that a kill costs no start-up.

It reads one request a line and answers with how the child ended: `python -m tests.sessions.crash_nursery`.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from takeback import Manifest, Module, faults
from takeback.errors import TakebackError
from takeback.rewinding import Rewound
from takeback.store import Transaction
from takeback_core.sessions.module import SessionsModule
from tests.sessions.talk import SESSION, Talk
from tests.undo.crash_cabinet import Cabinet
from tests.undo.crash_nursery import Passed
from tests.undo.house import House, house
from tests.undo.ledger import Book, ledger_module

_LOG = "SELECT summary, state, reason FROM undo_acted WHERE role = 'act' ORDER BY seq"
_UNDOS = "SELECT summary, state FROM undo_acted WHERE role = 'undo' AND state <> 'abandoned' ORDER BY seq"
_TABLES = {
    "messages": "SELECT turn, text, state FROM sessions_message ORDER BY place",
    "conversations": "SELECT session, running FROM sessions_conversation",
    "waiting": "SELECT turn, text FROM sessions_edit WHERE NOT made",
    "drafts": "SELECT session FROM drafts_draft",
}


class DraftsModule(Module):
    """Keeps a draft for a session, as an agent that is halfway through something does."""

    manifest: ClassVar[Manifest] = Manifest(1, "drafts", "Drafts.")
    migrations = ("CREATE TABLE drafts_draft (session TEXT PRIMARY KEY);",)

    def on_rewind(self, tx: Transaction, rewound: Rewound) -> None:
        tx.execute("DELETE FROM drafts_draft WHERE session = ?", (rewound.session,))


@dataclass(frozen=True)
class Scenario:
    """An edit; `hand` is written behind the log's back before it, and `failures` are the notebook's in it."""

    edit: dict[str, Any]
    hand: dict[str, str] = field(default_factory=dict)
    failures: tuple[str, ...] = ()


SCENARIOS = {
    "rolled back": Scenario({"roll_back": True}),
    "rolled back with a key": Scenario({"roll_back": True, "key": "k1"}),
    "the text alone": Scenario({}),
    "the text alone with a key": Scenario({"key": "k1"}),
    "conflicts left out": Scenario({"roll_back": True, "skip_conflicts": True}, hand={"job": "mine"}),
    "an inverse that fails": Scenario({"roll_back": True}, failures=("", "late")),
}


class Job:
    """What one child does in a home, and what it says of it; `told` is a file that outlives it."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.scenario = SCENARIOS[request["scenario"]]
        self.place = Path(request["place"])
        self.told = Path(request["told"])
        self.passed = Passed(tuple(request["kill"]) if request.get("kill") else None)

    @asynccontextmanager
    async def open(self, *modules: type[Module]) -> AsyncIterator[House]:
        self.cabinet = Cabinet(folder=self.place / "cabinet")
        book = Book(self.place / "book.db")
        book.open()
        try:
            async with house(
                self.place / "home", ledger_module(book), DraftsModule, *modules, notebook=self.cabinet
            ) as opened:
                self.book = book
                yield opened
        finally:
            book.close()

    def tell(self, **facts: Any) -> None:
        with self.told.open("a") as file:
            file.write(json.dumps(facts) + "\n")

    async def prepare(self) -> None:
        """Have a conversation of three messages that act on notes and on the ledger."""
        async with self.open(SessionsModule) as opened:
            talk = Talk(opened)
            await talk.begin("A talk")
            await talk.say("m41", "add my job", job="Developer", town="Bern")
            await talk.app("m41").ledger.enter(values={"pay": "1", "days": "5"})
            await talk.say("m42", "make it senior", job="Senior Developer")
            await talk.app("m42").ledger.enter(values={"pay": "2"})
            await talk.say("m43", "drop it", job=None, pet="cat")
            await talk.app("m43").ledger.enter(values={"days": None})
            await opened.change("INSERT INTO drafts_draft VALUES (?)", SESSION)
        for key, value in self.scenario.hand.items():
            (self.place / "cabinet" / "notes" / key).write_text(value)

    async def act(self) -> None:
        """Edit, and say before and after it what the world is like."""
        async with self.open(SessionsModule) as opened:
            await opened.rows()  # lets what begins at the start come to its end
            self.tell(world=await self._world(opened))
            self.cabinet.failures = list(self.scenario.failures)
            faults.install(self.passed)
            await self._edit(opened)
            points = list(self.passed.points)
            self.tell(world=await self._world(opened), points=points)

    async def without(self) -> None:
        """Open what a kill left while sessions is switched off."""
        async with self.open() as opened:
            await opened.rows()

    async def settle(self) -> None:
        """Open what a kill left, say what it is like, then edit again as the person would."""
        faults.install(self.passed)
        async with self.open(SessionsModule) as opened:
            self.tell(world=await self._world(opened), points=list(self.passed.points))
            await self._edit(opened)
            self.tell(world=await self._world(opened))

    async def _edit(self, opened: House) -> None:
        try:
            await Talk(opened).edit("m42", "make it junior", **self.scenario.edit)
        except TakebackError as error:
            if error.code != "undo.failed":
                raise

    async def _world(self, opened: House) -> dict[str, Any]:
        tables = {name: await _values(opened, sql) for name, sql in _TABLES.items()}
        assert self.cabinet.read() == self.cabinet.values
        log = [
            [what, state.replace("failed", "done"), why] for what, state, why in await _values(opened, _LOG)
        ]
        stored = {"notes": self.cabinet.read(), "ledger": self.book.read(), "log": log}
        return {**stored, "undos": await _values(opened, _UNDOS), **tables}


async def _values(opened: House, sql: str) -> list[list[Any]]:
    return [list(row.values()) for row in await opened.rows(sql)]


def _child(request: dict[str, Any]) -> None:
    """Do the job and leave, without running anything of the parent's on the way out."""
    try:
        job = Job(request)
        jobs: dict[str, Callable[[], Awaitable[None]]] = {
            "prepare": job.prepare,
            "act": job.act,
            "without": job.without,
            "settle": job.settle,
        }
        asyncio.run(jobs[request["job"]]())  # type: ignore[arg-type]
    except BaseException:
        with Path(request["told"]).open("a") as file:
            file.write(json.dumps({"crash": traceback.format_exc()}) + "\n")
        os._exit(1)
    os._exit(0)


def main() -> None:
    """Fork for each request, wait, and answer with the signal or the status of its end."""
    gc.freeze()  # else a collection in a child would copy all that it shares
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _child(json.loads(line))
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

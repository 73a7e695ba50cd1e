"""A house with undo and notes in it, and the ways in that tests use."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from takeback import Context, Kernel, Module, Scope
from takeback.callers import Caller
from takeback.sources import Source
from takeback.store import Transaction
from takeback_core.undo.module import UndoModule
from tests.undo.model import EVERYTHING, Notebook, notes_module


class House:
    """A running kernel with undo and notes."""

    def __init__(self, kernel: Kernel, notebook: Notebook) -> None:
        self.kernel = kernel
        self.notebook = notebook

    @property
    def values(self) -> dict[str, str]:
        """The notes as they are; changing them here is an edit by a stranger's hand."""
        return self.notebook.values

    def person(self, device: str | None = None, *, door: str = "cli", present: bool = False) -> Context:
        """The person at a door."""
        return self.kernel.enter(Caller.person(door, device), present=present)

    def agent(
        self,
        name: str = "juno",
        *,
        door: str = "mcp",
        session: str | None = "s1",
        turn: str | None = None,
        scope: Iterable[str] = (EVERYTHING,),
    ) -> Context:
        """An agent that may touch all notes, or those in its scope."""
        caller = Caller.agent(door, name)
        return self.kernel.enter(caller, session=session, turn=turn, scope=Scope(roots=tuple(scope)))

    def module(self, name: str = "notes") -> Context:
        """A module acting by itself."""
        return self.kernel.enter(Caller.module(name))

    async def rows(self, sql: str = "SELECT * FROM undo_acted ORDER BY seq") -> list[dict[str, Any]]:
        """Rows straight from the database."""
        return await self.kernel.store.read(lambda db: [dict(row) for row in db.execute(sql)])

    async def change(self, sql: str, *parameters: Any) -> None:
        """Change rows behind the log's back, as time and tests do."""

        def change(tx: Transaction) -> None:
            tx.execute(sql, parameters)

        await self.kernel.store.transaction(change)

    async def act(self, act_id: str) -> Any:
        """An act as the person sees it."""
        return (await self.person().undo.show(id=act_id)).act

    async def state(self, act_id: str) -> str:
        """The state of an act."""
        return str((await self.act(act_id)).state)

    async def events(self, kind: str = "undo.") -> list[tuple[str, str]]:
        """Kind and act of all events whose kind begins so, oldest first."""
        stored = await self.kernel.events.after(0, limit=10_000)
        return [(e.kind, str(e.data.get("id", ""))) for e in stored if e.kind.startswith(kind)]


@asynccontextmanager
async def house(
    home: Path,
    *modules: type[Module] | Source,
    notebook: Notebook | None = None,
    settings: dict[str, Any] | None = None,
) -> AsyncIterator[House]:
    """A house over a home, with further modules beside undo and notes."""
    notebook = notebook or Notebook()
    async with Kernel(
        home, settings=settings or {}, modules=[UndoModule, *modules, notes_module(notebook)]
    ) as kernel:
        yield House(kernel, notebook)

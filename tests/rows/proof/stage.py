"""A kernel with undo, rows and files over a home, two databases of the person's and a folder of theirs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from takeback import Context, Kernel, Module, Scope
from takeback_acts.files.module import FilesModule
from takeback_acts.rows.module import RowsModule
from takeback_core.undo.module import UndoModule
from tests.rows.proof.invariants import log
from tests.rows.proof.persons import Person

LONG_AGO = "2000-01-01T00:00:00Z"


class Stage:
    """A running kernel, and the ways in that tests use."""

    def __init__(self, kernel: Kernel, folder: Path) -> None:
        self.kernel = kernel
        self.folder = folder

    def agent(self, name: str = "juno", *, session: str = "s1", turn: str = "t1") -> Context:
        """An agent that may touch every table and all files of the folder."""
        scope = Scope(tables=("main.*", "side.*"), roots=(str(self.folder),))
        return self.kernel.enter(f"mcp:agent:{name}", session=session, turn=turn, scope=scope)

    def person(self, *, present: bool = False) -> Context:
        """The person."""
        return self.kernel.enter("cli:person", present=present)

    async def connect(self, persons: dict[str, Person]) -> None:
        """Connects databases under their names."""
        for name, person in persons.items():
            await self.person().call("rows.connect", name=name, url=person.url)

    async def rows(self) -> list[dict[str, Any]]:
        """The log as it is."""
        return await log(self.kernel)

    async def ids(self, role: str = "act") -> list[str]:
        """The ids of the rows of a role, oldest first."""
        return [row["id"] for row in await self.rows() if row["role"] == role]


@asynccontextmanager
async def stage(
    home: Path,
    folder: Path,
    *,
    modules: Sequence[type[Module]] = (UndoModule, FilesModule, RowsModule),
    settings: dict[str, Any] | None = None,
) -> AsyncIterator[Stage]:
    """A stage over a home; the folder is made where there is none."""
    folder.mkdir(exist_ok=True)
    async with Kernel(home, settings=settings or {}, modules=list(modules)) as kernel:
        yield Stage(kernel, folder)

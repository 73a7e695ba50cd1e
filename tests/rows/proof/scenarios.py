"""What is under way when a process is killed: what was done before, and the calls that are cut off."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from tests.rows.proof.stage import Stage

Call = Callable[[Stage], Awaitable[Any]]


@dataclass(frozen=True)
class Scenario:
    """`before` runs in peace, `calls` are what a kill meets. Each call happens as a whole, or not at all.

    Of the points where it may be killed it is at one of so many, `each`, where others go the same ways.
    """

    name: str
    before: tuple[Call, ...]
    calls: tuple[Call, ...]
    each: int = 1


def _execute(sql: str, *parameters: Any, database: str = "main", session: str = "s1") -> Call:
    async def call(stage: Stage) -> None:
        await stage.agent(session=session).rows.execute(
            database=database, sql=sql, parameters=list(parameters)
        )

    return call


def _rename(id: int, owner: str) -> Call:
    return lambda stage: stage.agent().rows.update(
        database="main", table="account", key=id, set={"owner": owner, "balance": id * 1000}
    )


def _delete(id: int) -> Call:
    return lambda stage: stage.agent().rows.delete(database="main", table="account", key=id)


def _open(id: int, database: str = "main") -> Call:
    row = {"id": id, "owner": f"new {id}", "balance": 0}
    return lambda stage: stage.agent().rows.insert(database=database, table="account", row=row)


def _write(name: str, text: str) -> Call:
    return lambda stage: stage.agent().files.write(path=str(stage.folder / name), content=text)


def _undo(index: int) -> Call:
    async def call(stage: Stage) -> None:
        await stage.person().undo.run(id=(await stage.ids())[index])

    return call


def _force(index: int) -> Call:
    async def call(stage: Stage) -> None:
        await stage.person(present=True).undo.run(id=(await stage.ids())[index], force=True)

    return call


def _redo(index: int, role: str = "undo") -> Call:
    async def call(stage: Stage) -> None:
        await stage.person().undo.redo(id=(await stage.ids(role))[index])

    return call


async def _rewind(stage: Stage) -> None:
    await stage.person().undo.rewind(session="s1")


_LINES = _execute("INSERT INTO line VALUES (3, 1, 'a'), (3, 2, 'b')")
_MANY = (_rename(1, "eve"), _open(4), _LINES, _delete(2), _execute("UPDATE memo SET body = 'x'"))
_BOTH = (_rename(1, "eve"), _open(9, "side"), _delete(3))
_MIXED = (_write("a.txt", "one"), _rename(1, "eve"), _write("a.txt", "two"), _delete(2))

SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("acts", (_open(4),), (_rename(1, "eve"), _delete(1), _LINES)),
        Scenario("undo", (_rename(1, "eve"), _delete(1)), (_undo(-1),)),
        Scenario("undo, redo, undo", (_delete(1),), (_undo(0), _redo(0), _undo(0)), each=3),
        Scenario("rewind", _MANY, (_rewind,)),
        Scenario("redo of a rewind", (*_MANY, _rewind), (_redo(0),), each=3),
        Scenario("rewind of two databases", _BOTH, (_rewind,)),
        Scenario("rewind of rows and files", _MIXED, (_rewind,)),
    )
}
FORCED = Scenario("force", (_rename(1, "eve"),), (_force(0),))

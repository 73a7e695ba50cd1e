"""What is under way when a process is killed: what was done before, and the calls that are cut off."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from takeback.errors import TakebackError
from tests.undo.house import House

Call = Callable[[House], Awaitable[Any]]
LONG_AGO = "2000-01-01T00:00:00Z"


@dataclass(frozen=True)
class Scenario:
    """`before` runs in peace, `hand` is then written behind the log's back, `calls` are what a kill meets.

    `inverse` and `failures` are the notebook's, these for the calls alone. With a `ledger` there is an owner
    with transactions as well, and `ends` are what it says to their commits. A call is `whole` when it
    has either happened or not, and nothing in between. `peaceful` says that no hand stands in the way of
    bringing back the very first state.
    """

    name: str
    before: tuple[Call, ...]
    calls: tuple[Call, ...]
    hand: dict[str, str] = field(default_factory=dict)
    failures: tuple[str, ...] = ()
    whole: bool = True
    inverse: str = "notes.restore"
    ledger: bool = False
    ends: tuple[str, ...] = ()

    @property
    def peaceful(self) -> bool:
        return not self.hand


def _put(key: str, value: str, *, agent: str = "juno", session: str = "s1") -> Call:
    return lambda house: house.agent(agent, session=session).notes.put(key=key, value=value)


def _enter(**values: str | None) -> Call:
    return lambda house: house.agent().ledger.enter(values=values)


def _delete(key: str) -> Call:
    return lambda house: house.agent().notes.delete(key=key)


def _rename(key: str, to: str) -> Call:
    return lambda house: house.agent().notes.rename(key=key, to=to)


def _batch(own: str, *keys: str) -> Call:
    items = [{"key": key, "value": "batched"} for key in keys]
    return lambda house: house.agent().notes.batch(items=items, own=own)


async def _id(house: House, role: str, index: int) -> str:
    rows = await house.rows("SELECT id, role FROM undo_acted ORDER BY seq")
    return str([row["id"] for row in rows if row["role"] == role][index])


def _undo(index: int, role: str = "act", **options: Any) -> Call:
    async def call(house: House) -> None:
        act_id = await _id(house, role, index)
        await _heard(house.person(present=True).undo.run(id=act_id, **options))

    return call


def _redo(index: int, role: str = "act") -> Call:
    async def call(house: House) -> None:
        await _heard(house.person().undo.redo(id=await _id(house, role, index)))

    return call


def _rewind(**options: Any) -> Call:
    return lambda house: _heard(house.person(present=True).undo.rewind(session="s1", **options))


async def _heard(work: Awaitable[Any]) -> None:
    """A failure is a possible end of a scenario; what it leaves behind is looked at."""
    try:
        await work
    except TakebackError as error:
        if error.code != "undo.failed":
            raise


_TWO_KEYS = (_put("a", "1"), _rename("a", "b"), _put("a", "2"))
_THREE_KEYS = (_put("a", "1"), _put("b", "1"), _rename("b", "c/d"), _put("a", "2"), _put("b", "3"))
_MOVED = (_put("a", "1"), _rename("a", "b"))
_PART = _undo(-1, only=["notes:a"])
_WORDS = (_put("a", "one,two"), _put("a", "one,two,three"), _put("b", "1"))

_BOTH = (_enter(a="1"), _put("a", "1"), _enter(a="2", b="1"), _put("b", "1"))

BLIND = Scenario(
    "rewind that records nothing",
    (_put("a", "1"), _put("b", "1"), _put("c", "1")),
    (_rewind(),),
    inverse="notes.restore_plain",
)
SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("opening", (_put("a", "1"), _undo(0)), ()),
        Scenario("acts", (_put("a", "1"),), (_put("a", "2"), _rename("a", "b"), _delete("b"))),
        Scenario("an act with acts in it", (_put("a", "1"),), (_batch("around", "a", "b"),), whole=False),
        Scenario("undo", (_put("a", "1"), _rename("a", "b")), (_undo(-1),)),
        Scenario("undo of acts in an act", (_put("a", "1"), _batch("around", "a", "b")), (_undo(1),)),
        Scenario("undo that fails", (_put("a", "1"),), (_undo(0),), failures=("inside",)),
        Scenario("rewind", _THREE_KEYS, (_rewind(),)),
        Scenario("rewind that fails", _TWO_KEYS, (_rewind(),), failures=("", "late")),
        Scenario("rewind of nothing left", (_put("a", "1"), _delete("a"), _put("b", "1")), (_rewind(),)),
        Scenario("redo", (_put("a", "1"), _undo(0)), (_redo(0),)),
        Scenario("redo that fails", (_put("a", "1"), _undo(0)), (_redo(0),), failures=("inside",)),
        Scenario("redo of a rewind", (*_TWO_KEYS, _rewind()), (_redo(0, "undo"),)),
        Scenario("redo of a part", (*_TWO_KEYS, _rewind()), (_redo(0), _redo(1))),
        Scenario("undo, redo, undo", (_put("a", "1"),), (_undo(0), _redo(0), _undo(0))),
        Scenario("merge", _WORDS, (_rewind(skip_conflicts=True),), hand={"a": "mine,one,three,two"}),
        Scenario("undo of a part", _MOVED, (_PART, _undo(-1))),
        Scenario("undo of a part that fails", _MOVED, (_PART,), failures=("inside",)),
        Scenario(
            "redo of what was taken in parts", (*_MOVED, _PART, _undo(-1)), (_redo(1, "undo"), _redo(-1))
        ),
        Scenario("rewind of parts", _MOVED, (_rewind(skip_conflicts=True),), hand={"b": "x"}),
        Scenario("force", _TWO_KEYS, (_rewind(force=True),), hand={"a": "mine"}),
        Scenario("entries", (_enter(a="1"),), (_enter(a="2", b="1"), _enter(a=None)), ledger=True),
        Scenario("undo of entries", (_enter(a="1", b="1"),), (_undo(0), _redo(0), _undo(0)), ledger=True),
        Scenario("rewind of both", _BOTH, (_rewind(),), ledger=True),
        Scenario("rewind of both that fails", _BOTH, (_rewind(),), failures=("", "late"), ledger=True),
        Scenario("rewind of both that is refused", _BOTH, (_rewind(),), ledger=True, ends=("prepare",)),
        # Killed before it heard the lie, the rewind has come true and is finished.
        Scenario(
            "rewind of both that was lost", _BOTH, (_rewind(),), ledger=True, ends=("lost",), whole=False
        ),
        Scenario("redo of both", (*_BOTH, _rewind()), (_redo(0, "undo"),), ledger=True),
        Scenario("redo of force", (_put("a", "1"),), (_undo(0, force=True), _redo(0)), hand={"a": "x"}),
    )
}

# Among them these have every way of settling; what settles the others is killed no second time.
KILLED_TWICE = (
    "opening",
    "acts",
    "undo",
    "undo of acts in an act",
    "rewind",
    "rewind that fails",
    "redo of a rewind",
    "undo of a part",
    "entries",
    "rewind of both",
    "rewind of both that was lost",
)

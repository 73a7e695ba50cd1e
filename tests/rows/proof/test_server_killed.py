"""The server is killed, or one of its processes, in the middle of an act or a rewind, and comes back."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio
import psycopg
import pytest

from takeback import faults
from takeback.errors import TakebackError
from takeback_acts.rows.module import RowsModule
from takeback_core.undo.module import UndoModule
from tests.rows.proof.invariants import require_agreement, require_settled
from tests.rows.proof.persons import Person
from tests.rows.proof.stage import LONG_AGO, Stage, stage
from tests.rows.server import Server

pytestmark = pytest.mark.anyio

_OURS = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'takeback'"
)
_WAITS = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'takeback' AND wait_event_type = 'Lock'"


@pytest.fixture
def person(postgres):
    made = Person("postgresql", str(postgres.socket), postgres.fresh())
    made.create()
    yield made
    postgres.drop(made.database)


@pytest.fixture
async def opened(tmp_path, person):
    async with stage(tmp_path / "home", tmp_path / "files", modules=[UndoModule, RowsModule]) as made:
        await made.connect({"main": person})
        yield made


def _kill_server(server: Server, person: Person) -> None:
    server.kill()


def _kill_backends(server: Server, person: Person) -> None:
    """Of one that is killed, the server throws all others out and recovers, as from a crash."""
    with person.connect(role="postgres") as db:
        found = db.execute(_OURS.encode()).fetchall()
    for (pid,) in found:
        os.kill(pid, signal.SIGKILL)
    while True:
        try:
            with person.connect() as db:
                old = {pid for (pid,) in db.execute(_OURS.encode()).fetchall()}
                if not old.intersection(pid for (pid,) in found):
                    return
        except psycopg.OperationalError:
            continue


KILLS = [_kill_server, _kill_backends]


def _once(place: str, number: int, do: Callable[[], None]) -> Callable[[], None]:
    """Does something when a place is passed for the n-th time."""
    passed = []

    def hook(name: str) -> None:
        if name == place:
            passed.append(name)
            if len(passed) == number:
                do()

    return faults.install(hook)


async def _require_truth(opened: Stage, person: Person) -> None:
    rows = await opened.rows()
    require_settled(rows)
    require_agreement(rows, {"main": person.journal()})


async def _fail(call: Awaitable[object]) -> None:
    with pytest.raises(TakebackError):
        await call


@pytest.mark.parametrize("kill", KILLS)
async def test_an_act_is_whole_or_it_is_not(opened, person, postgres, kill):
    before = person.dump()
    for place in ("rows.written", "rows.committing"):
        stop = _once(place, 1, lambda: kill(postgres, person))
        await _fail(opened.agent().rows.delete(table="account", key=1))
        stop()
        assert person.dump() == before
        assert {row["state"] for row in await opened.rows()} == {"abandoned"}
        await _require_truth(opened, person)
    done = await opened.agent().rows.delete(table="account", key=1)
    await opened.person().undo.run(id=done.act)
    assert person.dump() == before
    await _require_truth(opened, person)


@pytest.mark.parametrize("kill", KILLS)
@pytest.mark.parametrize(
    ("place", "number"), [("undo.step", 1), ("undo.stepped", 2), ("rows.deciding", 1), ("rows.decided", 1)]
)
async def test_a_rewind_is_whole_or_it_is_not(opened, person, postgres, kill, place, number):
    before = person.dump()
    agent = opened.agent()
    await agent.rows.update(table="account", key=1, set={"owner": "eve"})
    await agent.rows.delete(table="account", key=2)
    await agent.rows.execute(sql="UPDATE memo SET body = 'x'")
    after = person.dump()
    stop = _once(place, number, lambda: kill(postgres, person))
    try:
        await opened.person().undo.rewind(session="s1")
    except TakebackError:
        assert person.dump() == after
        states = {row["state"] for row in await opened.rows() if row["role"] == "act"}
        assert states <= {"done", "failed"}
    else:
        assert place in ("undo.step", "rows.decided")  # nothing is open yet, or any more
    stop()
    await _require_truth(opened, person)
    await opened.person().undo.rewind(since=LONG_AGO)
    assert person.dump() == before
    await _require_truth(opened, person)


async def test_a_commit_that_the_server_did_not_live_to_see_has_not_happened(opened, person, postgres):
    before = person.dump()
    holding, free = threading.Event(), threading.Event()

    def hold() -> None:
        """Keeps the journal's row waiting, and with it the commit, until both go with the server."""
        with person.connect() as db:
            db.autocommit = False
            db.execute("LOCK TABLE takeback_journal IN SHARE MODE")
            holding.set()
            with postgres.connect() as other:
                while other.execute(_WAITS.encode()).fetchone() is None:
                    pass
            postgres.kill()
            free.set()

    thread = threading.Thread(target=lambda: _quietly(hold))
    thread.start()
    assert await anyio.to_thread.run_sync(holding.wait, 20)
    await _fail(opened.agent().rows.delete(table="account", key=1))
    await anyio.to_thread.run_sync(thread.join)
    assert free.is_set()
    assert person.dump() == before
    # Who could not ask the journal yet asks it before the next undo.
    assert {row["state"] for row in await opened.rows()} <= {"abandoned", "pending"}
    done = await opened.agent().rows.delete(table="account", key=1)
    await opened.person().undo.run(id=done.act)
    assert person.dump() == before
    await _require_truth(opened, person)


def _quietly(work: Callable[[], None]) -> None:
    """The stranger's own connection is lost as well, as it leaves."""
    with suppress(psycopg.OperationalError):
        work()

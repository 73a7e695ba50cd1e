"""Many callers at once, callers that go away, and what is loaded before anybody calls."""

import subprocess
import sys
import threading

import anyio
import pytest

from takeback import faults
from takeback.errors import TakebackError

pytestmark = pytest.mark.anyio


async def test_callers_at_once_get_their_turns(bench):
    async def raise_level(number):
        await bench.agent(f"a{number % 3}", session=f"s{number % 3}").rows.execute(
            sql=f"UPDATE skill SET level = level + 1 WHERE id = {number % 2 + 1}"
        )

    before = bench.dump()
    async with anyio.create_task_group() as tasks:
        for number in range(24):
            tasks.start_soon(raise_level, number)
    assert bench.sql("SELECT level FROM skill WHERE id < 3 ORDER BY id") == [(17,), (16,)]
    assert {act.state for act in await bench.acts()} == {"done"}
    await bench.person().undo.rewind(since="2000-01-01T00:00:00Z")
    assert bench.dump() == before


async def test_reading_goes_on_beside_writing(bench):
    async with anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(bench.agent().call, "rows.query", {"table": "skill"})
            tasks.start_soon(
                bench.agent().call,
                "rows.update",
                {"table": "tag", "key": "red", "set": {"weight": number + 10.5}},
            )


async def test_who_goes_away_before_the_commit_has_changed_nothing(bench):
    """The thread stands before its commit while the caller is cancelled."""
    reached, go_on = anyio.Event(), threading.Event()

    def stand(name):
        if name == "rows.written":
            anyio.from_thread.run_sync(reached.set, token=token)
            assert go_on.wait(20)

    token = anyio.lowlevel.current_token()
    before = bench.dump()
    stop = faults.install(stand)
    try:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(bench.agent().call, "rows.delete", {"table": "skill", "key": 1})
                await reached.wait()
                tasks.cancel_scope.cancel()
                go_on.set()
    finally:
        go_on.set()
        stop()
    (act,) = await bench.acts()
    here = bench.dump()
    assert act.state == ("abandoned" if here == before else "done")
    if act.state == "done":
        assert act.touched
        await bench.undo(act.id)
        assert bench.dump() == before


async def test_who_goes_away_in_the_middle_of_a_statement_has_it_ended(bench):
    endless = (
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)"
        " UPDATE tag SET weight = (SELECT count(*) FROM c)"
    )
    before = bench.dump()
    with anyio.move_on_after(0.3):
        await bench.agent().rows.execute(sql=endless)
    assert bench.dump() == before
    assert [act.state for act in await bench.acts()] == ["abandoned"]
    await bench.agent().rows.delete(table="tag", key="red")


class TestWaiting:
    @pytest.fixture
    def settings(self):
        return {"rows": {"wait_seconds": 0.2}}

    async def test_what_another_program_holds_is_waited_for_and_then_told(self, bench):
        held, free = threading.Event(), threading.Event()

        def hold():
            with bench.database.hands() as hands:
                hands("BEGIN IMMEDIATE" if bench.database.name == "sqlite" else "BEGIN")
                hands("UPDATE tag SET weight = 8 WHERE name = 'red'")
                held.set()
                free.wait(20)
                hands("ROLLBACK")

        other = threading.Thread(target=hold)
        other.start()
        try:
            assert await anyio.to_thread.run_sync(held.wait, 20)
            with pytest.raises(TakebackError, match=r"rows\.busy") as caught:
                await bench.agent().rows.delete(table="tag", key="red")
            assert caught.value.retryable
        finally:
            free.set()
            other.join()
        await bench.agent().rows.delete(table="tag", key="red")


@pytest.mark.parametrize("heavy", ["sqlalchemy", "sqlglot", "psycopg", "takeback_acts.rows.journal"])
def test_who_connects_nothing_loads_nothing(heavy):
    script = "import sys, takeback_acts.rows.module; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert heavy not in ran.stdout.split()


@pytest.mark.parametrize("place", ["store.begun", "store.ran", "store.committed"])
async def test_who_goes_away_while_the_log_is_written_leaves_it_true(bench, place):
    """The writer of the log stands while the caller is cancelled, and may be through by then."""
    reached, go_on = anyio.Event(), threading.Event()

    def stand(name):
        if name == place and not go_on.is_set():
            anyio.from_thread.run_sync(reached.set, token=token)
            assert go_on.wait(20)

    token = anyio.lowlevel.current_token()
    before = bench.dump()
    stop = faults.install(stand)
    try:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(bench.agent().call, "rows.delete", {"table": "skill", "key": 1})
                await reached.wait()
                tasks.cancel_scope.cancel()
                go_on.set()
    finally:
        go_on.set()
        stop()
    acts = await bench.acts()
    standing = [act for act in acts if act.state == "done"]
    assert {act.state for act in acts} <= {"done", "abandoned"}
    assert bool(standing) == (bench.dump() != before)
    for act in standing:
        assert act.touched
        await bench.undo(act.id)
    assert bench.dump() == before

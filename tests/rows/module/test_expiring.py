"""The journal in the person's database reaches as far back as the log does, and no further."""

import anyio
import pytest

from takeback import faults

pytestmark = pytest.mark.anyio


async def _age(bench, days):
    """Everything that was done so far was done so many days ago."""
    shift = f"-{days} days"
    set_at = "SET at = strftime('%Y-%m-%dT%H:%M:%f', at, ?) || 'Z'"
    await bench.kernel.store.transaction(lambda tx: tx.execute(f"UPDATE undo_acted {set_at}", (shift,)))
    if bench.database.name == "sqlite":
        bench.sql(f"UPDATE takeback_journal {set_at.replace('?', repr(shift))}")
    else:
        bench.sql(
            "UPDATE takeback_journal SET at = to_char(at::timestamptz AT TIME ZONE 'UTC' - interval"
            f" '{days} days', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')"
        )


@pytest.fixture
def expired():
    """An event that is set when the journals have been seen to."""
    done = anyio.Event()
    stop = faults.install(lambda name: done.set() if name == "rows.expired" else None)
    yield done
    stop()


async def test_entries_go_with_their_acts(bench, expired):
    for level in (7, 8):
        await bench.agent().rows.update(table="skill", key=1, set={"level": level})
        await _age(bench, 50)
    pinned = (await bench.acts())[0]
    await bench.agent().rows.update(table="skill", key=2, set={"level": 9})
    await bench.person().undo.pin(id=pinned.id)
    await bench.person().undo.gc()
    with anyio.fail_after(20):
        await expired.wait()
    assert len(bench.journal()) == 2
    await bench.undo(pinned.id)
    assert bench.sql("SELECT level FROM skill WHERE id = 1") == [(7,)]


async def test_a_log_that_knows_nothing_of_a_database_leaves_it_only_the_newest_entry(bench, expired):
    for level in (7, 8):
        await bench.agent().rows.update(table="skill", key=1, set={"level": level})
    await _age(bench, 100)
    await bench.person().undo.gc()
    with anyio.fail_after(20):
        await expired.wait()
    assert len(bench.journal()) == 1
    assert bench.sql("SELECT level FROM skill WHERE id = 1") == [(8,)]

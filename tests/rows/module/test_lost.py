"""A server that goes away: before, in the middle, and at the commit."""

import pytest

from takeback import faults
from takeback.errors import TakebackError
from tests.rows.module.conftest import Postgres

pytestmark = pytest.mark.anyio


@pytest.fixture
def make(postgres):
    return lambda folder: Postgres(postgres)


def end_connections(database):
    """What a restart of the server does to who is connected, as seen from outside."""
    with database.server.connect(database.database) as db:
        db.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'takeback'"
        )


def at(place, do):
    """Does something once, when a place is passed."""
    left = [do]

    def hook(name):
        if name == place and left:
            left.pop()()

    return faults.install(hook)


async def test_the_next_act_connects_again(bench):
    await bench.agent().rows.query(table="tag")
    end_connections(bench.database)
    done = await bench.agent().rows.update(table="tag", key="red", set={"weight": 5.0})
    assert len((await bench.agent().rows.query(table="tag")).rows) == 2
    end_connections(bench.database)
    await bench.undo(done.act)
    assert bench.sql("SELECT weight FROM tag WHERE name = 'red'") == [(1.0,)]


@pytest.mark.parametrize("place", ["rows.written", "rows.committing"])
async def test_an_act_whose_connection_is_lost_has_not_happened(bench, place):
    before = bench.dump()
    stop = at(place, lambda: end_connections(bench.database))
    with pytest.raises(TakebackError):
        await bench.agent().rows.delete(table="skill", key=1)
    stop()
    assert bench.dump() == before
    assert [act.state for act in await bench.acts()] == ["abandoned"]
    await bench.agent().rows.delete(table="skill", key=1)


@pytest.mark.parametrize("place", ["undo.stepped", "undo.verifying", "rows.deciding"])
async def test_an_undo_whose_connection_is_lost_leaves_all_as_it_was(bench, place):
    for level in (7, 8):
        await bench.agent().rows.update(table="skill", key=1, set={"level": level})
    here = bench.dump()
    stop = at(place, lambda: end_connections(bench.database))
    with pytest.raises(TakebackError):
        await bench.person().undo.rewind(session="s1")
    stop()
    assert bench.dump() == here
    await bench.person().undo.rewind(session="s1")
    assert bench.sql("SELECT level FROM skill WHERE id = 1") == [(5,)]

"""Deaths: an app killed at each statement of an act or of a rewind leaves all as before, or all as after."""

import multiprocessing

import anyio
import pytest
from sqlalchemy import delete

from tests.rows.library import dying
from tests.rows.library.desks import Desk
from tests.rows.library.models import Certificate, Experience, Skill

pytestmark = pytest.mark.anyio

# The nursery has imported what its children need; each child is a fork of it, and of nothing else.
NURSERY = multiprocessing.get_context("forkserver")
NURSERY.set_forkserver_preload(["tests.rows.library.dying"])


@pytest.fixture(params=["pysqlite", "psycopg-sync"])
async def desk(request, tmp_path):
    server = None if "sqlite" in request.param else request.getfixturevalue("postgres")
    made = Desk(request.param, tmp_path, server)
    await made.create()
    async with made.session() as session:
        await session.run_sync(dying.seed)
        await session.commit()
    yield made
    await made.close()


def died(desk, what, number):
    """Whether the app got no further than so many statements."""
    child = NURSERY.Process(target=dying.main, args=(desk.url, what, number))
    child.start()
    child.join(60)
    assert child.exitcode in (0, -9)
    return child.exitcode != 0


def seen(desk):
    """Rows and journal: the ids and times of entries differ each time."""
    return desk.dump(), desk.entries()


async def deaths(desk, what, restore):
    """Kills at each statement; how often all was as before and as after."""
    before, after, found = seen(desk), None, []
    number = 1
    with anyio.fail_after(110):
        while died(desk, what, number):
            now = await settled(desk)
            if now != before:
                assert after in (None, now)
                after = now
                await restore()
                assert desk.dump() == before[0]
                before = seen(desk)
            found.append(now == before)
            number += 1
    assert number > 15
    final = seen(desk)
    assert final[0] != before[0]
    assert after is None or after[0] == final[0]
    return number


async def settled(desk):
    """What there is when the server has noticed that its client is gone."""
    if not desk.sqlite:
        left = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type ="
        while desk.stranger(f"{left} 'client backend' AND pid <> pg_backend_pid()") != [(len(pooled(desk)),)]:
            await anyio.lowlevel.checkpoint()
    return seen(desk)


def pooled(desk):
    return range(desk.engine.pool.checkedin())


async def test_killed_within_an_act(desk):
    async def restore():
        async with desk.session() as session:
            done = await desk.journal.rewind(session, group="g", point=2)
            assert len(done.undone) >= 2
            await session.execute(delete(Skill).where(Skill.id == 7))
            await session.commit()
        desk.stranger("DELETE FROM takeback_journal")

    await deaths(desk, "act", restore)
    assert [entry[2] for entry in desk.entries()] == ["act"] * 3


async def test_killed_within_a_rewind(desk):
    async with desk.session() as session:
        for point in (1, 2):
            async with desk.journal.act(session, group="g", point=point):
                (await session.get(Skill, 1)).title = f"at {point}"
                session.add(Experience(id=point, title=f"{point}"))
        async with desk.journal.act(session, group="g", point=3):
            await session.delete(await session.get(Certificate, 1))
        await session.commit()

    async def restore():
        (undo,) = desk.stranger("SELECT id FROM takeback_journal WHERE kind = 'undo' AND undone_in IS NULL")[
            -1
        ]
        async with desk.session() as session:
            await desk.journal.redo(session, undo)
            await session.execute(delete(Skill).where(Skill.id == 7))
            await session.commit()
        desk.stranger("DELETE FROM takeback_journal WHERE kind = 'undo'")

    await deaths(desk, "rewind", restore)
    assert [entry[2:] for entry in desk.entries()] == [("act", True)] * 3 + [("undo", False)]

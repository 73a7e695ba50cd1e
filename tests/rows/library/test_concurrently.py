"""At once: two sessions, two rewinds, and callers that go away in the middle."""

import anyio
import pytest
from sqlalchemy import text

from takeback_acts.rows import JournalConflict
from tests.rows.library.models import Skill

pytestmark = pytest.mark.anyio


async def act(desk, point, id, group="g"):
    async with desk.session() as session:
        async with desk.journal.act(session, group=group, point=point) as done:
            session.add(Skill(id=id, title=f"{id}"))
            await session.flush()
            await session.execute(text("UPDATE skill SET level = 1 WHERE id = :id"), {"id": id})
        await session.commit()
    return done


async def test_acts_of_two_sessions_at_once_are_told_apart(async_desk):
    desk = async_desk
    done = {}

    async def one(number):
        done[number] = await act(desk, number, number, group=f"g{number}")

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for number in range(6):
                tasks.start_soon(one, number)
    for number in range(6):
        assert [row.key for row in done[number].changes] == [{"id": number}]
    async with desk.session() as session:
        await desk.journal.rewind(session, group="g3", point=3)
        await session.commit()
    assert sorted(row[0] for row in desk.dump("skill")["skill"]) == [0, 1, 2, 4, 5]


async def test_two_rewinds_at_once_do_it_once(async_desk):
    desk = async_desk
    for number in range(3):
        await act(desk, number, number)
    undone = []

    async def one():
        async with desk.session() as session:
            done = await desk.journal.rewind(session, group="g", point=1)
            await session.commit()
        undone.append(len(done.undone))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(one)
    assert sorted(undone) == [0, 0, 0, 2]
    assert desk.dump("skill") == {"skill": [(0, "0", 1, 0)]}
    assert sum(entry[2] == "undo" for entry in desk.entries()) == 1


async def test_a_caller_that_goes_away_within_an_act_leaves_nothing(async_desk):
    desk = async_desk
    async with desk.session() as session:
        session.add(Skill(id=1, title="by hand"))
        await session.flush()
        with anyio.CancelScope() as scope:
            async with desk.journal.act(session, group="g", point=1):
                session.add(Skill(id=2, title="lost"))
                await session.flush()
                scope.cancel()
                await anyio.sleep_forever()
        async with desk.journal.act(session, group="g", point=2) as done:
            session.add(Skill(id=3, title="goes on"))
        await session.commit()
    assert [row.key for row in done.changes] == [{"id": 3}]
    assert sorted(row[0] for row in desk.dump("skill")["skill"]) == [1, 3]
    assert [entry[1] for entry in desk.entries()] == ["2"]


@pytest.mark.parametrize("what", ["begin", "end", "preview", "rewind"])
async def test_a_caller_that_goes_away_meanwhile_leaves_all_or_nothing(async_desk, what):
    desk = async_desk
    await act(desk, 1, 1)
    before = (desk.dump(), desk.entries())
    async with desk.session() as session:
        await session.execute(text("UPDATE skill SET rank = 5"))
        with anyio.CancelScope() as scope:
            await going_away(desk, session, scope, what)
        assert scope.cancelled_caught
        await session.execute(text("UPDATE skill SET rank = 0"))
        await session.commit()
    assert (desk.dump(), desk.entries()) == before


async def going_away(desk, session, scope, what):
    if what == "preview":
        scope.cancel()
        await desk.journal.preview(session, group="g", point=1, force=True)
    elif what == "rewind":
        scope.cancel()
        await desk.journal.rewind(session, group="g", point=1, force=True)
    else:
        if what == "begin":
            scope.cancel()
        async with desk.journal.act(session, group="g", point=2):
            await session.execute(text("UPDATE skill SET title = 'lost'"))
            scope.cancel()


async def test_who_waits_for_a_row_can_go_away(async_desk):
    desk = async_desk
    if desk.sqlite:
        return
    await act(desk, 1, 1)
    holder = desk.server.connect(desk.database, role="app")
    with holder.transaction():
        holder.execute("UPDATE skill SET rank = 3 WHERE id = 1")
        async with desk.session() as session:
            with anyio.move_on_after(0.3) as scope:
                await desk.journal.rewind(session, group="g", point=1)
            assert scope.cancelled_caught
            session.add(Skill(id=2, title="goes on"))
            await session.commit()
    holder.close()
    assert desk.stranger("SELECT id, rank FROM skill ORDER BY id") == [(1, 3), (2, 0)]
    async with desk.session() as session:
        with pytest.raises(JournalConflict):
            await desk.journal.rewind(session, group="g", point=1)

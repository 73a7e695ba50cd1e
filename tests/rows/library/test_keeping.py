"""Keeping: which point comes after which, and what is forgotten, moved and too old."""

from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import update

from takeback.errors import ConflictError, NotFoundError, UsageError
from takeback_acts.rows import JournalConflict
from tests.rows.library.models import Skill

pytestmark = pytest.mark.anyio


async def act(desk, point, title, *, group="g", key=1):
    """Sets a skill's title at a point."""
    async with desk.session() as session:
        async with desk.journal.act(session, group=group, point=point):
            await session.merge(Skill(id=key, title=title))
        await session.commit()


async def rewound(desk, point, *, group="g", **how):
    async with desk.session() as session:
        done = await desk.journal.rewind(session, group=group, point=point, **how)
        await session.commit()
    return done


def title(desk, key=1):
    rows = desk.stranger("SELECT title FROM skill WHERE id = ?", key)
    return rows[0][0] if rows else None


async def test_numbers_come_by_their_size_also_negative_ones(desk):
    for number in (-2, 9, 10, 100):
        await act(desk, number, f"at {number}")
    assert len((await rewound(desk, 10)).undone) == 2
    assert title(desk) == "at 9"
    assert len((await rewound(desk, -1)).undone) == 1
    assert title(desk) == "at -2"
    assert len((await rewound(desk, -2)).undone) == 1
    assert title(desk) is None


async def test_names_come_in_the_order_in_which_they_first_acted(desk):
    first, second = UUID(int=2), UUID(int=1)
    await act(desk, first, "one")
    await act(desk, second, "two")
    await act(desk, "m-3", "three")
    await act(desk, first, "four")
    with pytest.raises(ConflictError):
        await rewound(desk, second)
    done = await rewound(desk, first)
    assert len(done.undone) == 4
    assert title(desk) is None


async def test_a_name_is_no_number(desk):
    await act(desk, "7", "text")
    await act(desk, 7, "number")
    await act(desk, "", "empty")
    assert [entry[1] for entry in desk.entries()] == ["=7", "7", "="]
    with pytest.raises(UsageError) as caught:
        await rewound(desk, "8")
    assert caught.value.code == "journal.points"
    assert len((await rewound(desk, "")).undone) == 1
    assert len((await rewound(desk, 7)).undone) == 1
    assert len((await rewound(desk, "7")).undone) == 1


async def test_a_name_that_never_acted_needs_the_points_after_it(desk):
    await act(desk, "a", "one")
    await act(desk, "c", "two")
    with pytest.raises(UsageError) as caught:
        await rewound(desk, "b")
    assert caught.value.code == "journal.points"
    done = await rewound(desk, "b", points=["b", "c", "d"])
    assert len(done.undone) == 1
    assert title(desk) == "one"
    assert (await rewound(desk, "z", group="nobody's")).undone == ()


async def test_groups_do_not_touch_each_other(desk):
    await act(desk, 1, "one", group=1)
    await act(desk, 1, "other", group="1", key=2)
    assert len((await rewound(desk, 1, group=1)).undone) == 1
    assert (title(desk), title(desk, 2)) == (None, "other")


@pytest.mark.parametrize("name", [None, 1.5, True, "a\0b", "x" * 501, "\ud800", b"1"])
async def test_what_is_no_name(desk, name):
    async with desk.session() as session:
        for given in ({"group": name, "point": 1}, {"group": 1, "point": name}):
            with pytest.raises(UsageError) as caught:
                await desk.journal.preview(session, **given)
            assert caught.value.code == "journal.name"
            with pytest.raises(UsageError):
                async with desk.journal.act(session, **given):
                    pass


async def test_what_is_forgotten_stays_and_is_never_taken_back(desk):
    for number in (41, 42, 43):
        await act(desk, number, f"at {number}")
    await act(desk, 41, "elsewhere", group="other", key=2)
    async with desk.session() as session:
        assert await desk.journal.forget(session, group="g", point=42) == 2
        await session.commit()
    assert title(desk) == "at 43"
    assert (await rewound(desk, 42)).undone == ()
    with pytest.raises(JournalConflict) as caught:
        await rewound(desk, 41)
    assert caught.value.plan.conflicts[0].theirs == {"title": "at 43"}
    assert title(desk) == "at 43"
    assert len((await rewound(desk, 41, group="other")).undone) == 1


async def test_what_was_taken_back_and_forgotten_is_not_done_again(desk):
    await act(desk, 41, "one")
    done = await rewound(desk, 41)
    async with desk.session() as session:
        assert await desk.journal.forget(session, group="g", point=41) == 1
        with pytest.raises(NotFoundError) as caught:
            await desk.journal.redo(session, done.undo)
        assert caught.value.code == "journal.unknown"
        await session.commit()
    assert desk.entries() == []


async def test_a_redo_is_of_its_own_group(desk):
    await act(desk, 41, "one")
    done = await rewound(desk, 41)
    async with desk.session() as session:
        with pytest.raises(NotFoundError):
            await desk.journal.redo(session, done.undo, group="other")
        (acted,) = done.undone
        with pytest.raises(NotFoundError):
            await desk.journal.redo(session, acted, group="g")


async def test_a_guests_journal_follows_when_they_sign_up(desk):
    await act(desk, 1, "as a guest", group="guest-5")
    await act(desk, 1, "another", group="guest-6", key=2)
    async with desk.session() as session:
        assert await desk.journal.move(session, "guest-5", 77) == 1
        assert await desk.journal.move(session, "guest-5", 77) == 0
        await session.commit()
    await act(desk, 2, "signed up", group=77)
    assert (await rewound(desk, 1, group="guest-5", points=[])).undone == ()
    assert len((await rewound(desk, 1, group=77)).undone) == 2
    assert (title(desk), title(desk, 2)) == (None, "another")


async def test_what_is_too_old_goes_and_plans_say_so(desk):
    for number in (41, 42, 43):
        await act(desk, number, f"at {number}", key=number)
    await act(desk, 1, "of another", group="other", key=9)
    desk.stranger("UPDATE takeback_journal SET at = '2020-01-01T00:00:00.000Z' WHERE point IN ('41', '42')")
    async with desk.session() as session:
        assert await desk.journal.expire(session) == 2
        assert await desk.journal.expire(session) == 0
        await session.commit()
        assert (await desk.journal.preview(session, group="g", point=43)).expired is False
        plan = await desk.journal.preview(session, group="g", point=41)
        assert (plan.total, plan.expired) == (1, True)
        done = await desk.journal.rewind(session, group="g", point=41, digest=plan.digest)
        await session.commit()
        assert len(done.undone) == 1
        plan = await desk.journal.preview(session, group="g", point=42)
        assert (plan.total, plan.expired, plan.items) == (0, True, ())
        assert (await desk.journal.preview(session, group="other", point=1)).expired is False
    assert sorted(row[0] for row in desk.dump("skill")["skill"]) == [9, 41, 42]
    contents = desk.stranger("SELECT changes FROM takeback_journal WHERE point = '42'")
    assert contents == [("[]",)]
    assert desk.stranger("SELECT changes FROM takeback_journal WHERE point = '41'") == []


async def test_what_was_taken_back_goes_without_a_trace(desk):
    await act(desk, 41, "one")
    await rewound(desk, 41)
    desk.stranger("UPDATE takeback_journal SET at = '2020-01-01T00:00:00.000Z'")
    async with desk.session() as session:
        assert await desk.journal.expire(session, older_than=timedelta(days=1)) == 1
        with pytest.raises(UsageError) as caught:
            await desk.journal.expire(session, older_than=timedelta(days=-1))
        assert caught.value.code == "journal.age"
        await session.commit()
    assert desk.entries() == []


async def test_what_the_app_rolls_back_was_never_taken_back(desk):
    await act(desk, 41, "one")
    async with desk.session() as session:
        await desk.journal.rewind(session, group="g", point=41)
        assert await session.get(Skill, 1) is None
        await session.rollback()
        await session.execute(update(Skill).values(level=3))
        await session.rollback()
    assert title(desk) == "one"
    assert [entry[3] for entry in desk.entries()] == [False]
    assert len((await rewound(desk, 41)).undone) == 1

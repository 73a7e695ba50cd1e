"""The story of the reference: three messages touch one entry, and what is gone back to."""

import pytest

from takeback.errors import ConflictError
from takeback_acts.rows import JournalConflict
from tests.rows.library.models import Bullet, Certificate, Experience, Page, Skill

pytestmark = pytest.mark.anyio


async def tell(desk):
    """41 creates an entry, 42 renames it, 43 deletes it."""
    async with desk.session() as session:
        async with desk.journal.act(session, group=1, point=41, tool="create_experiences"):
            session.add(Experience(id=7, title="Developer", bullets=[Bullet(id=1, text="Wrote code")]))
        await session.commit()
    async with desk.session() as session:
        async with desk.journal.act(session, group=1, point=42, tool="update_experiences"):
            (await session.get(Experience, 7)).title = "Senior Developer"
        await session.commit()
    async with desk.session() as session:
        async with desk.journal.act(session, group=1, point=43, tool="delete_experiences"):
            await session.delete(await session.get(Experience, 7))
        await session.commit()


async def rewind(desk, point, **how):
    async with desk.session() as session:
        plan = await desk.journal.preview(session, group=1, point=point, **how)
        done = await desk.journal.rewind(session, group=1, point=point, digest=plan.digest, **how)
        await session.commit()
    assert done.plan.items == plan.items
    assert sorted(map(repr, done.plan.rows)) == sorted(map(repr, plan.rows))
    return done


@pytest.mark.parametrize(
    ("point", "title", "phrases"),
    [
        (43, "Senior Developer", {"1 experience will come back", "1 bullet will come back"}),
        (42, "Developer", {"1 experience will come back", "1 bullet will come back"}),
        (41, None, set()),
    ],
)
async def test_each_message_can_be_gone_back_to(desk, point, title, phrases):
    await tell(desk)
    done = await rewind(desk, point)
    assert {item.phrase for item in done.plan.items} == phrases
    assert desk.stranger("SELECT title FROM experience WHERE id = 7") == ([(title,)] if title else [])
    assert len(desk.dump("bullet")["bullet"]) == (1 if title else 0)
    assert [entry[3] for entry in desk.entries()] == [*(n >= point for n in (41, 42, 43)), False]


async def test_what_was_taken_back_is_done_again(desk):
    await tell(desk)
    after = desk.dump()
    first = await rewind(desk, 42)
    async with desk.session() as session:
        again = await desk.journal.redo(session, first.undo, group=1)
        await session.commit()
    assert desk.dump() == after
    assert [row.operation for row in again.plan.rows] == ["delete", "delete"]
    await rewind(desk, 42)
    assert desk.stranger("SELECT title FROM experience") == [("Developer",)]
    async with desk.session() as session:
        with pytest.raises(ConflictError) as caught:
            await desk.journal.redo(session, first.undo)
        assert caught.value.code == "journal.redone"


async def test_several_acts_of_one_message_go_together(desk):
    before = desk.dump()
    async with desk.session() as session:
        for title in ("Python", "SQL"):
            async with desk.journal.act(session, group="g", point="m1", tool="create_skills"):
                session.add(Skill(title=title))
        async with desk.journal.act(session, group="g", point="m1", tool="create_certificates"):
            session.add(Certificate(id=1, number="A", year=2000, scan=b"\0\xff", price=1.5))
        await session.commit()
        plan = await desk.journal.preview(session, group="g", point="m1")
        assert {(item.phrase, item.operation) for item in plan.items} == {
            ("2 skills will be deleted", "delete"),
            ("1 certificate will be deleted", "delete"),
        }
        assert plan.total == 3
        row = next(row for row in plan.rows if row.table == "certificate")
        assert row.after is None
        assert row.before["scan"] == b"\0\xff"
        assert plan.as_dict()["total"] == 3
        await desk.journal.rewind(session, group="g", point="m1")
        await session.commit()
    assert desk.dump() == before


async def test_a_message_that_did_nothing_still_takes_those_after_it_back(desk):
    await tell(desk)
    done = await rewind(desk, 42)
    assert len(done.undone) == 2
    async with desk.session() as session:
        async with desk.journal.act(session, group=1, point=50):
            session.add(Skill(title="SQL"))
        await session.commit()
    assert len((await rewind(desk, 45)).undone) == 1
    assert desk.dump("skill") == {"skill": []}
    assert (await rewind(desk, 45)).undo == ""


async def test_edits_by_hand_in_between_survive_or_are_named(desk):
    async with desk.session() as session:
        async with desk.journal.act(session, group=1, point=41):
            session.add(Skill(id=1, title="Python", level=1))
            session.add(Skill(id=2, title="SQL", level=1))
        async with desk.journal.act(session, group=1, point=42):
            (await session.get(Skill, 1)).title = "Rust"
        await session.commit()
    desk.stranger("UPDATE skill SET level = 9 WHERE id = 1")
    await rewind(desk, 42)
    assert desk.stranger("SELECT title, level FROM skill WHERE id = 1") == [("Python", 9)]
    async with desk.session() as session:
        with pytest.raises(JournalConflict) as caught:
            await desk.journal.rewind(session, group=1, point=41)
        (conflict,) = caught.value.plan.conflicts
        assert (conflict.table, conflict.key, conflict.theirs) == ("skill", {"id": 1}, {"level": 9})
        assert caught.value.plan.items == ()
        assert "9" not in str(caught.value.as_dict()["data"])
        await session.commit()
    assert len(desk.dump("skill")["skill"]) == 2
    done = await rewind(desk, 41, skip_conflicts=True)
    assert [item.phrase for item in done.plan.items] == ["1 skill will be deleted"]
    assert [conflict.key for conflict in done.plan.skipped] == [{"id": 1}]
    assert desk.stranger("SELECT id, level FROM skill") == [(1, 9)]
    assert (await rewind(desk, 41)).undone == ()


async def test_force_overwrites_what_somebody_did(desk):
    async with desk.session() as session:
        async with desk.journal.act(session, group=1, point=41):
            session.add(Skill(id=1, title="Python"))
        await session.commit()
    desk.stranger("UPDATE skill SET level = 9")
    await rewind(desk, 41, force=True)
    assert desk.dump("skill") == {"skill": []}


async def test_what_the_database_cascades_comes_back(desk):
    async with desk.session() as session:
        session.add(Certificate(id=1, number="A", year=2000))
        await session.flush()
        session.add_all([Page(id=number, certificate_id=1, text=str(number)) for number in range(1, 4)])
        await session.commit()
    before = desk.dump()
    async with desk.session() as session:
        async with desk.journal.act(session, group=1, point=41) as act:
            await session.delete(await session.get(Certificate, 1))
        assert {(row.table, row.operation) for row in act.changes} == {
            ("certificate", "delete"),
            ("page", "delete"),
        }
        await session.commit()
    done = await rewind(desk, 41)
    assert {item.phrase for item in done.plan.items} == {
        "1 certificate will come back",
        "3 pages will come back",
    }
    assert desk.dump() == before


async def test_a_digest_of_another_plan_is_refused(desk):
    await tell(desk)
    async with desk.session() as session:
        plan = await desk.journal.preview(session, group=1, point=42)
        desk_after = desk.dump()
        with pytest.raises(ConflictError) as caught:
            await desk.journal.rewind(session, group=1, point=43, digest=plan.digest)
        assert caught.value.code == "journal.changed"
        await session.commit()
    assert desk.dump() == desk_after
    assert not any(entry[3] for entry in desk.entries())

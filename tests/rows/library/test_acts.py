"""Acts: what is theirs, what is not, and what leaves nothing behind."""

from typing import Any

import pytest
from sqlalchemy import bindparam, delete, insert, select, text, update
from sqlalchemy.exc import IntegrityError

from takeback.errors import RefusedError, TakebackError, UsageError
from tests.rows.library.models import Bullet, Certificate, Experience, Page, Skill

pytestmark = pytest.mark.anyio

TABLE: Any = Skill.__table__


async def rewound(desk, point=1, group="g", **how):
    async with desk.session() as session:
        done = await desk.journal.rewind(session, group=group, point=point, **how)
        await session.commit()
    return done


async def test_what_was_pending_before_is_not_the_acts(desk):
    async with desk.session() as session:
        session.add(Skill(id=1, title="by hand"))
        async with desk.journal.act(session, group="g", point=1) as act:
            session.add(Skill(id=2, title="by the agent"))
        session.add(Skill(id=3, title="by hand after it"))
        await session.commit()
    assert [row.key for row in act.changes] == [{"id": 2}]
    await rewound(desk)
    assert desk.stranger("SELECT id FROM skill ORDER BY id") == [(1,), (3,)]


async def test_an_act_that_raises_leaves_nothing_also_when_the_app_commits(desk):
    async with desk.session() as session:
        session.add(Skill(id=1, title="by hand"))

        acts = []

        async def body():
            async with desk.journal.act(session, group="g", point=1) as act:
                acts.append(act)
                session.add(Skill(id=2, title="lost"))
                await session.flush()
                await session.execute(update(Skill).values(level=5))
                (await session.get(Skill, 1)).title = "lost"
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await body()
        assert (acts[0].changes, acts[0].ids) == ((), ())
        assert (await session.get(Skill, 1)).title == "by hand"
        assert await session.get(Skill, 2) is None
        session.add(Skill(id=3, title="by hand"))
        await session.commit()
    assert desk.dump("skill")["skill"] == [(1, "by hand", None, 0), (3, "by hand", None, 0)]
    assert desk.entries() == []


async def test_an_act_that_changes_nothing_has_no_entry(desk):
    async with desk.session() as session:
        session.add(Skill(id=1, title="Python"))
        await session.flush()
        async with desk.journal.act(session, group="g", point=1) as act:
            skill = await session.get(Skill, 1)
            skill.title = "Rust"
            await session.flush()
            skill.title = "Python"
            session.add(Skill(id=2, title="gone again"))
            await session.flush()
            await session.execute(delete(Skill).where(Skill.id == 2))
        await session.commit()
    assert act.changes == ()
    assert desk.entries() == []


async def test_bulk_core_and_raw_sql_are_journaled_alike(desk):
    async with desk.session() as session:
        session.add_all([Skill(id=number, title=f"{number}") for number in range(1, 6)])
        await session.commit()
    before = desk.dump()
    async with desk.session() as session:
        async with desk.journal.act(session, group="g", point=1) as act:
            await session.execute(insert(Skill), [{"id": 10 + n, "title": "bulk"} for n in range(3)])
            await session.execute(update(Skill).where(Skill.id < 3).values(level=Skill.id + 1))
            await session.execute(delete(Skill).where(Skill.id == 5))
            await session.execute(text("UPDATE skill SET rank = :rank WHERE id = 4"), {"rank": 7})
            connection = await session.connection()
            core = update(TABLE).where(TABLE.c.id == bindparam("key")).values(title="core")
            await connection.execute(core, [{"key": 3}, {"key": 4}])
            await connection.exec_driver_sql("INSERT INTO skill (id, title) SELECT 20, 'driver'")
        await session.commit()
    assert {(row.key["id"], row.operation) for row in act.changes} == {
        *((number, "insert") for number in (10, 11, 12, 20)),
        *((number, "update") for number in (1, 2, 3, 4)),
        (5, "delete"),
    }
    assert len(desk.entries()) == 1
    await rewound(desk)
    assert desk.dump() == before


async def test_a_connection_will_do(desk):
    async with desk.connection() as connection:
        async with desk.journal.act(connection, group="g", point=1) as act:
            await connection.execute(insert(TABLE), [{"id": 1, "title": "Core"}])

        async def body():
            async with desk.journal.act(connection, group="g", point=2):
                await connection.execute(insert(TABLE), [{"id": 2, "title": "lost"}])
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await body()
        await connection.commit()
        assert [row.after["title"] for row in act.changes] == ["Core"]
        assert desk.stranger("SELECT id FROM skill") == [(1,)]
        plan = await desk.journal.preview(connection, group="g", point=1)
        await desk.journal.rewind(connection, group="g", point=1, digest=plan.digest)
        await connection.commit()
    assert desk.dump("skill") == {"skill": []}


async def test_a_connection_that_commits_within_an_act_is_refused(desk):
    async with desk.connection() as connection:

        async def body():
            async with desk.journal.act(connection, group="g", point=1):
                await connection.execute(insert(TABLE), [{"id": 1, "title": "lost"}])
                await connection.commit()

        with pytest.raises(UsageError) as caught:
            await body()
        assert caught.value.code == "journal.ended"
        await connection.rollback()
    assert desk.dump("skill") == {"skill": []}
    assert desk.entries() == []


async def test_an_act_within_an_act_is_an_entry_of_its_own(desk):
    async with desk.session() as session:
        async with desk.journal.act(session, group="g", point=1, tool="outer") as outer:
            session.add(Skill(id=1, title="one"))
            async with desk.journal.act(session, group="g", point=1, tool="inner") as inner:
                (await session.get(Skill, 1)).title = "two"
            (await session.get(Skill, 1)).title = "three"
        await session.commit()
    assert desk.stranger("SELECT tool FROM takeback_journal ORDER BY seq") == [
        ("outer",),
        ("inner",),
        ("outer",),
    ]
    assert [row.operation for row in outer.changes] == ["insert", "update"]
    assert [row.after for row in inner.changes] == [{"title": "two"}]
    assert len(outer.ids) == 2
    done = await rewound(desk)
    assert len(done.undone) == 3
    assert desk.dump("skill") == {"skill": []}


async def test_an_inner_act_that_raises_takes_only_itself_along(desk):
    async with desk.session() as session:
        async with desk.journal.act(session, group="g", point=1) as outer:
            session.add(Skill(id=1, title="kept"))

            async def body():
                async with desk.journal.act(session, group="g", point=2):
                    session.add(Certificate(id=1, number="lost", year=2000))
                    await session.execute(update(Skill).values(level=1))
                    raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                await body()
            session.add(Certificate(id=2, number="kept", year=2000))
            await session.execute(update(Skill).values(level=2))
        await session.commit()
    assert desk.stranger("SELECT level FROM skill") == [(2,)]
    assert {row.table for row in outer.changes} == {"skill", "certificate"}
    assert {entry[1] for entry in desk.entries()} == {"1"}
    await rewound(desk)
    assert desk.dump("skill", "certificate") == {"skill": [], "certificate": []}


async def test_savepoints_within_an_act_are_the_apps_own(desk):
    async with desk.session() as session:
        async with desk.journal.act(session, group="g", point=1) as act:
            async with session.begin_nested():
                session.add(Skill(id=1, title="kept"))

            async def body():
                async with session.begin_nested():
                    session.add(Certificate(id=1, number="A", year=2000))
                    await session.flush()
                    session.add(Certificate(id=2, number="A", year=2000))
                    await session.flush()

            with pytest.raises(IntegrityError):
                await body()
            session.add(Certificate(id=3, number="A", year=2000))
        await session.commit()
    assert [(row.table, row.key) for row in act.changes] == [("skill", {"id": 1}), ("certificate", {"id": 3})]
    await rewound(desk)
    assert desk.dump("skill", "certificate") == {"skill": [], "certificate": []}


async def test_a_commit_within_an_act_is_refused(desk):
    async with desk.session() as session:

        async def body():
            async with desk.journal.act(session, group="g", point=1):
                session.add(Skill(id=1, title="lost"))
                await session.commit()

        with pytest.raises(UsageError) as caught:
            await body()
        assert caught.value.code == "journal.ended"
        session.add(Skill(id=2, title="after it"))
        await session.commit()
    assert desk.stranger("SELECT id FROM skill") == [(2,)]
    assert desk.entries() == []


async def test_a_commit_that_the_body_swallows_changes_nothing(desk):
    async with desk.session() as session:
        async with desk.journal.act(session, group="g", point=1):
            session.add(Skill(id=1, title="kept"))
            with pytest.raises(UsageError):
                await session.commit()
            session.add(Skill(id=2, title="kept"))
        assert desk.stranger("SELECT id FROM skill") == []
        await session.commit()
    await rewound(desk)
    assert desk.dump("skill") == {"skill": []}


async def test_a_rollback_within_an_act_is_refused(desk):
    async with desk.session() as session:
        session.add(Skill(id=1, title="pending"))

        async def body():
            async with desk.journal.act(session, group="g", point=1):
                session.add(Skill(id=2, title="lost"))
                await session.rollback()
                session.add(Skill(id=3, title="nobody would see it"))
                await session.flush()

        with pytest.raises(UsageError) as caught:
            await body()
        assert caught.value.code == "journal.ended"
        await session.commit()
    assert desk.dump("skill") == {"skill": []}
    assert desk.entries() == []


async def test_a_flush_that_failed_can_not_be_passed_over(desk):
    async with desk.session() as session:
        session.add(Certificate(id=1, number="A", year=2000))

        async def body():
            async with desk.journal.act(session, group="g", point=1):
                session.add(Certificate(id=2, number="A", year=2000))
                with pytest.raises(IntegrityError):
                    await session.flush()

        with pytest.raises(UsageError) as caught:
            await body()
        assert caught.value.code == "journal.ended"
        await session.commit()
    assert desk.stranger("SELECT id FROM certificate") == [(1,)]
    assert desk.entries() == []


async def test_what_breaks_when_the_act_ends_is_the_apps_own_error(desk):
    async with desk.session() as session:
        with pytest.raises(IntegrityError):
            async with desk.journal.act(session, group="g", point=1):
                session.add(Certificate(id=1, number="A", year=1800))
        session.add(Skill(id=1, title="goes on"))
        await session.commit()
    assert desk.dump("certificate", "skill") == {"certificate": [], "skill": [(1, "goes on", None, 0)]}


async def test_the_app_may_have_begun_the_transaction(desk):
    async with desk.session() as session:
        async with session.begin():
            session.add(Skill(id=1, title="one"))
            async with desk.journal.act(session, group="g", point=1):
                session.add(Skill(id=2, title="two"))
    assert len(desk.entries()) == 1
    async with desk.session() as session:
        async with session.begin():
            async with desk.journal.act(session, group="g", point=2):
                session.add(Skill(id=3, title="three"))
            await session.execute(select(Skill))
            await session.rollback()
    assert len(desk.entries()) == 1
    assert desk.stranger("SELECT count(*) FROM skill") == [(2,)]


async def test_orphans_and_cascades_of_the_orm(desk):
    async with desk.session() as session:
        bullets = [Bullet(id=number, text=f"{number}") for number in range(1, 4)]
        session.add(Experience(id=1, title="Developer", bullets=bullets))
        session.add(Certificate(id=1, number="A", year=2000))
        await session.flush()
        session.add(Page(id=1, certificate_id=1, text="page"))
        await session.commit()
    before = desk.dump()
    async with desk.session() as session:
        async with desk.journal.act(session, group="g", point=1) as act:
            experience = await session.get(Experience, 1)
            experience.bullets.pop(0)
            experience.bullets.append(Bullet(id=9, text="new"))
            await session.delete(await session.get(Certificate, 1))
        await session.commit()
    assert {(row.table, row.operation, row.key["id"]) for row in act.changes} == {
        ("bullet", "delete", 1),
        ("bullet", "insert", 9),
        ("certificate", "delete", 1),
        ("page", "delete", 1),
    }
    await rewound(desk)
    assert desk.dump() == before


async def test_a_table_that_can_not_be_journaled_is_refused_by_name_unless_it_is_ignored(desk):
    desk.stranger("CREATE TABLE audit (what TEXT)")
    await desk.journal.install(desk.engine)
    async with desk.session() as session:

        async def body():
            async with desk.journal.act(session, group="g", point=1):
                session.add(Skill(id=1, title="lost"))
                await session.execute(text("INSERT INTO audit VALUES ('a')"))

        with pytest.raises(RefusedError) as caught:
            await body()
        assert caught.value.code == "rows.unjournaled"
        assert "audit" in caught.value.message
        await session.commit()
    assert desk.dump("skill", "audit") == {"skill": [], "audit": []}
    desk.journal = desk.new_journal(ignore=["audit"])
    await desk.journal.install(desk.engine)
    async with desk.session() as session:
        async with desk.journal.act(session, group="g", point=1):
            session.add(Skill(id=1, title="Python"))
            await session.execute(text("INSERT INTO audit VALUES ('a')"))
        await session.commit()
    await rewound(desk)
    assert desk.dump("skill", "audit") == {"skill": [], "audit": [("a",)]}


async def test_nothing_is_taken_back_while_an_act_is_open(desk):
    async with desk.session() as session:
        async with desk.journal.act(session, group="g", point=1):
            session.add(Skill(id=1, title="Python"))
            for call in (desk.journal.preview, desk.journal.rewind, desk.journal.forget):
                with pytest.raises(RefusedError) as caught:
                    await call(session, group="g", point=1)
                assert caught.value.code == "journal.within"
            session.add(Skill(id=2, title="SQL"))
        await session.commit()
    assert len((await rewound(desk)).plan.rows) == 2


async def test_without_a_journal_it_says_so(desk):
    await desk.journal.remove(desk.engine)
    await desk.journal.remove(desk.engine)
    async with desk.session() as session:
        with pytest.raises(TakebackError) as caught:
            async with desk.journal.act(session, group="g", point=1):
                session.add(Skill(id=1, title="lost"))
        assert caught.value.code == "journal.missing"
        for call in (desk.journal.preview, desk.journal.rewind, desk.journal.forget):
            with pytest.raises(TakebackError) as caught:
                await call(session, group="g", point=1)
            assert caught.value.code == "journal.missing"
        await session.commit()
    assert desk.dump("skill") == {"skill": []}


async def test_a_note_and_a_tool_are_kept(desk):
    async with desk.session() as session:
        note = {"why": "asked for", "deep": [1, None, "ü"]}
        async with desk.journal.act(session, group="g", point=1, tool="create", note=note):
            session.add(Skill(id=1, title="Python"))
        with pytest.raises(UsageError) as caught:
            async with desk.journal.act(session, group="g", point=1, note={"no": object()}):
                pass
        assert caught.value.code == "journal.note"
        await session.commit()
    ((tool, kept),) = desk.stranger("SELECT tool, note FROM takeback_journal")
    assert tool == "create"
    assert kept == '{"why": "asked for", "deep": [1, null, "ü"]}'

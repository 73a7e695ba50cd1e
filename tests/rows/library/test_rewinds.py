"""Rewinds: constraints, what the session knows then, rules, and what is skipped."""

import pytest
from sqlalchemy import select, text, update
from sqlalchemy.orm.exc import ObjectDeletedError

from takeback_acts.rows import JournalConflict
from tests.rows.library.models import Bullet, Certificate, Experience, Page, Skill

pytestmark = pytest.mark.anyio


async def acted(desk, point, *statements, group="g", journal=None):
    async with desk.session() as session:
        async with (journal or desk.journal).act(session, group=group, point=point) as act:
            for statement in statements:
                await session.execute(text(statement))
        await session.commit()
    return act


async def rewound(desk, point, *, journal=None, **how):
    async with desk.session() as session:
        plan = await (journal or desk.journal).preview(session, group="g", point=point, **how)
        done = await (journal or desk.journal).rewind(
            session, group="g", point=point, digest=plan.digest, **how
        )
        await session.commit()
    return done


async def refused(desk, point, *, journal=None, **how):
    before = (desk.dump(), desk.entries())
    async with desk.session() as session:
        plan = await (journal or desk.journal).preview(session, group="g", point=point, **how)
        with pytest.raises(JournalConflict) as caught:
            await (journal or desk.journal).rewind(session, group="g", point=point, digest=plan.digest, **how)
        await session.commit()
    assert (desk.dump(), desk.entries()) == before
    assert not plan.clean
    assert plan.rows == ()
    assert caught.value.plan.conflicts == plan.conflicts
    return plan.conflicts


CERTIFICATE = "INSERT INTO certificate (id, number, year) VALUES"


async def test_unique_values_that_were_exchanged_go_back(desk):
    desk.stranger(f"{CERTIFICATE} (1, 'A', 2000), (2, 'B', 2000)")
    before = desk.dump()
    await acted(
        desk,
        1,
        "UPDATE certificate SET number = 'x' WHERE id = 1",
        "UPDATE certificate SET number = 'A' WHERE id = 2",
        "UPDATE certificate SET number = 'B' WHERE id = 1",
    )
    assert len((await rewound(desk, 1)).plan.rows) == 2
    assert desk.dump() == before


async def test_unique_values_go_back_while_rows_that_refer_to_them_do(desk):
    desk.stranger(f"{CERTIFICATE} (1, 'A', 2000), (2, 'B', 2000), (3, 'C', 2000)")
    desk.stranger("INSERT INTO page (id, certificate_id, text) VALUES (1, 1, 'one')")
    before = desk.dump()
    await acted(
        desk,
        1,
        "UPDATE certificate SET number = 'x' WHERE id = 1",
        "UPDATE certificate SET number = 'A' WHERE id = 3",
        "UPDATE certificate SET number = 'C' WHERE id = 1",
        "UPDATE page SET certificate_id = 2",
    )
    await rewound(desk, 1)
    assert desk.dump() == before


async def test_a_unique_value_that_somebody_took_is_named(desk):
    desk.stranger(f"{CERTIFICATE} (1, 'A', 2000)")
    await acted(
        desk, 1, "UPDATE certificate SET number = 'B' WHERE id = 1", "UPDATE certificate SET year = 1999"
    )
    desk.stranger(f"{CERTIFICATE} (2, 'A', 2000)")
    (conflict,) = await refused(desk, 1)
    assert conflict.table == "certificate"
    assert "number" in conflict.constraint
    done = await rewound(desk, 1, skip_conflicts=True)
    assert done.plan.skipped == (conflict,)


async def test_a_child_that_somebody_added_keeps_its_parent(desk):
    await acted(desk, 1, "INSERT INTO experience (id, title) VALUES (1, 'Developer'), (2, 'Cook')")
    await acted(desk, 2, "INSERT INTO skill (id, title) VALUES (1, 'Python')")
    desk.stranger("INSERT INTO bullet (id, experience_id, text) VALUES (1, 1, 'by hand')")
    (conflict,) = await refused(desk, 1)
    assert "bullet" in conflict.constraint or conflict.table == "bullet"
    await rewound(desk, 1, skip_conflicts=True)
    assert desk.stranger("SELECT id FROM skill") == []
    assert (1,) in desk.stranger("SELECT id FROM experience")
    assert len(desk.dump("bullet")["bullet"]) == 1


async def test_a_cascade_onto_somebodys_row_is_a_conflict(desk):
    await acted(desk, 1, f"{CERTIFICATE} (1, 'A', 2000), (2, 'B', 2000)")
    desk.stranger("INSERT INTO page (id, certificate_id, text) VALUES (5, 1, 'by hand')")
    (conflict,) = await refused(desk, 1)
    assert conflict.table == "page"
    assert "certificate" in conflict.constraint
    await rewound(desk, 1, skip_conflicts=True)
    assert desk.stranger("SELECT id, text FROM page") == [(5, "by hand")]
    assert (1,) in desk.stranger("SELECT id FROM certificate")


async def test_a_check_is_named(desk):
    desk.stranger(f"{CERTIFICATE} (1, 'A', 2000)")
    await acted(desk, 1, "UPDATE certificate SET year = 1950 WHERE id = 1")
    if desk.sqlite:
        return
    desk.stranger("ALTER TABLE certificate ADD CONSTRAINT early CHECK (year < 1960)")
    (conflict,) = await refused(desk, 1)
    assert conflict.constraint == "early"


async def test_a_row_that_somebody_deleted_is_gone(desk):
    desk.stranger("INSERT INTO skill (id, title, rank) VALUES (1, 'a', 0), (2, 'b', 0)")
    await acted(desk, 1, "UPDATE skill SET title = 'x'", "INSERT INTO skill (id, title) VALUES (3, 'c')")
    desk.stranger("DELETE FROM skill WHERE id = 1")
    (conflict,) = await refused(desk, 1)
    assert conflict.key == {"id": 1}
    done = await rewound(desk, 1, skip_conflicts=True)
    assert {(row.key["id"], row.operation) for row in done.plan.rows} == {(2, "update"), (3, "delete")}
    assert desk.dump("skill") == {"skill": [(2, "b", None, 0)]}


async def test_a_skipped_change_takes_all_older_ones_of_the_same_along(desk):
    desk.stranger("INSERT INTO skill (id, title, level, rank) VALUES (1, 'a', 1, 0)")
    await acted(desk, 1, "UPDATE skill SET title = 'b', level = 2")
    await acted(desk, 2, "UPDATE skill SET title = 'c'")
    await acted(desk, 3, "UPDATE skill SET rank = 9")
    desk.stranger("UPDATE skill SET title = 'mine'")
    assert len(await refused(desk, 1)) == 2
    await rewound(desk, 1, skip_conflicts=True)
    assert desk.dump("skill") == {"skill": [(1, "mine", 1, 0)]}
    assert all(undone for _, _, kind, undone in desk.entries() if kind == "act")


async def test_counters_give_back_the_difference_and_what_is_derived_is_not_looked_at(desk):
    rules = {
        "deltas": {"account": ["balance"]},
        "derived": {"account": ["updated_at"]},
        "groups": {"account": [["amount", "currency"]]},
    }
    journal = desk.new_journal(**rules)
    desk.stranger("INSERT INTO account VALUES (1, 100, 5, 'EUR', 'monday')")
    change = "UPDATE account SET balance = balance + 10, updated_at = 'tuesday'"
    await acted(desk, 1, change, journal=journal)
    await acted(desk, 2, "UPDATE account SET amount = 7", journal=journal)
    desk.stranger("UPDATE account SET balance = balance - 30, updated_at = 'wednesday', currency = 'USD'")
    conflicts = await refused(desk, 1, journal=journal)
    assert {conflict.column for conflict in conflicts} == {"amount"}
    desk.stranger("UPDATE account SET currency = 'EUR'")
    done = await rewound(desk, 1, journal=journal)
    assert [dict(row.after) for row in done.plan.rows] == [{"balance": 70, "amount": 5}]
    assert desk.dump("account") == {"account": [(1, 70, 5, "EUR", "wednesday")]}


async def test_the_session_sees_what_was_given_back(desk):
    async with desk.session() as session:
        session.add(Experience(id=1, title="Cook", bullets=[Bullet(id=1, text="Cooked")]))
        session.add(Skill(id=1, title="Python"))
        await session.commit()
        experience, skill = await session.get(Experience, 1), await session.get(Skill, 1)
        async with desk.journal.act(session, group="g", point=1):
            experience.title = "Chef"
            experience.bullets.append(Bullet(id=2, text="Led"))
            await session.delete(skill)
            session.add(Skill(id=2, title="SQL"))
        await session.flush()
        made = await session.get(Skill, 2)
        await desk.journal.rewind(session, group="g", point=1)
        await session.refresh(experience, ["title", "bullets"])
        assert experience.title == "Cook"
        assert [bullet.id for bullet in experience.bullets] == [1]
        assert (await session.get(Skill, 1)).title == "Python"
        assert await session.get(Skill, 2) is None
        with pytest.raises(ObjectDeletedError):
            await session.run_sync(lambda _: made.title)
        assert [each.id for each in (await session.execute(select(Skill))).scalars()] == [1]
        await session.commit()
        (await session.get(Skill, 1)).title = "Rust"
        await session.commit()
    assert desk.stranger("SELECT title FROM skill") == [("Rust",)]


async def test_what_was_pending_is_seen_by_a_rewind_as_somebodys_edit(desk):
    await acted(desk, 1, "INSERT INTO skill (id, title) VALUES (1, 'Python')")
    async with desk.session() as session:
        (await session.get(Skill, 1)).level = 4
        with pytest.raises(JournalConflict) as caught:
            await desk.journal.rewind(session, group="g", point=1)
        assert caught.value.plan.conflicts[0].theirs == {"level": 4}
        await session.commit()
    assert desk.stranger("SELECT level FROM skill") == [(4,)]


async def test_a_rewind_and_what_the_app_does_with_it_are_one_transaction(desk):
    await acted(desk, 1, f"{CERTIFICATE} (1, 'A', 2000)")
    async with desk.session() as session:
        async with session.begin():
            await desk.journal.rewind(session, group="g", point=1)
            async with desk.journal.act(session, group="g", point=1, tool="again"):
                session.add(Certificate(id=1, number="B", year=2001))
                await session.flush()
                session.add(Page(id=1, certificate_id=1, text="new"))
            await session.execute(update(Certificate).values(price=2.5))
    assert [entry[2:] for entry in desk.entries()] == [("act", True), ("undo", False), ("act", False)]
    assert len(await refused(desk, 1)) == 1


async def test_it_is_taken_back_once_however_often_it_is_asked_for(desk):
    await acted(desk, 1, "INSERT INTO skill (id, title) VALUES (1, 'Python')")
    first = await rewound(desk, 1)
    second = await rewound(desk, 1)
    assert (len(first.undone), second.undone, second.undo, second.plan.total) == (1, (), "", 0)


async def test_a_thousand_rows_and_columns_of_every_kind(desk):
    kinds = "a BIGINT, b DOUBLE PRECISION, c NUMERIC(30, 9), d TEXT, e TIMESTAMP, f BOOLEAN"
    desk.stranger(f"CREATE TABLE wide (id INTEGER PRIMARY KEY, {kinds})")
    await desk.journal.install(desk.engine)
    rows = "(:id, 9007199254740993, 0.1, 1234567890.012345678, :d, '2026-11-30 09:00:00.1234', true)"
    async with desk.session() as session:
        for number in range(500):
            await session.execute(
                text(f"INSERT INTO wide VALUES {rows}"), {"id": number, "d": "'\"\\ ü \n" * (number % 7)}
            )
        await session.commit()
    before = desk.dump("wide")
    await acted(desk, 1, "DELETE FROM wide WHERE id < 250", "UPDATE wide SET b = b * 3, d = NULL, f = NOT f")
    done = await rewound(desk, 1)
    assert [(item.operation, item.count) for item in done.plan.items] in (
        [("insert", 250), ("update", 250)],
        [("update", 250), ("insert", 250)],
    )
    assert desk.dump("wide") == before

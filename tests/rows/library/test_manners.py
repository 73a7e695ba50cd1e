"""Manners: an app's connection, its settings and its schema are as they were after every call."""

from typing import Any

import pytest
from sqlalchemy import event, text
from sqlalchemy.pool import NullPool, StaticPool

from takeback.errors import ConflictError, RefusedError, TakebackError, UsageError
from takeback_acts.rows import Journal, SyncJournal
from tests.rows.library.models import Base, Certificate, Skill

pytestmark = pytest.mark.anyio

PRAGMAS = (
    "foreign_keys",
    "recursive_triggers",
    "defer_foreign_keys",
    "temp_store",
    "synchronous",
    "query_only",
)


async def settings(desk, session):
    """Everything that can be set, as it is."""
    if desk.sqlite:
        found = [(await session.execute(text(f"PRAGMA {name}"))).scalar() for name in PRAGMAS]
        names = text("SELECT name FROM temp.sqlite_schema")
        return [*found, (await session.execute(names)).scalars().all()]
    shown = "SELECT name, setting FROM pg_settings WHERE strpos(name, '.') = 0 ORDER BY name"
    act = text("SELECT current_setting('takeback.act', true)")
    rows = [tuple(row) for row in (await session.execute(text(shown))).all()]
    return [*rows, (await session.execute(act)).scalar() or ""]


async def unusual(desk, session):
    """Settings as an app may have them."""
    if desk.sqlite:
        await session.execute(text("PRAGMA recursive_triggers = OFF"))
        return
    for name, value in (
        ("TimeZone", "'America/New_York'"),
        ("DateStyle", "'German'"),
        ("IntervalStyle", "'sql_standard'"),
        ("extra_float_digits", "'-3'"),
        ("bytea_output", "'escape'"),
        ("search_path", "'$user', public"),
    ):
        await session.execute(text(f"SET {name} = {value}"))


async def test_settings_are_as_before_after_each_call(desk):
    journal = desk.journal
    async with desk.session() as session:
        await unusual(desk, session)
        before = await settings(desk, session)
        for number in (1, 2):
            async with journal.act(session, group="g", point=number):
                session.add(Certificate(id=number, number=f"{number}", year=2000, scan=b"\xff\0", price=0.1))
            assert await settings(desk, session) == before
        with pytest.raises(ZeroDivisionError):
            await failing(journal, session)
        assert await settings(desk, session) == before
        await journal.preview(session, group="g", point=1)
        assert await settings(desk, session) == before
        done = await journal.rewind(session, group="g", point=1)
        assert await settings(desk, session) == before
        await journal.redo(session, done.undo)
        assert await settings(desk, session) == before
        session.add(Certificate(id=3, number="3", year=2000))
        await session.flush()
        await session.execute(text("UPDATE certificate SET year = 1999 WHERE id = 1"))
        with pytest.raises(ConflictError):
            await journal.rewind(session, group="g", point=1)
        assert await settings(desk, session) == before
        await journal.forget(session, group="g", point=1)
        await journal.expire(session)
        assert await settings(desk, session) == before
        await session.commit()
    rows = desk.dump("certificate")["certificate"]
    assert len(rows) == 3
    assert bytes(rows[0][3]) == b"\xff\0"


async def failing(journal, session):
    async with journal.act(session, group="g", point=9):
        session.add(Skill(id=9, title="lost"))
        await session.flush()
        raise ZeroDivisionError


async def test_what_is_written_outside_of_acts_is_not_captured(desk):
    async with desk.session() as session:
        async with desk.journal.act(session, group="g", point=1):
            session.add(Skill(id=1, title="Python"))
        session.add(Skill(id=2, title="by hand"))
        await session.flush()
        async with desk.journal.act(session, group="g", point=2) as act:
            session.add(Skill(id=3, title="SQL"))
        await session.commit()
        session.add(Skill(id=4, title="by hand"))
        await session.commit()
    assert [row.key for row in act.changes] == [{"id": 3}]
    async with desk.session() as session:
        await desk.journal.rewind(session, group="g", point=1)
        await session.commit()
    assert desk.stranger("SELECT id FROM skill ORDER BY id") == [(2,), (4,)]


async def test_the_schema_may_change_between_acts(desk):
    async with desk.session() as session:
        async with desk.journal.act(session, group="g", point=1):
            session.add(Skill(id=1, title="Python"))
        await session.commit()
        await session.execute(text("ALTER TABLE skill ADD COLUMN hint VARCHAR(10) DEFAULT 'none'"))
        await session.execute(text("CREATE TABLE hobby (id INTEGER PRIMARY KEY, name VARCHAR(10))"))
        await session.commit()
        async with desk.journal.act(session, group="g", point=2) as act:
            await session.execute(text("UPDATE skill SET hint = 'new' WHERE id = 1"))
            await session.execute(text("INSERT INTO hobby VALUES (1, 'chess')"))
        await session.commit()
        assert {(row.table, row.operation) for row in act.changes} == {
            ("skill", "update"),
            ("hobby", "insert"),
        }
        await session.execute(text("ALTER TABLE skill DROP COLUMN level"))
        await session.commit()
    if not desk.sqlite:
        # A trigger is the first to notice that a column is gone, and then everybody looks.
        with pytest.raises(ConflictError) as caught:
            await renamed(desk)
        assert (caught.value.code, caught.value.retryable) == ("rows.changed", True)
    await renamed(desk)
    async with desk.session() as session:
        await desk.journal.rewind(session, group="g", point=2)
        assert (await session.execute(text("SELECT title, hint FROM skill"))).all() == [("Python", "none")]
        await desk.journal.rewind(session, group="g", point=1)
        await session.commit()
    assert desk.dump("skill", "hobby") == {"skill": [], "hobby": []}


async def renamed(desk):
    async with desk.session() as session:
        async with desk.journal.act(session, group="g", point=3):
            await session.execute(text("UPDATE skill SET title = 'Rust' WHERE id = 1"))
        await session.commit()


async def test_a_table_made_within_an_act_is_refused(desk):
    async def body():
        async with desk.session() as session:
            async with desk.journal.act(session, group="g", point=1):
                await session.execute(text("CREATE TABLE hobby (id INTEGER PRIMARY KEY)"))
                await session.execute(text("INSERT INTO hobby VALUES (1)"))

    with pytest.raises(ConflictError) as caught:
        await body()
    assert caught.value.code == "journal.schema"
    assert desk.entries() == []


async def test_install_and_remove_leave_nothing(desk):
    await desk.journal.install(desk.engine)
    async with desk.connection() as connection:
        await desk.journal.install(connection)
        await connection.commit()
    await desk.journal.remove(desk.engine)
    if desk.sqlite:
        assert desk.stranger("SELECT name FROM sqlite_schema WHERE name LIKE 'takeback%'") == []
    else:
        assert desk.stranger("SELECT tgname FROM pg_trigger WHERE tgname LIKE 'takeback%'") == []
        assert desk.stranger("SELECT proname FROM pg_proc WHERE proname LIKE 'takeback%'") == []
    await desk.journal.install(desk.engine)
    async with desk.session() as session:
        async with desk.journal.act(session, group="g", point=1):
            session.add(Skill(id=1, title="Python"))
        await session.commit()
        assert len((await desk.journal.rewind(session, group="g", point=1)).undone) == 1


async def test_a_connection_that_commits_each_statement_is_refused(desk):
    engine = desk.new_engine(isolation_level="AUTOCOMMIT")
    async with desk.session(engine) as session:
        with pytest.raises(RefusedError) as caught:
            async with desk.journal.act(session, group="g", point=1):
                pass
        assert caught.value.code == "journal.autocommit"
        with pytest.raises(RefusedError):
            await desk.journal.rewind(session, group="g", point=1)
    await dispose(desk, engine)


async def test_each_connection_of_a_pool_is_found_ready(desk):
    for options in ({"poolclass": NullPool}, {"pool_size": 1, "max_overflow": 0}):
        engine = desk.new_engine(**options)
        for number in range(3):
            async with desk.session(engine) as session:
                async with desk.journal.act(session, group="g", point=number) as act:
                    session.add(Skill(title=f"{number}"))
                assert len(act.changes) == 1
                await session.commit()
        async with desk.session(engine) as session:
            assert len((await desk.journal.rewind(session, group="g", point=0)).undone) == 3
            await session.commit()
        await dispose(desk, engine)
    assert desk.dump("skill") == {"skill": []}


async def dispose(desk, engine):
    if desk.sync:
        engine.dispose()
    else:
        await engine.dispose()


async def test_the_other_kind_of_session_is_refused_by_name(desk):
    wrong: Any = Journal() if desk.sync else SyncJournal()
    async with desk.session() as session:
        given = session.inner if desk.sync else session
        if desk.sync:
            for call in (wrong.preview, wrong.rewind, wrong.forget):
                with pytest.raises(UsageError) as caught:
                    await call(given, group="g", point=1)
                assert caught.value.code == "journal.session"
            with pytest.raises(UsageError):
                await wrong.install(desk.engine)
        else:
            for call in (wrong.preview, wrong.rewind, wrong.forget):
                with pytest.raises(UsageError) as caught:
                    call(given, group="g", point=1)
                assert caught.value.code == "journal.session"
            with pytest.raises(UsageError):
                wrong.install(desk.engine)


@pytest.mark.parametrize(
    "rules",
    [{"ignore": "audit"}, {"deltas": {"account": "balance"}}, {"groups": {"account": ["amount"]}}],
)
def test_a_name_where_names_belong_is_refused(rules):
    with pytest.raises(UsageError) as caught:
        Journal(**rules)
    assert caught.value.code == "journal.rules"


async def test_a_truncate_within_an_act_is_refused(async_desk):
    if async_desk.sqlite:
        return
    async_desk.stranger("INSERT INTO skill (id, title) VALUES (1, 'Python')")

    async def body():
        async with async_desk.session() as session:
            async with async_desk.journal.act(session, group="g", point=1):
                await session.execute(text("TRUNCATE skill"))

    with pytest.raises(TakebackError) as caught:
        await body()
    assert caught.value.code == "rows.truncate"
    assert len(async_desk.dump("skill")["skill"]) == 1


async def test_a_database_in_memory_on_one_connection(tmp_path):
    from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

    journal = Journal()
    for _ in range(2):
        engine = create_async_engine("sqlite+aiosqlite://", poolclass=StaticPool)
        async with engine.begin() as connection:
            await connection.run_sync(Base.metadata.create_all)
        await journal.install(engine)
        async with AsyncSession(engine) as session:
            async with journal.act(session, group="g", point=1):
                session.add(Skill(id=1, title="Python"))
            await session.commit()
        async with engine.begin() as connection:
            await connection.execute(text("ALTER TABLE skill DROP COLUMN level"))
        async with AsyncSession(engine) as session:
            plan = await journal.preview(session, group="g", point=1)
            assert plan.total == 1
            await journal.rewind(session, group="g", point=1)
            await session.commit()
            assert (await session.execute(text("SELECT count(*) FROM skill"))).scalar() == 0
        await engine.dispose()


async def test_texts_and_rows_of_an_app_in_forms_of_its_own(tmp_path):
    import sqlite3

    from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

    class Loud(str):
        __slots__ = ()

    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'own.db'}")

    def own(connection, _):
        raw = connection.driver_connection._conn
        raw.row_factory = sqlite3.Row
        raw.text_factory = lambda data: Loud(data.decode().upper())

    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    journal = Journal()
    await journal.install(engine)
    await engine.dispose()
    event.listen(engine.sync_engine, "connect", own)
    async with AsyncSession(engine) as session:
        async with journal.act(session, group="g", point=1):
            session.add(Skill(id=1, title="quiet"))
        async with journal.act(session, group="g", point=2) as act:
            await session.execute(text("UPDATE skill SET title = 'still quiet'"))
        assert act.changes[0].before == {"title": "quiet"}
        await journal.rewind(session, group="g", point=2)
        assert (await session.execute(text("SELECT title FROM skill"))).scalar() == "QUIET"
        await session.commit()
    await engine.dispose()
    with sqlite3.connect(tmp_path / "own.db") as db:
        assert db.execute("SELECT title FROM skill").fetchall() == [("quiet",)]
    db.close()


async def test_what_an_app_has_converted_is_kept_as_it_is_stored(tmp_path):
    import sqlite3

    from sqlalchemy import create_engine
    from sqlalchemy.orm import Session

    kinds = sqlite3.PARSE_DECLTYPES | sqlite3.PARSE_COLNAMES
    engine = create_engine(f"sqlite:///{tmp_path / 'own.db'}", connect_args={"detect_types": kinds})
    sqlite3.register_converter("shout", lambda data: data.decode().upper())
    journal = SyncJournal()
    journal.install(engine)
    with Session(engine) as session:
        session.execute(text("CREATE TABLE word (id INTEGER PRIMARY KEY, said SHOUT)"))
        session.commit()
        session.execute(text("INSERT INTO word VALUES (1, 'quiet')"))
        with journal.act(session, group="g", point=1):
            session.execute(text("UPDATE word SET said = 'other'"))
        assert journal.rewind(session, group="g", point=1).plan.rows[0].after == {"said": "quiet"}
        assert session.execute(text("SELECT said, said || '' FROM word")).one() == ("QUIET", "quiet")
    engine.dispose()


async def test_a_rollback_within_an_act_leaves_no_setting_behind(desk):
    async def body():
        async with desk.journal.act(session, group="g", point=1):
            session.add(Skill(id=1, title="lost"))
            await session.rollback()

    engine = desk.new_engine(pool_size=1, max_overflow=0)
    async with desk.session(engine) as session:
        before = await settings(desk, session)
        with pytest.raises(UsageError):
            await body()
        assert await settings(desk, session) == before
        async with desk.journal.act(session, group="g", point=2) as act:
            await session.execute(text("INSERT INTO skill (id, title) VALUES (2, 'a')"))
            if desk.sqlite:
                await session.execute(text("REPLACE INTO skill (id, title) VALUES (2, 'b')"))
        assert [row.key for row in act.changes] == [{"id": 2}]
        assert await settings(desk, session) == before
    await dispose(desk, engine)

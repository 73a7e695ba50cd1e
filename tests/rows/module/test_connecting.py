"""Connecting and letting go: what is checked, what is made and removed, and that no secret is ever told."""

import os
import sqlite3
from contextlib import closing

import pytest

from takeback.errors import TakebackError
from takeback.kernel import Kernel
from takeback_acts.rows.module import RowsModule
from takeback_core.audit.module import AuditModule
from takeback_core.undo.module import UndoModule
from tests.rows.module.conftest import Bench

pytestmark = pytest.mark.anyio


@pytest.fixture
async def person(tmp_path):
    async with Kernel(tmp_path / "home", settings={}, modules=[UndoModule, RowsModule]) as kernel:
        yield kernel.enter("cli:person")


async def refusal(call):
    with pytest.raises(TakebackError) as caught:
        await call
    assert caught.value.hint
    return caught.value


def schema(database):
    """All that is in the person's schema."""
    if database.name == "sqlite":
        return database.sql("SELECT type, name, sql FROM sqlite_schema ORDER BY name")
    return database.sql(
        "SELECT 'class', oid::regclass::text FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        " UNION ALL SELECT 'trigger', tgname::text FROM pg_trigger WHERE NOT tgisinternal"
        " UNION ALL SELECT 'function', proname::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
        " UNION ALL SELECT 'schema', nspname::text FROM pg_namespace ORDER BY 1, 2"
    )


async def test_what_is_made_is_removed_and_nothing_else(person, database):
    before, rows = schema(database), database.dump()
    connected = await person.rows.connect(name="main", url=database.url)
    assert connected.database.tables == ["note", "skill", "tag"]
    assert list(connected.database.refused) == ["keyless"]
    assert "keyless" in connected.notes[0]
    assert schema(database) != before
    made = schema(database)
    await person.rows.connect(name="main", url=database.url)
    assert schema(database) == made
    gone = await person.rows.disconnect(name="main")
    assert gone.warning == ""
    assert [line for line in schema(database) if "sqlite_sequence" not in line[1]] == [
        line for line in before if "sqlite_sequence" not in line[1]
    ]
    assert database.dump() == rows
    assert (await person.rows.databases()).databases == []
    assert (await refusal(person.rows.query(table="skill"))).code == "rows.database"


async def test_a_connection_outlives_the_kernel(tmp_path, database):
    async with Kernel(tmp_path / "home", settings={}, modules=[UndoModule, RowsModule]) as kernel:
        bench = Bench(kernel, database)
        await bench.person().rows.connect(name="main", url=database.url)
        done = await bench.agent().rows.update(table="skill", key=1, set={"title": "Rust"})
    async with Kernel(tmp_path / "home", settings={}, modules=[UndoModule, RowsModule]) as kernel:
        await Bench(kernel, database).undo(done.act)
    assert database.sql("SELECT title FROM skill WHERE id = 1") == [("Python",)]


async def test_acts_that_can_be_taken_back_hold_a_database(bench):
    done = await bench.agent().rows.update(table="skill", key=1, set={"title": "Rust"})
    error = await refusal(bench.person().rows.disconnect(name="main"))
    assert error.code == "rows.in_use"
    await bench.undo(done.act)
    await bench.person().rows.disconnect(name="main")


async def test_with_force_it_goes_and_its_acts_say_why_they_stay(bench):
    done = await bench.agent().rows.update(table="skill", key=1, set={"title": "Rust"})
    await bench.person().rows.disconnect(name="main", force=True)
    plan = await bench.preview(done.act)
    assert plan.steps[0].status == "not_undoable"
    assert "rows.not_connected" in plan.steps[0].reason
    await bench.person().rows.connect(name="main", url=bench.database.url)
    plan = await bench.preview(done.act)
    assert "rows.entry" in plan.steps[0].reason
    assert bench.sql("SELECT title FROM skill WHERE id = 1") == [("Rust",)]


@pytest.mark.parametrize("name", ["", "Main", "a b", "a.b", "a:b", "-a", "a" * 64])
async def test_names_that_can_be_none(person, database, name):
    assert (await refusal(person.rows.connect(name=name, url=database.url))).code in (
        "rows.name",
        "args.invalid",
    )


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("nonsense", "rows.url"),
        ("mysql://root:geheim@host/db", "rows.url"),
        ("sqlite://", "rows.url"),
        ("sqlite:///relative.db", "rows.url"),
        ("sqlite:////nowhere/at/all.db", "rows.file"),
        ("sqlite:///{folder}", "rows.file"),
        ("sqlite:///{folder}/text", "rows.damaged"),
        ("sqlite:///{folder}/empty", "rows.no_tables"),
        ("sqlite:///{folder}/pipe", "rows.file"),
        ("sqlite:///{folder}/home/data/takeback.db", "rows.own_database"),
        ("sqlite:///{folder}/link", "rows.own_database"),
        ("sqlite:///{folder}/hard", "rows.own_database"),
        ("postgresql://juno:geheim@127.0.0.1:1/db", "rows.unreachable"),
        ("postgresql://juno:geheim@127.0.0.1:1/db?nonsense=geheim", "rows.url"),
    ],
)
async def test_what_can_not_be_connected(person, tmp_path, caplog, url, code):
    (tmp_path / "text").write_text("no database" * 100)
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "home/data/takeback.db")
    (tmp_path / "hard").hardlink_to(tmp_path / "home/data/takeback.db")
    error = await refusal(person.rows.connect(name="main", url=url.format(folder=tmp_path)))
    assert error.code == code
    assert "geheim" not in str(error.as_dict())
    assert "geheim" not in caplog.text
    assert (await person.rows.databases()).databases == []


async def test_a_database_without_keys_is_refused_by_the_names_of_its_tables(person, tmp_path):
    with closing(sqlite3.connect(tmp_path / "x.db")) as db:
        db.executescript("CREATE TABLE a (x); CREATE TABLE b (y);")
    error = await refusal(person.rows.connect(name="main", url=f"sqlite:///{tmp_path}/x.db"))
    assert error.code == "rows.no_tables"
    assert set(error.data["refused"]) == {"a", "b"}
    with closing(sqlite3.connect(tmp_path / "x.db")) as db:
        assert db.execute("SELECT name FROM sqlite_schema ORDER BY name").fetchall() == [("a",), ("b",)]


async def test_one_database_has_one_name_and_a_name_one_database(person, make, database, tmp_path):
    await person.rows.connect(name="main", url=database.url)
    assert (await refusal(person.rows.connect(name="other", url=database.url))).code == "rows.connected"
    (tmp_path / "second").mkdir()
    second = make(tmp_path / "second")
    try:
        assert (await refusal(person.rows.connect(name="main", url=second.url))).code == "rows.connected"
        await person.rows.connect(name="other", url=second.url)
        assert (await refusal(person.rows.query(table="tag"))).code == "rows.which_database"
        assert len((await person.rows.query(database="other", table="tag")).rows) == 2
        assert {table.database for table in (await person.rows.tables()).tables} == {"main", "other"}
    finally:
        await person.rows.disconnect(name="other")
        second.close()


async def test_a_file_that_is_gone_is_forgotten_with_a_warning(person, tmp_path):
    with closing(sqlite3.connect(tmp_path / "x.db")) as db:
        db.execute("CREATE TABLE a (x PRIMARY KEY NOT NULL)")
    await person.rows.connect(name="main", url=f"sqlite:///{tmp_path}/x.db")
    (tmp_path / "x.db").unlink()
    assert (await refusal(person.rows.query(table="a"))).code == "rows.unreachable"
    gone = await person.rows.disconnect(name="main")
    assert "removed" in gone.warning
    assert not (tmp_path / "x.db").exists()
    assert (await person.rows.databases()).databases == []


class TestPassword:
    @pytest.fixture
    def server(self, postgres):
        return postgres

    async def test_a_wrong_one_is_told_as_such_and_never_itself(self, person, server, caplog):
        url = server.url("postgres", role="locked", password="geheim")
        error = await refusal(person.rows.connect(name="main", url=url))
        assert error.code == "rows.password"
        assert "geheim" not in str(error.as_dict()) + caplog.text

    async def test_a_right_one_is_kept_and_shown_to_nobody(self, tmp_path, server, caplog):
        name = server.fresh()
        with server.connect(name) as db:
            db.execute("GRANT CREATE ON SCHEMA public TO locked")
            db.execute("SET ROLE locked")
            db.execute("CREATE TABLE tag (name text PRIMARY KEY)")
        url = server.url(name, role="locked", password="right")
        modules = [UndoModule, RowsModule, AuditModule]
        async with Kernel(tmp_path / "home", settings={}, modules=modules) as kernel:
            person = kernel.enter("cli:person")
            connected = await person.rows.connect(name="main", url=url)
            await person.rows.insert(table="tag", row={"name": "red"})
            told = [
                connected.model_dump_json(),
                (await person.rows.databases()).model_dump_json(),
                (await person.undo.list()).model_dump_json(),
                (await person.audit.list()).model_dump_json(),
                str(await kernel.store.read(lambda db: db.execute("SELECT * FROM kernel_outbox").fetchall())),
                caplog.text,
            ]
        assert not [text for text in told if "right" in text]
        assert "***" in told[0]
        server.drop(name)

    async def test_a_superuser_is_refused(self, person, server):
        error = await refusal(person.rows.connect(name="main", url=server.url("postgres", role="postgres")))
        assert error.code == "rows.superuser"


async def test_doctor_tells_of_each_database(bench):
    module = bench.kernel.supervisor.life("rows").module
    (check,) = await module.checks()
    assert check.ok, check
    if bench.database.name == "sqlite":
        bench.sql("DROP TABLE takeback_journal")
    else:
        bench.sql("DROP TRIGGER takeback_capture ON skill")
    (check,) = await module.checks()
    assert not check.ok
    assert check.hint

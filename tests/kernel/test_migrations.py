"""Migrations: each script once, whole, and never from the future."""

import sqlite3

import pytest

from takeback.errors import TakebackError
from takeback.store import Store

pytestmark = pytest.mark.anyio

_FIRST = "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT);"
_SECOND = """
-- a comment; with a semicolon
ALTER TABLE note ADD COLUMN n INTEGER NOT NULL DEFAULT 0;
CREATE TRIGGER count_up AFTER INSERT ON note BEGIN
    UPDATE note SET n = n + 1 WHERE id = new.id;
    UPDATE note SET text = 'a; b' WHERE id = new.id AND text IS NULL;
END;
INSERT INTO note (text) VALUES (NULL)
"""


@pytest.fixture
async def store(tmp_path):
    async with await Store.open(tmp_path / "t.db") as opened:
        yield opened


async def _rows(store, sql):
    return [tuple(row) for row in await store.read(lambda c: c.execute(sql).fetchall())]


async def _schema(store):
    return await _rows(store, "SELECT name, sql FROM sqlite_schema ORDER BY name")


async def test_scripts_run_in_order_and_once(store):
    await store.migrate("notes", (_FIRST,))
    await store.migrate("notes", (_FIRST, _SECOND))
    await store.migrate("notes", (_FIRST, _SECOND))
    assert await _rows(store, "SELECT text, n FROM note") == [("a; b", 1)]
    assert await _rows(store, "SELECT version FROM kernel_migration WHERE module = 'notes'") == [(1,), (2,)]


async def test_modules_have_versions_of_their_own(store):
    await store.migrate("notes", (_FIRST,))
    await store.migrate("others", (_FIRST.replace("note", "other"),))
    assert await _rows(store, "SELECT count(*) FROM other") == [(0,)]


async def test_a_module_without_scripts_is_fine(store):
    await store.migrate("notes", ())


async def test_a_script_that_fails_is_undone_and_those_before_it_stay(store):
    with pytest.raises(TakebackError) as failed:
        await store.migrate("notes", (_FIRST, "CREATE TABLE half (id); INSERT INTO nowhere VALUES (1);"))
    assert failed.value.code == "store.migration_failed"
    assert failed.value.data == {"module": "notes", "version": 2}
    assert isinstance(failed.value.__cause__, sqlite3.OperationalError)
    assert await _rows(store, "SELECT name FROM sqlite_schema WHERE name IN ('note', 'half')") == [("note",)]
    await store.migrate("notes", (_FIRST, "CREATE TABLE half (id);"))
    assert await _rows(store, "SELECT version FROM kernel_migration WHERE module = 'notes'") == [(1,), (2,)]


async def test_a_script_whose_rows_break_a_constraint_is_undone(store):
    with pytest.raises(TakebackError) as failed:
        await store.migrate("notes", (_FIRST + "INSERT INTO note VALUES (1, ''), (1, '');",))
    assert failed.value.code == "store.migration_failed"
    assert await _rows(store, "SELECT count(*) FROM sqlite_schema WHERE name = 'note'") == [(0,)]


async def test_a_full_disk_is_not_the_scripts_fault(store):
    await store.transaction(lambda tx: tx.execute("PRAGMA max_page_count = 1").fetchone())
    with pytest.raises(TakebackError) as full:
        await store.migrate("notes", (_FIRST,))
    assert full.value.code == "store.full"


async def test_a_database_from_the_future_is_refused_and_not_changed(store):
    await store.migrate("notes", (_FIRST, _SECOND))
    before = await _schema(store)
    with pytest.raises(TakebackError) as refused:
        await store.migrate("notes", (_FIRST,))
    assert refused.value.code == "store.future"
    assert refused.value.data == {"module": "notes", "found": 2, "known": 1}
    assert "notes" in refused.value.message
    assert await _schema(store) == before


async def test_the_kernels_own_tables_from_the_future_refuse_the_whole_database(tmp_path):
    path = tmp_path / "t.db"
    async with await Store.open(path) as store:
        await store.transaction(
            lambda tx: tx.execute("INSERT INTO kernel_migration VALUES ('kernel', 99, '', '')")
        )
    content = path.read_bytes()
    with pytest.raises(TakebackError) as refused:
        await Store.open(path)
    assert refused.value.code == "store.future"
    assert path.read_bytes() == content


async def test_a_script_changed_after_it_ran_is_refused(store):
    await store.migrate("notes", (_FIRST,))
    before = await _schema(store)
    with pytest.raises(TakebackError) as refused:
        await store.migrate("notes", (_FIRST + "-- fixed", _SECOND))
    assert refused.value.code == "store.migration_changed"
    assert refused.value.data == {"module": "notes", "version": 1}
    assert await _schema(store) == before

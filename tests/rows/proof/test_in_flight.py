"""A commit that was on its way to the server when its process died comes true, or it never does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import anyio
import pytest

from takeback_acts.rows.module import RowsModule
from takeback_core.undo.module import UndoModule
from tests.rows.proof.lanes import Lane
from tests.rows.proof.persons import Person
from tests.rows.proof.stage import Stage, stage

_WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND application_name = 'takeback' AND wait_event_type = 'Lock'"
)
_THERE = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND application_name = 'takeback'"
)


@pytest.fixture
def lane(postgres, tmp_path) -> Iterator[Lane]:
    made = Lane(tmp_path, "flight", postgres)
    made.create()
    yield made
    made.close()


def _until(person: Person, sql: str, count: int, over: threading.Event) -> None:
    """Asks until so many are found, or it does not matter any more."""
    with person.connect(role="postgres") as db:
        while not over.is_set() and db.execute(sql.encode()).fetchone() != (count,):
            pass


def test_who_asks_the_journal_waits_for_what_is_on_its_way(lane):
    """A stranger's lock keeps the journal's row, and with it the commit, on its way."""
    lane.do("prepare", "acts")
    person, over = lane.persons["main"], threading.Event()
    with ThreadPoolExecutor(2) as pool, person.connect() as stranger:
        stranger.autocommit = False
        stranger.execute("LOCK TABLE takeback_journal IN SHARE MODE")
        killed, _ = lane.do("act", "acts", ("commit.sent", 1))
        assert killed
        settling = pool.submit(lane.do, "reopen", "acts")
        settling.add_done_callback(lambda _: over.set())
        _until(person, _WAITING, 2, over)
        stranger.commit()
        settling.result()
    _until(person, _THERE, 0, threading.Event())
    lane.do("settle", "acts")


async def _delete(opened: Stage) -> None:
    await opened.agent().rows.delete(table="account", key=1)


@pytest.mark.anyio
async def test_nobody_else_waits_for_a_commit_that_waits(postgres, tmp_path):
    person = Person("postgresql", str(postgres.socket), postgres.fresh())
    person.create()
    async with stage(tmp_path / "home", tmp_path / "files", modules=[UndoModule, RowsModule]) as opened:
        await opened.connect({"main": person})
        with person.connect() as stranger, person.connect(role="postgres") as other:
            stranger.autocommit = False
            stranger.execute("LOCK TABLE takeback_journal IN SHARE MODE")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_delete, opened)
                with anyio.fail_after(5):
                    while other.execute(_WAITING.encode()).fetchone() != (1,):
                        await opened.person().undo.list()
                stranger.commit()
        await opened.person().undo.rewind(session="s1")
    postgres.drop(person.database)

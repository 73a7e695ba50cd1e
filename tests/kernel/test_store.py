"""The store: transactions that are whole, durable and shared."""

import asyncio
import contextlib
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from takeback import faults
from takeback.errors import TakebackError
from takeback.store import Store
from tests.kernel.unprivileged import readonly_folder

pytestmark = pytest.mark.anyio

_TABLE = ("CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)",)


@pytest.fixture
async def store(tmp_path):
    async with await Store.open(tmp_path / "t.db") as opened:
        await opened.migrate("notes", _TABLE)
        yield opened


def _add(text):
    return lambda tx: tx.execute("INSERT INTO note (text) VALUES (?)", (text,)).lastrowid


def _add_then_raise(text):
    def fn(tx):
        _add(text)(tx)
        raise LookupError(text)

    return fn


async def _texts(store):
    rows = await store.read(lambda c: c.execute("SELECT text FROM note ORDER BY id").fetchall())
    return [row["text"] for row in rows]


def _on_disk(path):
    """What another program finds in the file."""
    connection = sqlite3.connect(path)
    try:
        return [text for (text,) in connection.execute("SELECT text FROM note ORDER BY id")]
    finally:
        connection.close()


@contextmanager
def _held_writer(store):
    """Keeps the writer busy, so that what is submitted inside becomes one batch."""
    entered, release = threading.Event(), threading.Event()

    def hold(tx):
        entered.set()
        release.wait(30)

    store.submit(hold)
    assert entered.wait(30)
    try:
        yield
    finally:
        release.set()


async def test_a_transaction_returns_what_its_closure_returns_and_is_on_disk_by_then(store):
    assert await store.transaction(_add("a")) == 1
    assert _on_disk(store.path) == ["a"]


async def test_the_connection_is_set_up_for_durability_and_integrity(store):
    def pragma(name):
        return lambda tx: tx.execute(f"PRAGMA {name}").fetchone()[0]

    assert await store.transaction(pragma("journal_mode")) == "wal"
    assert await store.transaction(pragma("synchronous")) == 2
    assert await store.transaction(pragma("foreign_keys")) == 1


async def test_what_a_closure_raises_undoes_its_writes_alone(store):
    with _held_writer(store):
        jobs = [store.submit(_add("a")), store.submit(_add_then_raise("b")), store.submit(_add("c"))]
    assert await jobs[0].wait() == 1
    with pytest.raises(LookupError):
        await jobs[1].wait()
    await jobs[2].wait()
    with pytest.raises(LookupError):
        await store.transaction(_add_then_raise("d"))
    assert await _texts(store) == ["a", "c"]


async def test_a_broken_constraint_reaches_its_caller_as_sqlite_said_it(store):
    await store.transaction(_add("a"))
    with pytest.raises(sqlite3.IntegrityError):
        await store.transaction(_add("a"))


async def test_all_that_wait_share_one_commit(store):
    passed: list[str] = []
    remove = faults.install(passed.append)
    try:
        with _held_writer(store):
            jobs = [store.submit(_add(str(n))) for n in range(100)]
        for job in jobs:
            await job.wait()
    finally:
        remove()
    assert passed.count("store.begun") == 2  # the held one, and the hundred
    assert await _texts(store) == [str(n) for n in range(100)]


async def test_a_read_sees_what_was_submitted_before_it(store):
    for n in range(20):
        store.submit(_add(str(n)))
        assert len(await _texts(store)) == n + 1


async def test_a_read_is_one_snapshot_and_cannot_write(store):
    entered, release = threading.Event(), threading.Event()

    def count_twice(connection):
        first = connection.execute("SELECT count(*) FROM note").fetchone()[0]
        entered.set()
        release.wait(30)
        return first, connection.execute("SELECT count(*) FROM note").fetchone()[0]

    async with anyio.create_task_group() as tasks:

        async def write():
            await anyio.to_thread.run_sync(entered.wait)
            await store.transaction(_add("a"))
            release.set()

        tasks.start_soon(write)
        assert await store.read(count_twice) == (0, 0)
    with pytest.raises(TakebackError) as refused:
        await store.read(lambda c: c.execute("INSERT INTO note (text) VALUES ('b')"))
    assert refused.value.code == "store.readonly"
    assert await _texts(store) == ["a"]


async def test_a_submitted_failure_nobody_waits_for_is_logged_without_its_words(store, caplog):
    with caplog.at_level(logging.ERROR):
        store.submit(_add_then_raise("secret"))
        await store.transaction(_add("a"))
    assert "_add_then_raise" in caplog.text
    assert "LookupError" in caplog.text
    assert "secret" not in caplog.text


async def test_cancelling_a_wait_leaves_a_submitted_job_alone(store):
    with _held_writer(store):
        job = store.submit(_add("a"))
        with anyio.CancelScope() as scope:
            scope.cancel()
            await job.wait()
    await job.wait()
    assert await _texts(store) == ["a"]


async def test_a_transaction_cancelled_before_its_turn_never_runs(store):
    ran: list[object] = []
    with _held_writer(store):
        task = asyncio.ensure_future(store.transaction(ran.append))
        await anyio.wait_all_tasks_blocked()
        task.cancel()
        await anyio.wait_all_tasks_blocked()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ran == []


async def test_a_transaction_past_its_deadline_is_undone_and_its_neighbours_are_not(store):
    entered, release = threading.Event(), threading.Event()
    scope = anyio.CancelScope()
    outcome = []

    def slow(tx):
        _add("slow")(tx)
        entered.set()
        release.wait(30)

    async def call():
        with scope:
            await store.transaction(slow)
        outcome.append(scope.cancelled_caught)

    async with anyio.create_task_group() as tasks:
        with _held_writer(store):
            before = store.submit(_add("before"))
            tasks.start_soon(call)
            await anyio.wait_all_tasks_blocked()
            after = store.submit(_add("after"))
        await anyio.to_thread.run_sync(entered.wait)
        scope.deadline = anyio.current_time()
        await anyio.wait_all_tasks_blocked()
        assert outcome == []  # what becomes of it isn't known yet
        release.set()
    assert outcome == [True]
    assert await before.wait() == 1
    assert await after.wait()
    assert await _texts(store) == ["before", "after"]


async def test_a_lone_transaction_past_its_deadline_is_undone(store):
    entered, release = threading.Event(), threading.Event()

    def slow(tx):
        _add("slow")(tx)
        entered.set()
        release.wait(30)

    task = asyncio.ensure_future(store.transaction(slow))
    await anyio.to_thread.run_sync(entered.wait)
    for _ in range(3):  # an impatient canceller learns no sooner
        task.cancel()
        await anyio.wait_all_tasks_blocked()
        assert not task.done()
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await _texts(store) == []


async def test_a_cancellation_after_the_commit_leaves_it_committed(store):
    committed, release = threading.Event(), threading.Event()

    def hold(name):
        if name == "store.committed":
            committed.set()
            release.wait(30)

    remove = faults.install(hold)
    try:
        task = asyncio.ensure_future(store.transaction(_add("a")))
        await anyio.to_thread.run_sync(committed.wait)
        task.cancel()
    finally:
        remove()
        release.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await _texts(store) == ["a"]


async def test_a_full_disk_fails_what_did_not_fit_and_the_store_goes_on(store):
    def limit(pages):
        return lambda tx: tx.execute(f"PRAGMA max_page_count = {pages}").fetchone()

    await store.transaction(limit(1))  # SQLite sets it to what the file has now
    with pytest.raises(TakebackError) as alone:
        await store.transaction(_add("x" * 100_000))
    with _held_writer(store):
        jobs = [store.submit(_add(text)) for text in ("a", "y" * 100_000, "b")]
    outcomes = []
    for job in jobs:
        try:
            await job.wait()
            outcomes.append("")
        except TakebackError as error:
            outcomes.append(error.code)
    assert alone.value.code == outcomes[1] == "store.full"
    assert alone.value.retryable
    assert isinstance(alone.value.__cause__, sqlite3.OperationalError)
    # Whoever was told that it is written finds it, and nobody else.
    assert await _texts(store) == [t for t, failed in zip("ab", outcomes[::2], strict=True) if not failed]
    await store.transaction(limit(1_000_000))
    await store.transaction(_add("c"))
    assert "c" in _on_disk(store.path)


async def test_a_batch_whose_commit_fails_fails_whole(store):
    def fail(name):
        if name == "store.ran":
            raise sqlite3.OperationalError("as a disk would")

    with _held_writer(store):
        jobs = [store.submit(_add("a")), store.submit(_add_then_raise("b"))]
        remove = faults.install(fail)
    try:
        for job, expected in zip(jobs, (sqlite3.OperationalError, LookupError), strict=True):
            with pytest.raises(expected):
                await job.wait()
    finally:
        remove()
    await store.transaction(_add("c"))
    assert await _texts(store) == ["c"]


async def test_a_closure_that_ends_the_transaction_is_told_so(store):
    with pytest.raises(TakebackError) as misused:
        await store.transaction(lambda tx: tx.execute("ROLLBACK"))
    assert misused.value.code == "store.misused"
    await store.transaction(_add("a"))
    assert await _texts(store) == ["a"]


async def test_a_database_another_program_holds_is_busy_and_can_be_tried_again(tmp_path):
    async with await Store.open(tmp_path / "t.db", busy_seconds=0.01) as store:
        await store.migrate("notes", _TABLE)
        stranger = sqlite3.connect(store.path, isolation_level=None)
        stranger.execute("BEGIN IMMEDIATE")
        with pytest.raises(TakebackError) as busy:
            await store.transaction(_add("a"))
        assert (busy.value.code, busy.value.retryable) == ("store.busy", True)
        stranger.close()
        await store.transaction(_add("a"))
        assert await _texts(store) == ["a"]


async def test_a_database_that_cannot_be_written_is_said_at_once():
    with readonly_folder("t.db") as folder:
        for name in ("t.db", "new.db"):
            with pytest.raises(TakebackError) as refused:
                await Store.open(folder / name)
            assert refused.value.code == "store.readonly"
            assert refused.value.hint


async def test_a_folder_that_cannot_be_written_is_said_although_the_file_can():
    with readonly_folder("t.db", mode=0o666) as folder:
        with pytest.raises(TakebackError) as refused:
            await Store.open(folder / "t.db")
    assert refused.value.code == "store.readonly"


@pytest.mark.parametrize(
    "content", [b"x", b"no database at all" * 500, b"SQLite format 3\x00" + b"\xff" * 5000]
)
async def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path, content):
    path = tmp_path / "t.db"
    path.write_bytes(content)
    with pytest.raises(TakebackError) as refused:
        await Store.open(path)
    assert refused.value.code == "store.corrupt"
    assert path.read_bytes() == content
    assert [found.name for found in tmp_path.iterdir()] == ["t.db"]


async def test_a_damaged_schema_is_refused_and_the_log_beside_it_left_as_it_is(tmp_path):
    store = await Store.open(tmp_path / "live.db")
    await store.migrate("notes", _TABLE)
    await store.close()
    path = tmp_path / "t.db"
    damaged = bytearray((tmp_path / "live.db").read_bytes())
    damaged[100:200] = b"\xff" * 100  # the first page's own header
    path.write_bytes(damaged)
    wal = tmp_path / "t.db-wal"
    wal.write_bytes(b"what a killed process left")
    with pytest.raises(TakebackError) as refused:
        await Store.open(path)
    assert refused.value.code == "store.corrupt"
    assert path.read_bytes() == damaged
    assert wal.read_bytes() == b"what a killed process left"


async def test_check_finds_damage_that_opening_does_not(tmp_path):
    path = tmp_path / "t.db"
    async with await Store.open(path) as store:
        await store.migrate("notes", _TABLE)
        for n in range(200):
            store.submit(_add(f"{n:0500}"))
        assert await store.check() == []
    content = bytearray(path.read_bytes())
    content[-4096:] = bytes(4096)
    path.write_bytes(content)
    async with await Store.open(path) as store:
        assert await store.check() != []


async def test_the_files_are_shut_to_others_under_any_umask(tmp_path):
    path = tmp_path / "t.db"
    path.touch(0o666)
    before = os.umask(0)
    try:
        path.chmod(0o666)
        async with await Store.open(path) as store:
            await store.migrate("notes", _TABLE)
            modes = {found.name: found.stat().st_mode & 0o777 for found in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == {"t.db": 0o600, "t.db-wal": 0o600, "t.db-shm": 0o600}


async def test_closing_finishes_what_is_queued_and_takes_nothing_more(tmp_path):
    store = await Store.open(tmp_path / "t.db")
    await store.migrate("notes", _TABLE)
    with _held_writer(store):
        jobs = [store.submit(_add(str(n))) for n in range(50)]
        closing = asyncio.ensure_future(store.close())
        for _ in range(2):
            await anyio.wait_all_tasks_blocked()
            closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert all(job.settled for job in jobs)
    assert len(_on_disk(store.path)) == 50
    for refused in (lambda: store.transaction(_add("a")), lambda: _texts(store)):
        with pytest.raises(TakebackError) as closed:
            await refused()
        assert closed.value.code == "store.closed"
    await store.close()


_CHILD = """
import asyncio, os, signal, sys
from pathlib import Path
from takeback import faults
from takeback.store import Store

async def main(path, point, at):
    store = await Store.open(Path(path))
    await store.migrate("notes", (sys.argv[4],))
    seen = 0
    def die(name):
        nonlocal seen
        seen += name == point
        if name == point and seen == at:
            os.kill(os.getpid(), signal.SIGKILL)
    faults.install(die)
    for n in range(10):
        pair = lambda tx: [tx.execute("INSERT INTO note (text) VALUES (?)", (f"{n}{half}",)) for half in "ab"]
        await store.transaction(lambda tx: pair(tx) and None)
        print(n, flush=True)

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


@pytest.mark.parametrize(
    ("point", "durable"),
    [("store.begun", False), ("store.ran", False), ("store.committed", True), ("store.delivering", True)],
)
@pytest.mark.parametrize("at", [1, 4])
async def test_a_killed_process_leaves_exactly_what_was_committed(tmp_path, point, durable, at):
    path = tmp_path / "t.db"
    child = subprocess.run(
        [sys.executable, "-c", _CHILD, str(path), point, str(at), _TABLE[0]],
        capture_output=True,
        text=True,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
    )
    assert child.returncode == -signal.SIGKILL, child.stderr
    told = [int(line) for line in child.stdout.split()]
    assert told == list(range(at - 1))
    whole = at if durable else at - 1
    async with await Store.open(path) as store:
        assert await _texts(store) == [f"{n}{half}" for n in range(whole) for half in "ab"]
        assert await store.check() == []


_STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "raise", "drop", "rename"]), st.integers(0, 5)), max_size=8
)


@given(batches=st.lists(st.lists(_STEPS, max_size=4), max_size=4))
def test_any_mix_of_transactions_leaves_what_the_whole_ones_wrote(batches):
    async def run(path):
        async with await Store.open(path) as store:
            await store.migrate("notes", ("CREATE TABLE note (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)",))
            model: dict[int, int] = {}
            for batch in batches:
                jobs = [(store.submit(partial(_apply, steps=steps)), steps) for steps in batch]
                for job, steps in jobs:
                    after = _apply_to_model(model, steps)
                    if after is None:
                        with pytest.raises(LookupError):
                            await job.wait()
                    else:
                        await job.wait()
                        model = after
            rows = await store.read(lambda c: c.execute("SELECT id, n FROM note").fetchall())
            assert {row["id"]: row["n"] for row in rows} == model

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder) / "t.db"))


def _apply(tx, steps):
    for number, (step, key) in enumerate(steps):
        if step == "put":
            tx.execute("INSERT OR REPLACE INTO note VALUES (?, ?)", (key, number))
        elif step == "drop":
            tx.execute("DELETE FROM note WHERE id = ?", (key,))
        elif step == "rename":
            tx.execute("UPDATE note SET n = n + 100 WHERE id = ?", (key,))
        else:
            raise LookupError(key)


def _apply_to_model(model, steps):
    """The rows after the steps, or None where they raise."""
    rows = dict(model)
    for number, (step, key) in enumerate(steps):
        if step == "put":
            rows[key] = number
        elif step == "drop":
            rows.pop(key, None)
        elif step == "rename" and key in rows:
            rows[key] += 100
        elif step == "raise":
            return None
    return rows


async def test_a_job_that_rides_shares_the_commit_of_what_follows(store):
    commits = []
    stop = faults.install(lambda point: commits.append(point) if point == "store.committed" else None)
    riding = store.submit(_add("rides"), ride=True)
    await anyio.lowlevel.checkpoint()
    assert not riding.settled
    await store.transaction(_add("drives"))
    assert riding.settled
    stop()
    assert len(commits) == 1


async def test_a_job_that_rides_is_seen_by_readers_and_by_a_close(tmp_path):
    async with await Store.open(tmp_path / "t.db") as opened:
        await opened.migrate("notes", _TABLE)
        opened.submit(_add("seen"), ride=True)
        assert await opened.read(lambda db: db.execute("SELECT count(*) FROM note").fetchone()[0]) == 1
        opened.submit(_add("last"), ride=True)
    async with await Store.open(tmp_path / "t.db") as opened:
        assert await opened.read(lambda db: db.execute("SELECT count(*) FROM note").fetchone()[0]) == 2


async def test_who_asks_hears_on_the_writers_thread_of_what_is_durable_and_of_nothing_else(store):
    heard = []

    def hear(what):
        with contextlib.closing(sqlite3.connect(store.path)) as db:
            found = db.execute("SELECT count(*) FROM note WHERE text = ?", (what,)).fetchone()[0]
        heard.append((what, found, threading.current_thread() is threading.main_thread()))

    await store.transaction(_add("a"), durable=partial(hear, "a"))
    with pytest.raises(LookupError):
        await store.transaction(_add_then_raise("b"), durable=partial(hear, "b"))
    assert heard == [("a", 1, False)]
